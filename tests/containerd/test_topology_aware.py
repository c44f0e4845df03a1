"""What the daemon does on a real containerd without any configuration."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.tree import HostTree
from nri_resmgr.values import CpuSet
from tests.real_host.containerd import Containerd
from tests.real_host.cri import CallFailed
from tests.real_host.plugin_process import PluginProcess
from tests.real_host.pods import Container, PodSpec
from tests.real_host.resources import Resources

pytestmark = pytest.mark.containerd

MACHINE = read_machine(HostTree("/"))


@pytest.fixture(scope="module")
def shared_plugin(
    shared_containerd: Containerd, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PluginProcess]:
    """One process for all tests; ask for `plugin` instead."""
    log = tmp_path_factory.mktemp("plugin") / "log"
    socket = shared_containerd.layout.nri_socket
    with PluginProcess.resource_policy(socket, log) as process:
        yield process


@pytest.fixture
def plugin(containerd: Containerd, shared_plugin: PluginProcess) -> PluginProcess:
    """The running plugin."""
    return shared_plugin


def start(
    daemon: Containerd, name: str, resources: Resources, namespace: str = "default"
) -> Container:
    pod = daemon.run_pod(PodSpec(name, resources.qos, namespace))
    return pod.start(name, resources)


def cpus_of(container: Container) -> CpuSet:
    return CpuSet.parse(container.cpus())


def test_only_containers_of_the_system_are_on_the_reserved_cpus(
    containerd: Containerd, plugin: PluginProcess
) -> None:
    if len(MACHINE.online) < 2:
        pytest.skip("one CPU is reserved and shared")
    nothing = Resources.best_effort()
    system = cpus_of(start(containerd, "dns", nothing, "kube-system"))
    user = cpus_of(start(containerd, "web", nothing))

    assert system
    assert user
    assert system.isdisjoint(user)


def test_a_guaranteed_container_has_its_cpu_to_itself(
    containerd: Containerd, plugin: PluginProcess
) -> None:
    if len(MACHINE.online) < 2:
        pytest.skip("the only CPU is reserved")
    exclusive = start(containerd, "db", Resources.guaranteed(1))
    shared = start(containerd, "web", Resources.best_effort())
    own = cpus_of(exclusive)

    assert len(own) == 1
    assert own.isdisjoint(cpus_of(shared))


def test_a_killed_plugin_finds_its_grants_again(
    containerd: Containerd, plugin: PluginProcess
) -> None:
    shared = start(containerd, "shared", Resources.best_effort())
    reserved = start(containerd, "dns", Resources.best_effort(), "kube-system")
    before = cpus_of(shared), cpus_of(reserved)
    plugin.kill()
    plugin.start()
    late = start(containerd, "late", Resources.best_effort())

    assert (cpus_of(shared), cpus_of(reserved)) == before
    assert cpus_of(late).isdisjoint(before[1])
    assert plugin.events("node.synchronized")[-1]["updates"] == 0


def test_a_request_that_does_not_fit_fails_with_a_sentence(
    containerd: Containerd, plugin: PluginProcess
) -> None:
    with pytest.raises(CallFailed, match=r"asks for .* exclusive CPUs.*to help, "):
        start(containerd, "huge", Resources.guaranteed(len(MACHINE.present) + 1))
