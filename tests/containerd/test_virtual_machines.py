"""Sandboxes of virtual machines on a real containerd, in the kernel.

A handler of the same OCI runtime stands in for one of Kata Containers: the sandbox has
a process in its cgroup, and that is all that matters here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.tree import HostTree
from nri_resmgr.values import CpuSet
from tests.real_host.cgroups import Cgroup
from tests.real_host.containerd import Containerd
from tests.real_host.containerd_config import VM_HANDLER
from tests.real_host.documents import STATIC
from tests.real_host.patience import wait_until
from tests.real_host.plugin_process import PluginProcess
from tests.real_host.pods import PodSpec
from tests.real_host.resources import QosClass, Resources

MACHINE: Final = read_machine(HostTree("/"))
ALL: Final = MACHINE.online - MACHINE.isolated
TOPOLOGY_AWARE: Final = (
    "{apiVersion: config.nri/v1alpha1, kind: TopologyAwarePolicy, "
    "spec: {reservedResources: {cpu: 1}, pinCPU: true, pinMemory: true}}"
)

pytestmark = [
    pytest.mark.containerd,
    pytest.mark.skipif(len(ALL) < 2, reason="needs a CPU to share"),
]


def plugin_with(
    containerd: Containerd, folder: Path, document: str, *flags: str
) -> PluginProcess:
    flags = ("--state-dir", str(folder / "state"), *flags)
    socket = containerd.layout.nri_socket
    return PluginProcess.resource_policy(
        socket, folder / "log", *flags, document=document
    )


def cpus_of(cgroup: Cgroup) -> CpuSet:
    return CpuSet.parse(cgroup.read("cpuset.cpus"))


def in_force(cgroup: Cgroup) -> CpuSet:
    """Return the CPUs of the sandbox's process, as the kernel says."""
    pid = cgroup.processes()[0]
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "Cpus_allowed_list":
            return CpuSet.parse(value.strip())
    raise KeyError(pid)


def test_a_sandbox_is_where_its_containers_are(
    containerd: Containerd, tmp_path: Path
) -> None:
    with plugin_with(containerd, tmp_path, STATIC):
        machine = containerd.run_pod(PodSpec("vm", handler=VM_HANDLER))
        usual = containerd.run_pod(PodSpec("usual"))
        before = in_force(usual.cgroup)
        app = machine.start("app", Resources.guaranteed(1))
        wait_until(
            lambda: in_force(machine.cgroup) == cpus_of(app.cgroup), "it is pinned"
        )

        assert len(cpus_of(app.cgroup)) == 1
        assert in_force(usual.cgroup) == before
        app.stop()
        wait_until(lambda: in_force(machine.cgroup) == before, "it is released")


def test_with_an_overhead_it_is_pinned_before_any_container_exists(
    containerd: Containerd, tmp_path: Path
) -> None:
    overhead = Resources.guaranteed(0.1)
    spec = PodSpec("vm", QosClass.BURSTABLE, handler=VM_HANDLER, overhead=overhead)
    with plugin_with(containerd, tmp_path, TOPOLOGY_AWARE):
        machine = containerd.run_pod(spec)
        wait_until(lambda: in_force(machine.cgroup) != ALL, "it is pinned")

        assert in_force(machine.cgroup) < ALL  # a pool, without the reserved CPU
        app = machine.start("app", Resources.burstable(0.1))
        cpus = cpus_of(app.cgroup)
        wait_until(
            lambda: in_force(machine.cgroup) == cpus, "it is where its container is"
        )


def test_an_operator_can_name_other_handlers_or_none(
    containerd: Containerd, tmp_path: Path
) -> None:
    with plugin_with(containerd, tmp_path, STATIC, "--vm-handlers", "vm*,other"):
        machine = containerd.run_pod(PodSpec("vm", handler=VM_HANDLER))
        before = in_force(machine.cgroup)
        app = machine.start("app", Resources.guaranteed(1))

        assert len(cpus_of(app.cgroup)) == 1
        assert in_force(machine.cgroup) == before
