"""A host whose containers can be adjusted: their cgroups, and an RDT group."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from nri_resmgr.cli.workload import Workload
from nri_resmgr.host.cgroups.top_tier import TOP_TIER_FILE
from nri_resmgr.stub import ContainerAdjustment
from nri_resmgr.testing import Runtime
from nri_resmgr.values import QosClass
from tests.daemon.host_nodes import add_cgroups, add_gold_group, run_in_cgroup

CGROUPS: Final = "sys/fs/cgroup/kubepods"
GOLD: Final = "sys/fs/resctrl/gold/tasks"
ROOT: Final = "sys/fs/resctrl/tasks"


def add_kernel(host: Path) -> None:
    """Add a resctrl with a group, and the cgroups of two containers."""
    add_gold_group(host)
    cgroup = {
        "cgroup.procs": "",
        "cpuset.cpus": "\n",
        "cpuset.mems": "\n",
        "cpu.weight": "39\n",
        "cpu.max": "max 100000\n",
        "memory.max": "max\n",
        "memory.current": "1000\n",
        "io.stat": "",
        "io.weight": "default 100\n",
        TOP_TIER_FILE: "-1\n",
    }
    add_cgroups(host, "cpu cpuset io memory", cgroup)


async def create(
    runtime: Runtime, name: str, qos: QosClass = QosClass.BURSTABLE, cpus: int = 1000
) -> ContainerAdjustment:
    """Run a pod with a container of the same name and id.

    Args:
        runtime: The runtime.
        name: ``web`` or ``next``, which have cgroups.
        qos: Of the pod.
        cpus: Requested milli-CPUs.

    Returns:
        What was sent to the runtime about the container.
    """
    return await run_in_cgroup(runtime, Workload(name, qos, cpus))


def cgroup_value(host: Path, name: str, container: str = "web") -> str:
    """Return what a file of a container's cgroup has."""
    return (host / CGROUPS / container / name).read_text().split("\n")[0].strip()


def limits(host: Path) -> tuple[str, str]:
    """Return the limits in the cgroup of the first container."""
    return cgroup_value(host, "cpu.max"), cgroup_value(host, "memory.max")
