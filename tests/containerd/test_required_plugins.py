"""A real containerd that requires the daemon, and one that is too old to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from nri_resmgr.daemon.defaults import DEFAULT_NAME
from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.tree import HostTree
from nri_resmgr.runtimes.switch import TOLERATED
from nri_resmgr.values import CpuSet
from tests.real_host.binaries import NRI_0_10
from tests.real_host.containerd import Containerd
from tests.real_host.containerd_config import Options
from tests.real_host.cri import CallFailed
from tests.real_host.documents import STATIC
from tests.real_host.patience import wait_until
from tests.real_host.plugin_process import PluginProcess
from tests.real_host.pods import Container, PodSpec
from tests.real_host.resources import Resources

pytestmark = pytest.mark.containerd

MACHINE: Final = read_machine(HostTree("/"))

SENTENCE: Final = (
    'validator "00-default-validator" rejected container adjustment, reason: '
    f'validation error: required plugin "{DEFAULT_NAME}" not present'
)


@pytest.fixture
def containerd(new_containerd: Callable[[Options], Containerd]) -> Containerd:
    made = new_containerd(Options(required_plugin=DEFAULT_NAME))
    made.start()
    return made


def start(daemon: Containerd, name: str, **annotations: str) -> Container:
    given = {key.replace("_", "/"): value for key, value in annotations.items()}
    pod = daemon.run_pod(PodSpec(name, annotations=given))
    return pod.start(name, Resources.guaranteed(1))


def cpus_of(container: Container) -> CpuSet:
    return CpuSet.parse(container.cgroup.read("cpuset.cpus"))


@pytest.mark.skipif(len(MACHINE.online) < 2, reason="needs a CPU to share")
def test_containers_are_created_while_the_daemon_runs(
    containerd: Containerd, tmp_path: Path
) -> None:
    with PluginProcess.resource_policy(
        containerd.layout.nri_socket, tmp_path / "log", document=STATIC
    ):
        assert len(cpus_of(start(containerd, "db"))) == 1


def test_no_container_is_created_without_the_daemon(
    containerd: Containerd, tmp_path: Path
) -> None:
    if containerd.release < NRI_0_10:
        pytest.skip("containerd has no default validator before 2.2")
    with pytest.raises(CallFailed) as refusal:
        start(containerd, "before")
    # Its own pod has the annotation.
    start(containerd, "tolerant", **{f"{TOLERATED}_pod": "true"})
    log = tmp_path / "log"
    with PluginProcess.resource_policy(containerd.layout.nri_socket, log) as daemon:
        running = start(containerd, "during")
        daemon.kill()
        with pytest.raises(CallFailed):
            start(containerd, "after")
        daemon.start()
        start(containerd, "again")

    assert SENTENCE in refusal.value.details
    # What runs is left alone.
    assert running.status_field("State")


def test_an_older_containerd_ignores_the_requirement(
    containerd: Containerd, tmp_path: Path
) -> None:
    if containerd.release >= NRI_0_10:
        pytest.skip("containerd has a default validator since 2.2")
    early = start(containerd, "early")
    everything = MACHINE.online

    # It starts with the table, runs containers without the daemon, on all CPUs...
    assert cpus_of(early) in (CpuSet(), everything)
    # ... and the daemon corrects them when it comes.
    with PluginProcess.resource_policy(
        containerd.layout.nri_socket, tmp_path / "log", document=STATIC
    ):
        wait_until(lambda: len(cpus_of(early)) == 1, "an exclusive CPU", 60)
