"""Containers of a real containerd that came, or went, while the daemon was down."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.tree import HostTree
from nri_resmgr.values import CpuSet
from tests.real_host.containerd import Containerd
from tests.real_host.documents import STATIC
from tests.real_host.patience import wait_until
from tests.real_host.plugin_process import PluginProcess
from tests.real_host.pods import Container, Pod, PodSpec
from tests.real_host.resources import Resources

pytestmark = [
    pytest.mark.containerd,
    pytest.mark.skipif(
        len(read_machine(HostTree("/")).online) < 2, reason="needs a CPU to share"
    ),
]

MACHINE = read_machine(HostTree("/"))
ALL = MACHINE.online - MACHINE.isolated
# One CPU is reserved by default.
ALL_BUT_RESERVED = len(ALL) - 1

# The runtime writes the values, or the daemon does so after its reply.
PATIENCE = 60

Plugin = Callable[..., AbstractContextManager[PluginProcess]]


@pytest.fixture
def plugin(containerd: Containerd, tmp_path: Path) -> Plugin:
    """Start the daemon, which remembers in one folder what it decided."""

    @contextmanager
    def run(document: str = "") -> Iterator[PluginProcess]:
        socket, log = containerd.layout.nri_socket, tmp_path / "log"
        state = ("--state-dir", str(tmp_path / "state"))
        with PluginProcess.resource_policy(
            socket, log, *state, document=document
        ) as process:
            yield process

    return run


def start(daemon: Containerd, name: str, resources: Resources) -> tuple[Pod, Container]:
    pod = daemon.run_pod(PodSpec(name, qos=resources.qos))
    return pod, pod.start(name, resources)


def cpus_of(container: Container) -> CpuSet:
    return CpuSet.parse(container.cgroup.read("cpuset.cpus"))


def wait_for_cpus(container: Container, wanted: CpuSet) -> None:
    wait_until(lambda: cpus_of(container) == wanted, f"CPUs {wanted}", PATIENCE)


def test_a_guaranteed_container_has_its_cpus_to_itself_after_the_start(
    containerd: Containerd, plugin: Plugin
) -> None:
    with plugin(STATIC) as daemon:
        _, shared = start(containerd, "log", Resources.best_effort())
        assert cpus_of(shared) == ALL
        daemon.kill()
        _, exclusive = start(containerd, "db", Resources.guaranteed(1))
        _, late = start(containerd, "late", Resources.best_effort())
        daemon.start()

        wait_until(lambda: len(cpus_of(exclusive)) == 1, "an exclusive CPU", PATIENCE)
        wait_for_cpus(shared, ALL - cpus_of(exclusive))
        wait_for_cpus(late, ALL - cpus_of(exclusive))


def test_a_guaranteed_container_without_room_gets_it_when_it_comes(
    containerd: Containerd, plugin: Plugin
) -> None:
    with plugin() as daemon:
        pod, shared = start(containerd, "log", Resources.burstable(0.1))
        pool = cpus_of(shared)
        assert len(pool) == ALL_BUT_RESERVED
        daemon.kill()
        _, whole = start(containerd, "db", Resources.guaranteed(ALL_BUT_RESERVED))
        daemon.start()
        wait_for_cpus(whole, pool)
        assert daemon.events("container.fell-back")[-1]["title"] == "default/db/db"

        pod.remove()
        wait_until(
            lambda: bool(daemon.events("container.now-fits")), "its CPUs", PATIENCE
        )
        assert cpus_of(whole) == pool
        _, late = start(containerd, "late", Resources.best_effort())
        assert cpus_of(late).isdisjoint(pool)


def test_a_best_effort_container_makes_way(
    containerd: Containerd, plugin: Plugin
) -> None:
    with plugin():
        _, shared = start(containerd, "log", Resources.best_effort())
        pool = cpus_of(shared)
        pod, whole = start(containerd, "db", Resources.guaranteed(ALL_BUT_RESERVED))
        assert cpus_of(whole) == pool
        wait_for_cpus(shared, ALL - pool)
        pod.remove()

        wait_for_cpus(shared, pool)


def test_a_best_effort_container_leaves_the_reserved_cpus_at_a_stop(
    containerd: Containerd, plugin: Plugin
) -> None:
    with plugin():
        pod, whole = start(containerd, "db", Resources.guaranteed(ALL_BUT_RESERVED))
        pool = cpus_of(whole)
        _, crowded_out = start(containerd, "log", Resources.best_effort())
        assert cpus_of(crowded_out).isdisjoint(pool)
        pod.remove()

        wait_for_cpus(crowded_out, pool)


def test_a_best_effort_container_leaves_the_reserved_cpus_at_a_start(
    containerd: Containerd, plugin: Plugin
) -> None:
    with plugin() as daemon:
        pod, whole = start(containerd, "db", Resources.guaranteed(ALL_BUT_RESERVED))
        pool = cpus_of(whole)
        _, crowded_out = start(containerd, "log", Resources.best_effort())
        assert cpus_of(crowded_out).isdisjoint(pool)
        daemon.kill()
        pod.remove()
        daemon.start()

        wait_for_cpus(crowded_out, pool)
