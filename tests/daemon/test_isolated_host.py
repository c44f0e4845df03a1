"""A host does for isolated containers what CRI-O does."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import msgspec
import pytest

from nri_resmgr.app.plugin.translate import KUBELET_NAME
from nri_resmgr.cli.workload import Workload
from nri_resmgr.testing import PluginRefused
from nri_resmgr.values import QosClass
from tests.daemon.host_nodes import (
    BALLOONS,
    DEFAULT,
    DISK,
    NIC,
    PLAIN,
    POLICIES,
    HostNode,
    contents,
    host_node,
)
from tests.host.cpu_trees import CPU
from tests.waiting import until

pytestmark = pytest.mark.process

ALLOWED: Final = PLAIN + "  isolationAnnotations: true\n"
TOP: Final = "/sys/fs/cgroup"
POD: Final = f"{TOP}/kubepods/pod1"


def latency(cpu: int) -> str:
    return f"{CPU}/cpu{cpu}/power/pm_qos_resume_latency_us"


def more(files: dict[str, str]) -> None:
    """Add cgroups of version 2, and what the kernel has for each CPU."""
    files |= {latency(cpu): "0" for cpu in range(8)}
    files |= {
        f"{TOP}/cgroup.controllers": "cpuset cpu",
        f"{TOP}/kubepods/cpuset.cpus.exclusive": "",
        f"{POD}/cpuset.cpus.exclusive": "",
        f"{POD}/cpu.max": "200000 100000",
    }


async def begin(
    node: HostNode,
    name: str,
    annotations: dict[str, str],
    *,
    cpus: int = 2,
    without: str = "",
) -> None:
    """Create a container, then its cgroup, and start it."""
    await create(node, name, annotations, cpus=cpus)
    await start(node, name, without=without)


async def create(
    node: HostNode, name: str, annotations: dict[str, str], *, cpus: int = 2
) -> None:
    asked = Workload(name, QosClass.GUARANTEED, cpus * 1000)
    pod = msgspec.structs.replace(asked.pod, annotations=annotations)
    await node.runtime.run_pod(pod)
    linux = asked.container.linux
    assert linux is not None
    container = msgspec.structs.replace(
        asked.container,
        id=name,
        labels={KUBELET_NAME: name},
        linux=msgspec.structs.replace(linux, cgroups_path=f"/kubepods/pod1/{name}"),
    )
    await node.runtime.create_container(pod.id, container)


async def start(node: HostNode, name: str, *, without: str = "") -> None:
    cgroup = node.host / POD[1:] / name
    cgroup.mkdir()
    for file, text in {
        "cgroup.procs": "",
        "cpu.max": "200000 100000",
        "cpuset.cpus.exclusive": "",
        "cpuset.cpus.partition": "member",
    }.items():
        if file != without:
            (cgroup / file).write_text(f"{text}\n")
    before = contents(cgroup)
    node.before.update({f"{POD}/{name}{file}": before[file] for file in before})  # type: ignore[attr-defined] # it is a dict
    await node.runtime.start_container(name)


async def test_cpus_of_a_container_have_the_requested_settings(tmp_path: Path) -> None:
    asked = {
        "irq-load-balancing.crio.io": "disable",
        "cpu-c-states.crio.io": "disable",
        "cpu-freq-governor.crio.io": "performance",
    }
    governor = ("scaling_governor", "energy_performance_preference")
    async with host_node(tmp_path, ALLOWED, more) as node, node.running():
        await begin(node, "web", asked)
        await node.becomes(
            {f"{POLICIES}/policy2/{file}": "performance" for file in governor}
            | {f"{POLICIES}/policy6/{file}": "performance" for file in governor}
            | {latency(2): "n/a", latency(6): "n/a"}
            | {NIC: "0-1,3-5,7", DISK: "0-1,3-5,7", DEFAULT: "000000bb"}
        )
        await node.go("web")
        await node.becomes({})


async def test_housekeeping_keeps_interrupts_on_the_first_core(tmp_path: Path) -> None:
    asked = {"irq-load-balancing.crio.io": "housekeeping"}
    async with host_node(tmp_path, ALLOWED, more) as node, node.running():
        await begin(node, "web", asked, cpus=4)
        await node.becomes({NIC: "0-2,4-6", DISK: "0-2,4-6", DEFAULT: "00000077"})
        await begin(node, "sky", {"irq-load-balancing.crio.io/sky": "disable"})
        await node.becomes({NIC: "0,2,4,6", DISK: "0,2,4,6", DEFAULT: "00000055"})


async def test_cgroups_of_a_container_have_the_requested_settings(
    tmp_path: Path,
) -> None:
    asked = {
        "cpu-quota.crio.io": "disable",
        "cpu-load-balancing.crio.io": "disable",
    }
    async with host_node(tmp_path, ALLOWED, more) as node:
        async with node.running():
            await begin(node, "web", asked)
            await node.becomes(
                {
                    f"{POD}/cpu.max": "max",
                    f"{POD}/web/cpu.max": "max",
                    f"{TOP}/kubepods/cpuset.cpus.exclusive": "2,6",
                    f"{POD}/cpuset.cpus.exclusive": "2,6",
                    f"{POD}/web/cpuset.cpus.exclusive": "2,6",
                    f"{POD}/web/cpuset.cpus.partition": "isolated",
                }
            )
        assert node.changed() == {}


async def test_annotations_have_to_be_permitted(tmp_path: Path) -> None:
    asked = {
        "cpu-quota.crio.io": "disable",
        "irq-load-balancing.crio.io": "disable",
        "cpu-c-states.crio.io": "disable",
    }
    async with host_node(tmp_path, PLAIN, more) as node, node.running():
        await begin(node, "web", asked)
        node.document.write_text(ALLOWED)
        await node.becomes(
            {
                f"{POD}/cpu.max": "max",
                f"{POD}/web/cpu.max": "max",
                latency(2): "n/a",
                latency(6): "n/a",
                NIC: "0-1,3-5,7",
                DISK: "0-1,3-5,7",
                DEFAULT: "000000bb",
            }
        )
        node.document.write_text(PLAIN)
        await node.becomes({})


async def test_after_a_kill_the_quota_of_the_pod_is_restored(tmp_path: Path) -> None:
    asked = {
        "cpu-quota.crio.io": "disable",
        "cpu-load-balancing.crio.io": "disable",
    }
    async with host_node(tmp_path, ALLOWED, more) as node:
        async with node.running() as process:
            await begin(node, "web", asked)
            partition = node.host / POD[1:] / "web/cpuset.cpus.partition"
            await until(lambda: partition.read_text() == "isolated\n", within=8)
            process.kill()
        shutil.rmtree(partition.parent)
        await node.go("web")
        for path in [path for path in node.before if path.startswith(f"{POD}/web/")]:
            del node.before[path]  # type: ignore[attr-defined] # it is a dict
        assert node.changed().keys() == {
            f"{POD}/cpu.max",
            f"{POD}/cpuset.cpus.exclusive",
            f"{TOP}/kubepods/cpuset.cpus.exclusive",
        }

        async with node.running():
            await node.becomes({})


async def test_balloons_have_no_shared_cpus_beside_their_own(tmp_path: Path) -> None:
    document = BALLOONS + "  isolationAnnotations: true\n"
    async with host_node(tmp_path, document, more) as node, node.running():
        with pytest.raises(PluginRefused, match="no shared CPUs beside its exclusive"):
            await node.pod("web", 1, {"cpu-shared.crio.io/web": "enable"})


async def test_an_ineffective_partition_is_reported(tmp_path: Path) -> None:
    asked = {"cpu-load-balancing.crio.io": "disable"}

    def old_kernel(files: dict[str, str]) -> None:
        more(files)
        for folder in (f"{TOP}/kubepods", POD):
            del files[f"{folder}/cpuset.cpus.exclusive"]

    async with host_node(tmp_path, ALLOWED, old_kernel) as node, node.running():
        await begin(node, "web", asked, without="cpuset.cpus.exclusive")
        log = tmp_path / "log"
        await until(lambda: "isolation.ineffective" in log.read_text(), within=8)
        assert node.changed() == {}

        await begin(node, "sky", {"cpu-c-states.crio.io": "disable"})
        await until(lambda: len(node.changed()) == 2, within=8)
        assert log.read_text().count("isolation.ineffective") == 1


async def test_cgroups_are_set_as_soon_as_they_exist(tmp_path: Path) -> None:
    asked = {"cpu-quota.crio.io": "disable", "cpu-c-states.crio.io": "disable"}
    at_once = {latency(2): "n/a", latency(6): "n/a"}
    async with host_node(tmp_path, ALLOWED, more) as node, node.running():
        await create(node, "web", asked)
        await node.becomes(at_once)
        await start(node, "web")
        await node.becomes(
            at_once | {f"{POD}/cpu.max": "max", f"{POD}/web/cpu.max": "max"}
        )
