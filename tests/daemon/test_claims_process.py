"""Claims of another CPU driver over the death of the daemon, with a kubelet."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from nri_resmgr.cli.explain import render_explanation
from nri_resmgr.cli.render_status import render_status
from nri_resmgr.cli.workload import Workload
from nri_resmgr.control.client import Client
from nri_resmgr.daemon.claims_file import CLAIMS_NAME, parse_claims
from nri_resmgr.kubelet.sockets import POD_RESOURCES
from nri_resmgr.testing import running_plugin
from nri_resmgr.testing.kubelet.pod_resources import (
    FakeClaim,
    FakeDevice,
    FakePod,
    FakePodResources,
)
from nri_resmgr.testing.kubelet.server import KubeletServer
from nri_resmgr.values import QosClass
from nri_resmgr.values.documents import BadValue
from tests.app.test_cpu_claims import Driver
from tests.daemon.restarts import node
from tests.waiting import until

CLAIMED = Workload("claimed", QosClass.GUARANTEED, 2000)
OTHER = Workload("other", QosClass.GUARANTEED, 2000)
FAR = Workload("far", QosClass.GUARANTEED, 1000)


@pytest.mark.process
async def test_claims_outlive_a_kill(tmp_path: Path) -> None:
    kubelet = FakePodResources()
    kubelet.put(FakePod("default", "claimed", claims={"claimed": (FakeClaim("c-1"),)}))
    gpu = FakeDevice("example.com/gpu", ("0",), (0,))
    kubelet.put(FakePod("default", "far", devices={"far": (gpu,)}))
    socket = tmp_path / "control"
    flags = ("--kubelet-dir", str(tmp_path), "--control-socket", str(socket))
    env = ("DRA_CPUSET_c-1=4-6",)
    container = msgspec.structs.replace(CLAIMED.container, env=env)
    server = KubeletServer(tmp_path / POD_RESOURCES.socket, kubelet)
    file = tmp_path / "state" / CLAIMS_NAME
    async with (
        node(tmp_path) as some,
        running_plugin(some.runtime, Driver(), "00-dra.cpu"),
    ):
        async with server, some.daemon(*flags) as process:
            await some.runtime.run_pod(CLAIMED.pod)
            await some.runtime.create_container(CLAIMED.pod.id, container)
            await some.runtime.start_container(container.id)
            await until(file.exists)
            other = await some.come(OTHER)
            far = await some.come(FAR)
            # By a list or by a call for the pod: the socket may be found later.
            await until(lambda: some.cpus()[far] == "3")
            await some.says("control.listening")
            client = Client(str(socket))
            state = client.get("/v1/state")
            claimed = client.get("/v1/explain", pod="claimed")
            near = client.get("/v1/explain", pod="far")
            process.kill()
        kept = parse_claims(file.read_text())
        # The kubelet is away: what is kept counts.
        async with some.daemon(*flags):
            await some.says("control.listening")
            after = some.cpus()
            again = Client(str(socket)).get("/v1/state")

    assert after == {container.id: "4-6", other: "1-2", far: "3"}
    assert [one["cpus"] for one in state["cpuClaims"]["claims"]] == ["4-6"]
    assert again["cpuClaims"] == state["cpuClaims"]
    assert str(kept.cpus) == "4-6"
    assert "default/cpus of dra.cpu: CPUs 4-6; default/claimed/claimed" in (
        render_status(state)
    )
    assert "the driver dra.cpu gave it CPUs 4-6, by the claim default/cpus" in (
        render_explanation(claimed)
    )
    assert "device example.com/gpu:0 is near CPUs 0-3, says the kubelet" in (
        render_explanation(near)
    )


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"claims": 1}', '{"claims": {"a": {}}}', "[" * 100_000]
)
def test_a_damaged_file_has_no_claims(text: str) -> None:
    with pytest.raises(BadValue):
        parse_claims(text)


def test_an_empty_table_is_the_default() -> None:
    assert parse_claims(json.dumps({})).claims == {}
