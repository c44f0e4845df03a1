"""The network logger as a process: a line for each step of a pod's life."""

from __future__ import annotations

from pathlib import Path

import pytest

from nri_proto import NriLevel
from nri_resmgr.stub import LinuxPod, Namespace, Pod
from nri_resmgr.testing import Runtime
from tests.plugins.programs import PLUGINS, running
from tests.plugins.stories import LEVELS

pytestmark = pytest.mark.process

OWN_NETWORK = LinuxPod(
    namespaces=(
        Namespace("ipc", "/proc/7/ns/ipc"),
        Namespace("network", "/run/netns/a"),
    )
)
RUNS = Pod(name="db", namespace="shop", linux=OWN_NETWORK, ips=("10.0.0.7", "fd00::7"))
STARTS = Pod(name="web", namespace="shop", ips=("10.0.0.8",))


@pytest.mark.parametrize("level", LEVELS, ids=str)
async def test_pods_are_logged_with_their_networks(
    tmp_path: Path, level: NriLevel
) -> None:
    log = tmp_path / "log"
    async with Runtime(tmp_path, level) as runtime:
        flags = ("--socket", str(runtime.socket_path), "--index", "10")
        await runtime.run_pod(RUNS)
        async with running(PLUGINS / "network-logger", *flags, log=log):
            await runtime.synchronized("10-network-logger")
            pod = await runtime.run_pod(STARTS)
            await runtime.stop_pod(pod.id)
            await runtime.remove_pod(pod.id)

    assert lines_about_pods(log) == [
        "pods.known containers=0 pods=1",
        "pod.runs ips=10.0.0.7,fd00::7 network=/run/netns/a pod=shop/db",
        "pod.started ips=10.0.0.8 network=<host-network> pod=shop/web",
        "pod.stopped ips=10.0.0.8 network=<host-network> pod=shop/web",
        "pod.removed ips=10.0.0.8 network=<host-network> pod=shop/web",
    ]


def lines_about_pods(log: Path) -> list[str]:
    lines = [line.partition("] ")[2].split() for line in log.read_text().splitlines()]
    return [" ".join(words) for words in lines if words and words[0].startswith("pod")]
