"""Scheduling classes of containers on a real containerd, as the kernel shows them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs
import pytest

from tests.real_host.containerd import Containerd
from tests.real_host.plugin_process import PluginProcess
from tests.real_host.pods import Container, ContainerSpec, PodSpec
from tests.real_host.resources import Resources

pytestmark = pytest.mark.containerd

POLICY: Final = """
apiVersion: config.nri/v1alpha1
kind: TopologyAwarePolicy
spec:
  schedulingClasses:
    - {name: slow, policy: batch, nice: 5, ioClass: be, ioPriority: 7}
    - {name: last, policy: idle, ioClass: idle}
    - {name: first, policy: rr, priority: 42, ioClass: rt, ioPriority: 2}
    - {name: polite, policy: other, nice: 11}
    - {name: disk, ioClass: be, ioPriority: 1}
  namespaceSchedulingClasses: {jobs: last}
"""
KEY: Final = "scheduling-class.resource-policy.nri.io"
FAMILY: Final = ("sh", "-c", "sleep 1000 & sleep 1000 & wait")
MEMBERS: Final = 3
# Where no class sets a nice value, a container has that of this process, by way of
# containerd.
INHERITED: Final = os.nice(0)


@attrs.frozen
class Scheduling:
    """What programs of util-linux and the kernel say of one process."""

    policy: str
    io: str
    nice: int
    priority: int = 0

    @classmethod
    def of(cls, pid: str) -> Scheduling:
        """Ask chrt, ionice and getpriority(2)."""
        chrt = _output("chrt", "--pid", pid)
        policy = re.search(r"policy: (\w+)", chrt)
        priority = re.search(r"priority: (\d+)", chrt)
        assert policy
        assert priority
        io = _output("ionice", "-p", pid).strip()
        nice = os.getpriority(os.PRIO_PROCESS, int(pid))
        return cls(policy[1], io, nice, int(priority[1]))


def _output(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, check=True, text=True)
    return done.stdout


@pytest.fixture
def plugin(containerd: Containerd, tmp_path: Path) -> Iterator[PluginProcess]:
    if not (shutil.which("chrt") and shutil.which("ionice")):
        pytest.skip("chrt and ionice of util-linux are missing")
    socket = containerd.layout.nri_socket
    log = tmp_path / "log"
    with PluginProcess.resource_policy(socket, log, document=POLICY) as process:
        yield process


def family(container: Container) -> list[str]:
    folder = next(container.cgroup.folders())
    return (folder / "cgroup.procs").read_text().split()


@pytest.mark.usefixtures("plugin")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param(
            "slow",
            Scheduling("SCHED_BATCH", "best-effort: prio 7", 5),
            id="a batch job, with nice",
        ),
        pytest.param(
            "last", Scheduling("SCHED_IDLE", "idle", INHERITED), id="what may starve"
        ),
        pytest.param(
            "polite",
            # The kernel makes an I/O priority of nice where none is set.
            Scheduling("SCHED_OTHER", "none: prio 0", 11),
            id="nice alone",
        ),
        pytest.param(
            "disk",
            Scheduling("SCHED_OTHER", "best-effort: prio 1", INHERITED),
            id="an I/O priority alone",
        ),
    ],
)
def test_all_of_a_container_is_in_its_class_from_the_start(
    containerd: Containerd, name: str, expected: Scheduling
) -> None:
    spec = PodSpec("web", annotations={f"{KEY}/container.a": name})
    with containerd.run_pod(spec) as pod:
        container = pod.create(ContainerSpec("a", Resources.guaranteed(0.1), FAMILY))
        container.start()
        other = pod.start("b", Resources.guaranteed(0.1))

        found = [Scheduling.of(pid) for pid in family(container)]
        assert len(found) == MEMBERS
        assert set(found) == {expected}
        assert Scheduling.of(family(other)[0]).policy == "SCHED_OTHER"


def test_real_time_is_had_as_a_whole_or_not_at_all(
    containerd: Containerd, plugin: PluginProcess
) -> None:
    # Such a kernel gives real time to groups that were given some.
    is_by_group = any(Path("/sys/fs/cgroup").glob("*/cpu.rt_runtime_us"))
    expected = Scheduling("SCHED_RR", "realtime: prio 2", INHERITED, 42)
    if is_by_group:
        expected = Scheduling("SCHED_OTHER", "none: prio 0", INHERITED)

    spec = PodSpec("web", annotations={f"{KEY}/container.a": "first"})
    with containerd.run_pod(spec) as pod:
        container = pod.start("a", Resources.guaranteed(0.1))

        assert Scheduling.of(family(container)[0]) == expected
        refused = plugin.events("scheduling.not-set")
        assert bool(refused) is is_by_group


@pytest.mark.usefixtures("plugin")
def test_a_namespace_names_a_class(containerd: Containerd) -> None:
    with containerd.run_pod(PodSpec("job", namespace="jobs")) as pod:
        container = pod.start("a", Resources.guaranteed(0.1))

        found = Scheduling.of(family(container)[0])
        assert found == Scheduling("SCHED_IDLE", "idle", INHERITED)
