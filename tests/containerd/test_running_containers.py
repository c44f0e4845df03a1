"""Running containers on a real containerd, after a change of the CPUs that they share.

Their cgroups are written by the daemon. The runtime has a record of its own, which it
writes at each update of a container.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

import pytest

from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.tree import HostTree
from nri_resmgr.values import CpuSet
from tests.real_host.containerd import Containerd
from tests.real_host.cri import CallFailed
from tests.real_host.documents import STATIC
from tests.real_host.patience import wait_until
from tests.real_host.plugin_process import PluginProcess
from tests.real_host.pods import Container, ContainerSpec, PodSpec
from tests.real_host.resources import Resources

MACHINE: Final = read_machine(HostTree("/"))
ALL: Final = MACHINE.online - MACHINE.isolated

pytestmark = [
    pytest.mark.containerd,
    pytest.mark.skipif(len(ALL) < 2, reason="needs a CPU to share"),
]

EXCLUSIVE: Final = Resources.guaranteed(1)
SHARED: Final = ("web", "log", "cache")
# Longer than the daemon waits until it compares what it wrote, and writes again.
LATER: Final = 3.0

FAILING: Final = {
    "no such program": ContainerSpec("db", EXCLUSIVE, ("/bin/missing",)),
    "no such mount point": ContainerSpec(
        "db", EXCLUSIVE, mounts={"/bin/busybox/below": "/proc"}
    ),
    # containerd stores containers in a database with a limit for labels.
    "not stored": ContainerSpec("db", EXCLUSIVE, labels={"long": 5000 * "x"}),
}


@pytest.fixture(scope="module")
def shared_plugin(
    shared_containerd: Containerd, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PluginProcess]:
    folder = tmp_path_factory.mktemp("plugin")
    flags = ("--state-dir", str(folder / "state"), "--apply-updates", "cgroup")
    with PluginProcess.resource_policy(
        shared_containerd.layout.nri_socket, folder / "log", *flags, document=STATIC
    ) as process:
        yield process


@pytest.fixture
def plugin(containerd: Containerd, shared_plugin: PluginProcess) -> PluginProcess:
    """The running daemon; a test may kill it."""
    if not shared_plugin.is_up():
        shared_plugin.start()
    return shared_plugin


@pytest.fixture
def shared(containerd: Containerd, plugin: PluginProcess) -> list[Container]:
    resources = Resources.best_effort()
    pod = containerd.run_pod(PodSpec("shared", qos=resources.qos))
    found = [pod.start(name, resources) for name in SHARED]
    assert {str(cpus_of(one)) for one in found} == {str(ALL)}
    return found


def cpus_of(container: Container) -> CpuSet:
    return CpuSet.parse(container.cgroup.read("cpuset.cpus"))


def wait_for(shared: list[Container], cpus: CpuSet) -> None:
    wait_until(
        lambda: all(cpus_of(one) == cpus for one in shared), f"all to have {cpus}"
    )


def test_a_resize_brings_no_old_cpus_back(
    containerd: Containerd, shared: list[Container]
) -> None:
    with containerd.run_pod(PodSpec("exclusive")) as pod:
        left = ALL - cpus_of(pod.start("db", EXCLUSIVE))
        web, log, _ = shared
        web.update(Resources.burstable(0.2))
        at_once = cpus_of(web)
        time.sleep(LATER)
        log.update(Resources.burstable(0.2))

        assert (at_once, cpus_of(web), cpus_of(log)) == (left, left, left)
    wait_for(shared, ALL)
    web.update(Resources.burstable(0.3))
    assert cpus_of(web) == ALL
    time.sleep(LATER)
    assert {str(cpus_of(one)) for one in shared} == {str(ALL)}


def test_a_resize_does_not_while_the_daemon_is_down(
    containerd: Containerd, plugin: PluginProcess, shared: list[Container]
) -> None:
    """The runtime's record has followed: by replies to stops, or by calls."""
    with containerd.run_pod(PodSpec("exclusive")) as pod:
        left = ALL - cpus_of(pod.start("db", EXCLUSIVE))
        # Each reply brings two records in line.
        resources = Resources.best_effort()
        with containerd.run_pod(PodSpec("others", qos=resources.qos)) as others:
            stopped = [others.start(f"other-{one}", resources) for one in range(2)]
            time.sleep(LATER)
            for one in stopped:
                one.stop()
        plugin.kill()
        for one in shared:
            one.update(Resources.burstable(0.2))

        assert [cpus_of(one) for one in shared] == len(shared) * [left]


@pytest.mark.parametrize("why", FAILING)
def test_a_creation_that_fails_is_undone(
    why: str, containerd: Containerd, shared: list[Container]
) -> None:
    with containerd.run_pod(PodSpec("exclusive")) as pod:
        with pytest.raises(CallFailed):
            pod.create(FAILING[why]).start()
        time.sleep(LATER)
        # As a kubelet does with the pod; the sandbox is removed minutes later.
        pod.stop()
        wait_for(shared, ALL)


@pytest.mark.parametrize("why", FAILING)
def test_a_creation_that_fails_leaves_room_for_the_next_attempt(
    why: str, containerd: Containerd, shared: list[Container]
) -> None:
    with containerd.run_pod(PodSpec("exclusive")) as pod:
        with pytest.raises(CallFailed):
            pod.create(FAILING[why]).start()
        again = pod.create(ContainerSpec("db", EXCLUSIVE, attempt=1))
        again.start()

        assert len(cpus_of(again)) == 1
        wait_for(shared, ALL - cpus_of(again))
