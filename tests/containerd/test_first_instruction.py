"""No other container is on exclusive CPUs at the first instruction that they execute.

The exclusive container reads, by its first program, the CPUs that the kernel allows to
each process of 100 shared containers at that moment.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import attrs
import pytest

from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.tree import HostTree
from nri_resmgr.values import CpuSet
from tests.real_host.binaries import Binaries
from tests.real_host.cgroups import CpuShare
from tests.real_host.containerd import Containerd
from tests.real_host.containerd_config import Options
from tests.real_host.documents import STATIC
from tests.real_host.patience import is_slow_machine, wait_until
from tests.real_host.plugin_process import PluginProcess
from tests.real_host.pods import ContainerSpec, PodSpec
from tests.real_host.resources import Resources
from tests.real_host.runs import own_name

MACHINE: Final = read_machine(HostTree("/"))
ALL: Final = MACHINE.online - MACHINE.isolated

pytestmark = [
    pytest.mark.containerd,
    pytest.mark.skipif(len(ALL) < 2, reason="needs a CPU to share"),
    # The first test includes the start of all shared containers.
    pytest.mark.timeout(600),
]

# Emulated CPUs take seconds to start one, and more beside another busy worker.
SHARED: Final = 20 if is_slow_machine() else 100
# A pod's sandbox costs as much as a container of it.
IN_A_POD: Final = 10

# Of one CPU: writes take several times as long as the runtime takes to create the
# container. On an emulated CPU they do so in any case. With 1 % the others had left
# in each of six runs. With a quarter of 1 % all were still there: the daemon answered
# the start before the writes, and counted it as late.
PERCENT: Final = 20 if is_slow_machine() else 5
# A start that waits for its deadline would hide that it did not wait for the writes.
REQUEST_TIMEOUT: Final = 60.0

_OWN: Final = "/proc/self/status"
_FIELD: Final = "Cpus_allowed_list:"


@attrs.frozen(eq=False)
class Node:
    """A containerd, the daemon, and shared containers.

    Attributes:
        shared: All processes of the shared containers.
    """

    containerd: Containerd
    plugin: PluginProcess
    shared: Sequence[int]

    def all_share_all(self) -> bool:
        """Whether the kernel allows all CPUs to all shared containers."""
        return all(os.sched_getaffinity(pid) == set(ALL) for pid in self.shared)


@pytest.fixture(scope="module")
def node(
    programs: Binaries, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Node]:
    options = Options(request_timeout=REQUEST_TIMEOUT)
    containerd = Containerd(programs, tmp_path_factory.mktemp("cd"), options)
    folder = tmp_path_factory.mktemp("plugin")
    flags = ("--state-dir", str(folder / "state"), "--apply-updates", "cgroup")
    with ExitStack() as stack:
        stack.callback(containerd.close)
        containerd.start()
        plugin = PluginProcess.resource_policy(
            containerd.layout.nri_socket, folder / "log", *flags, document=STATIC
        )
        stack.enter_context(plugin)
        shared = list(start_shared(containerd))
        assert len(shared) == SHARED
        yield Node(containerd, plugin, shared)


def start_shared(containerd: Containerd) -> Iterator[int]:
    """Start the shared containers, and return their processes."""
    resources = Resources.best_effort()
    for number in range(SHARED):
        if number % IN_A_POD == 0:
            pod = containerd.run_pod(PodSpec(f"shared-{number}", qos=resources.qos))
        container = pod.start(f"shared-{number}", resources)
        yield from container.cgroup.processes()


def seen_from_inside(node: Node, folder: Path) -> dict[str, CpuSet]:
    """Start an exclusive container that reads as its first action; stop it.

    Returns:
        CPUs by the file that they are read from.
    """
    wait_until(node.all_share_all, "all shared containers to have all CPUs")
    files = (_OWN, *(f"/proc/{pid}/status" for pid in node.shared))
    exclusive = Resources.guaranteed(1)
    pod_spec = PodSpec("exclusive", qos=exclusive.qos, host_pids=True, logs=folder)
    command = ("/bin/grep", "-H", _FIELD, *files)
    with node.containerd.run_pod(pod_spec) as pod:
        pod.create(ContainerSpec("reader", exclusive, command)).start()
        wait_until(lambda: len(pod.output("reader")) >= len(files), "all lines")
        lines = [line.partition(f":{_FIELD}") for line in pod.output("reader")]
    return {file: CpuSet.parse(cpus.strip()) for file, _, cpus in lines}


def check_alone(node: Node, seen: dict[str, CpuSet]) -> None:
    own = seen.pop(_OWN)
    assert len(own) == 1
    assert len(seen) == SHARED
    assert {str(cpus) for cpus in seen.values()} == {str(ALL - own)}
    assert node.plugin.events("pin.by-runtime") == []


def test_others_have_left(node: Node, tmp_path: Path) -> None:
    check_alone(node, seen_from_inside(node, tmp_path))


def test_others_have_left_where_the_daemon_has_little_time(
    node: Node, tmp_path: Path
) -> None:
    with CpuShare(own_name("first"), PERCENT) as share:
        share.add(node.plugin.pid)
        seen = seen_from_inside(node, tmp_path)

    check_alone(node, seen)
