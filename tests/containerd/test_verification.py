"""Foreign writes to a container's cgroup on a real containerd are repaired."""

from __future__ import annotations

from pathlib import Path

import pytest

from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.tree import HostTree
from nri_resmgr.values import CpuSet
from tests.real_host.containerd import Containerd
from tests.real_host.documents import STATIC
from tests.real_host.patience import wait_until
from tests.real_host.plugin_process import PluginProcess
from tests.real_host.pods import Container, PodSpec
from tests.real_host.resources import Resources

pytestmark = pytest.mark.containerd

MACHINE = read_machine(HostTree("/"))
# No container shares CPUs that isolcpus= names.
ALL = MACHINE.online - MACHINE.isolated
OWN = ALL.lowest(1)
OFTEN = ("--verify-interval", "1")
BY_RUNTIME = ("--apply-updates", "runtime")


def start(daemon: Containerd, name: str, resources: Resources) -> Container:
    return daemon.run_pod(PodSpec(name, qos=resources.qos)).start(name, resources)


def cpus_of(container: Container) -> CpuSet:
    return CpuSet.parse(container.cgroup.read("cpuset.cpus"))


def write_all_cpus(container: Container) -> None:
    for folder in container.cgroup.folders():
        if (file := folder / "cpuset.cpus").exists():
            file.write_text(str(ALL))


def test_drift_is_repaired_by_an_update_at_once(
    containerd: Containerd, tmp_path: Path
) -> None:
    always = ("--unsolicited-updates", "always", *BY_RUNTIME)
    with PluginProcess.resource_policy(
        containerd.layout.nri_socket, tmp_path / "log", *OFTEN, *always, document=STATIC
    ) as plugin:
        container = start(containerd, "own", Resources.guaranteed(len(OWN)))
        own = cpus_of(container)
        write_all_cpus(container)
        plugin.wait_for("drift.cleared")
        (drifted,) = plugin.events("container.drifted")
        after = cpus_of(container)

    assert len(own) == len(OWN)
    assert after == own
    assert drifted["kinds"] == "cpus"
    assert f"may run on CPUs {ALL}, but {own} was decided" in drifted["why"]


def test_without_calls_the_next_reply_repairs_drift(
    containerd: Containerd, tmp_path: Path
) -> None:
    never = ("--unsolicited-updates", "never", *BY_RUNTIME)
    with PluginProcess.resource_policy(
        containerd.layout.nri_socket, tmp_path / "log", *OFTEN, *never, document=STATIC
    ) as plugin:
        container = start(containerd, "own", Resources.guaranteed(len(OWN)))
        own = cpus_of(container)
        write_all_cpus(container)
        plugin.wait_for("container.drifted")
        before = cpus_of(container)
        wait_until(
            lambda: _repaired(containerd, container, own), "a reply that mends it"
        )
        plugin.wait_for("drift.cleared")

    assert before == ALL


def test_drift_is_repaired_without_the_runtime(
    containerd: Containerd, tmp_path: Path
) -> None:
    with PluginProcess.resource_policy(
        containerd.layout.nri_socket, tmp_path / "log", *OFTEN, document=STATIC
    ) as plugin:
        container = start(containerd, "own", Resources.guaranteed(len(OWN)))
        own = cpus_of(container)
        write_all_cpus(container)
        plugin.wait_for("drift.cleared")
        after = cpus_of(container)

    assert after == own


def _repaired(daemon: Containerd, container: Container, own: CpuSet) -> bool:
    with daemon.run_pod(PodSpec("other", qos=Resources.best_effort().qos)) as pod:
        pod.start("other", Resources.best_effort())
    return cpus_of(container) == own


def test_nothing_is_reported_of_a_node_that_nothing_touches(
    containerd: Containerd, tmp_path: Path
) -> None:
    debug = ("--log-debug", "app.verification")
    with PluginProcess.resource_policy(
        containerd.layout.nri_socket, tmp_path / "log", *OFTEN, *debug
    ) as plugin:
        start(containerd, "some", Resources.burstable(0.1)).stop()
        start(containerd, "shared", Resources.best_effort())
        plugin.kill()
        plugin.start()  # what was sent is read from the checkpoint
        start(containerd, "other", Resources.best_effort())
        wait_until(lambda: verdicts_in(plugin) == {"as-decided": 2}, "both verified")
        logged = plugin.log_text

    assert "container.drifted" not in logged
    assert "Traceback" not in logged


def verdicts_in(plugin: PluginProcess) -> dict[str, int]:
    rounds = plugin.events("verification.round")
    return dict(rounds[-1]["verdicts"]) if rounds else {}
