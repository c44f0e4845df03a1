"""The daemon as a process gives classes, lets containers follow, and is killed."""

from __future__ import annotations

import signal
from pathlib import Path

import msgspec
import pytest

from nri_resmgr.cli.workload import Workload
from nri_resmgr.control.client import Client
from nri_resmgr.stub import ContainerAdjustment
from nri_resmgr.stub.model import Rdt
from nri_resmgr.values import QosClass
from tests.app.class_rig import files_of
from tests.control.daemon_parts import ask
from tests.control.json_schema import mistakes
from tests.daemon.host_nodes import (
    PLAIN,
    HostNode,
    add_cgroups,
    add_gold_group,
    host_node,
)
from tests.waiting import until

pytestmark = pytest.mark.process

CONTROL = """\
  control:
    rdt: {enable: true}
    blockio: {enable: true, classes: {slow: [{Weight: 50}]}}
"""
ASKS = {
    "rdtclass.resource-policy.nri.io/pod": "gold",
    "blockioclass.resource-policy.nri.io/pod": "slow",
}
WEIGHT = "sys/fs/cgroup/kubepods/web/io.weight"
TASKS = "sys/fs/resctrl/gold/tasks"


def add_kernel(host: Path) -> None:
    """Add a resctrl with one group, and cgroups."""
    add_gold_group(host)
    cgroup = {"cgroup.procs": "", "io.stat": "", "io.weight": "default 100\n"}
    add_cgroups(host, "io", cgroup)


async def create(node: HostNode, name: str) -> ContainerAdjustment:
    """Run a pod; return what was sent to the runtime about its container."""
    return await node.in_cgroup(Workload(name, QosClass.GUARANTEED, 1000), ASKS)


async def test_classes_are_assigned_updated_and_removed(tmp_path: Path) -> None:
    async with host_node(tmp_path, PLAIN + CONTROL) as node:
        add_kernel(node.host)
        weight, tasks = node.host / WEIGHT, node.host / TASKS
        socket = ("--control-socket", str(tmp_path / "control.sock"))
        async with node.running(*socket) as daemon:
            sent = await create(node, "web")
            assert dict(sent.resources.unified) == {"io.weight": "405"}
            # A container created before the daemon has read the groups is moved later.
            await until(lambda: tasks.read_text().strip() == "7")
            sent = await create(node, "next")
            assert sent.linux
            assert sent.linux.rdt == Rdt(clos_id="gold")
            node.document.write_text(PLAIN + CONTROL.replace("50", "100"))
            await until(lambda: weight.read_text() == "910\n")
            state = await ask(Client(str(tmp_path / "control.sock")), "/v1/state")
            await until((tmp_path / "state/blockio").exists)
            daemon.send_signal(signal.SIGKILL)
            await daemon.wait()
        node.document.write_text(PLAIN)
        async with node.running():
            await until(lambda: weight.read_text() == "100\n")
            await until(lambda: not (tmp_path / "state/blockio").exists())

    assert mistakes(state, "State") == []
    found = state["classes"]
    assert {one["name"]: one["containers"] for one in found["rdt"]["classes"]} == {
        "system/default": [],
        "gold": ["default/next/next", "default/web/web"],
    }
    assert found["blockio"]["classes"][0]["files"] == {"io.weight": ["910"]}


ROOT = """\
  control:
    rdt:
      enable: true
      partitions: {p: {l3Allocation: 50%, classes: {system/default: {}}}}
"""


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
async def test_the_root_group_is_restored(tmp_path: Path, end: signal.Signals) -> None:
    async with host_node(tmp_path, PLAIN + ROOT) as node:
        add_kernel(node.host)
        schemata = node.host / "sys/fs/resctrl/schemata"
        before = rows(schemata)
        async with node.running() as daemon:
            halves = ["L3:0=3ff;1=3ff", "MB:0=100;1=100"]
            await until(lambda: rows(schemata) == halves)
            daemon.send_signal(end)
            await daemon.wait()
        if end == signal.SIGKILL:
            assert rows(schemata) == halves
            node.document.write_text(PLAIN)
            async with node.running():
                await until(lambda: not (tmp_path / "state/resctrl").exists())

    assert rows(schemata) == before == ["L3:0=fffff;1=fffff", "MB:0=100;1=100"]
    assert not (tmp_path / "state/resctrl").exists()


def rows(schemata: Path) -> list[str]:
    """Return both lines, without the kernel's blanks.

    A plain file keeps the end of a longer text, which the kernel would not.
    """
    lines = schemata.read_text().splitlines()[:2]
    return [line.replace(" ", "") for line in lines]


async def test_fast_memory_is_limited_by_an_annotation_alone(tmp_path: Path) -> None:
    name = "memory.toptier_soft_limit_in_bytes"
    files = {"cgroup.procs": "", name: "-1\n"}
    asked = Workload("web", QosClass.GUARANTEED, 1000)
    wish = {"toptierlimit.cri-resource-manager.intel.com/pod": "1Gi"}
    async with host_node(tmp_path, PLAIN) as node:
        cgroups = node.host / "sys/fs/cgroup"
        files_of(cgroups, {"cpuset/cpuset.cpus": "0-3\n"})
        files_of(cgroups / "memory/kubepods/web", files)
        files_of(cgroups / "cpuset/kubepods/web", {"cgroup.procs": ""})
        async with node.running("--apply-updates", "runtime"):
            pod = msgspec.structs.replace(asked.pod, annotations=wish)
            await node.runtime.run_pod(pod)
            assert asked.container.linux
            linux = msgspec.structs.replace(
                asked.container.linux, cgroups_path="/kubepods/web"
            )
            container = msgspec.structs.replace(asked.container, id="web", linux=linux)
            await node.runtime.create_container(pod.id, container)
            await node.runtime.start_container("web")
            file = cgroups / "memory/kubepods/web" / name
            await until(lambda: file.read_text().strip() == str(1 << 30))

        # A container that runs already gets its limit, too.
        file.write_text("-1\n")
        async with node.running("--apply-updates", "runtime"):
            await until(lambda: file.read_text().strip() == str(1 << 30))
