"""The static policy on a real containerd: what containers see from inside."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.tree import HostTree
from nri_resmgr.values import CpuSet, NodeSet
from tests.real_host.containerd import Containerd
from tests.real_host.cri import CallFailed
from tests.real_host.documents import STATIC
from tests.real_host.patience import wait_until
from tests.real_host.plugin_process import PluginProcess
from tests.real_host.pods import Container, PodSpec
from tests.real_host.resources import Resources

pytestmark = pytest.mark.containerd

MACHINE = read_machine(HostTree("/"))
# No container shares CPUs that isolcpus= names.
ALL = MACHINE.online - MACHINE.isolated

# Half of the machine: 1 of 2 CPUs here, 8 of 16 in the emulated one.
MANY = len(ALL) // 2


@pytest.fixture(scope="module")
def shared_plugin(
    shared_containerd: Containerd, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PluginProcess]:
    """One process for all tests: a start takes ten seconds on an emulated CPU."""
    log = tmp_path_factory.mktemp("plugin") / "log"
    socket = shared_containerd.layout.nri_socket
    with PluginProcess.resource_policy(socket, log, document=STATIC) as process:
        yield process


@pytest.fixture
def plugin(containerd: Containerd, shared_plugin: PluginProcess) -> PluginProcess:
    """The running plugin; a test may kill it and start it again."""
    if not shared_plugin.is_up():
        shared_plugin.start()
    return shared_plugin


def start(daemon: Containerd, name: str, resources: Resources) -> Container:
    pod = daemon.run_pod(PodSpec(name, qos=resources.qos))
    return pod.start(name, resources)


def start_shared(daemon: Containerd, name: str) -> Container:
    return start(daemon, name, Resources.best_effort())


def start_exclusive(daemon: Containerd, name: str, cpus: int) -> Container:
    return start(daemon, name, Resources.guaranteed(cpus))


def cpus_of(container: Container) -> CpuSet:
    return CpuSet.parse(container.cpus())


def test_a_guaranteed_container_sees_its_cpus_and_a_shared_one_the_rest(
    containerd: Containerd, plugin: PluginProcess
) -> None:
    shared = start_shared(containerd, "shared")
    before = cpus_of(shared)
    exclusive = start_exclusive(containerd, "exclusive", MANY)
    own, during = cpus_of(exclusive), cpus_of(shared)
    inside = CpuSet.parse(exclusive.own_status_field("Cpus_allowed_list"))
    exclusive.stop()
    after = cpus_of(shared)

    assert inside == own
    assert (before, len(own), during, after) == (ALL, MANY, ALL - own, ALL)


def test_two_guaranteed_containers_never_share(
    containerd: Containerd, plugin: PluginProcess
) -> None:
    if len(ALL) < 4:
        pytest.skip("needs 4 CPUs; runs in the emulated machine")
    shared = start_shared(containerd, "shared")
    one = cpus_of(start_exclusive(containerd, "one", 2))
    other = cpus_of(start_exclusive(containerd, "other", MANY - 1))

    assert (len(one), len(other)) == (2, MANY - 1)
    assert one.isdisjoint(other)
    assert cpus_of(shared) == ALL - one - other


def test_a_request_that_does_not_fit_fails_with_a_sentence(
    containerd: Containerd, plugin: PluginProcess
) -> None:
    with pytest.raises(CallFailed) as refused:
        start_exclusive(containerd, "too-large", len(ALL))

    assert "to help, ask for at most" in str(refused.value)


def test_a_killed_plugin_finds_its_grants_again(
    containerd: Containerd, plugin: PluginProcess
) -> None:
    shared = start_shared(containerd, "shared")
    exclusive = start_exclusive(containerd, "exclusive", MANY)
    own = cpus_of(exclusive)
    plugin.kill()
    while_away = cpus_of(exclusive), cpus_of(shared)
    plugin.start()
    late = start_shared(containerd, "late")

    assert while_away == (own, ALL - own)
    assert (cpus_of(exclusive), cpus_of(shared)) == while_away
    assert cpus_of(late) == ALL - own


def test_changes_while_the_plugin_was_stopped_are_reconciled(
    containerd: Containerd, plugin: PluginProcess
) -> None:
    exclusive = start_exclusive(containerd, "exclusive", MANY)
    own = cpus_of(exclusive)
    plugin.kill()
    unpinned = start_shared(containerd, "unpinned")
    before = cpus_of(unpinned)
    plugin.start()
    # The runtime updates containers after the plugin has answered.
    wait_until(lambda: cpus_of(unpinned) == ALL - own, "the unpinned container to move")

    assert before == MACHINE.online
    assert cpus_of(exclusive) == own


def test_a_killed_containerd_gets_its_plugin_back(
    containerd: Containerd, plugin: PluginProcess
) -> None:
    shared = start_shared(containerd, "shared")
    exclusive = start_exclusive(containerd, "exclusive", MANY)
    own = cpus_of(exclusive)
    times = len(plugin.events("session.synchronized"))
    containerd.kill()
    containerd.start()
    plugin.wait_for("session.synchronized", times + 1)
    during = cpus_of(exclusive), cpus_of(shared)
    exclusive.stop()

    assert during == (own, ALL - own)
    assert cpus_of(shared) == ALL


def test_a_resize_moves_between_shared_and_exclusive_cpus(
    containerd: Containerd, plugin: PluginProcess
) -> None:
    if MANY < 2:
        pytest.skip("needs 4 CPUs; runs in the emulated machine")
    shared = start_shared(containerd, "shared")
    exclusive = start_exclusive(containerd, "exclusive", MANY)
    before = cpus_of(exclusive)
    exclusive.update(Resources.guaranteed(MANY - 1))
    after = cpus_of(exclusive)

    assert len(after) == MANY - 1
    assert after <= before
    assert cpus_of(shared) == ALL - after


@pytest.mark.numa
def test_memory_comes_from_the_nodes_of_the_cpus(
    containerd: Containerd, plugin: PluginProcess
) -> None:
    if len(MACHINE.memory_nodes) < 2:
        pytest.skip("one memory node only; runs in the emulated machine")
    exclusive = start_exclusive(containerd, "exclusive", 2)
    cpus = cpus_of(exclusive)
    mems = NodeSet.parse(exclusive.mems())

    assert len(MACHINE.nodes_of(cpus)) == 1
    assert mems == MACHINE.nodes_of(cpus)


def test_dry_run_decides_and_changes_nothing(
    containerd: Containerd, plugin: PluginProcess, tmp_path: Path
) -> None:
    plugin.kill()
    log = tmp_path / "plugin.log"
    socket = containerd.layout.nri_socket
    new = PluginProcess.resource_policy(socket, log, "--dry-run", document=STATIC)
    with new as dry:
        exclusive = start_exclusive(containerd, "exclusive", 1)

        assert cpus_of(exclusive) == MACHINE.online
        assert any(line.get("dry_run") for line in dry.events("container.placed"))
