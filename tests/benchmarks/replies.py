"""``python -m tests.benchmarks.replies``: replies of the daemon, with real cgroups.

There are 250 cgroups of shared containers, with a sleeping process each. In each turn
the daemon is started in one mode after the other, on our test runtime. Each time
containers with an exclusive CPU are created, started and stopped; what the runtime does
with the replies is not in the figures. In each turn, while no daemon runs, a bare loop
writes the same cpusets, too: the least that a mode takes that writes them.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, cast

from nri_proto import Event, NriLevel
from nri_proto import nri_pb2 as pb
from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.tree import HostTree
from nri_resmgr.testing import Runtime, RuntimeOptions, plugin_process
from nri_resmgr.testing.plugin import ConnectedPlugin
from nri_resmgr.testing.rounds import notify_all
from nri_resmgr.topology import Machine
from nri_resmgr.values import CpuSet
from tests.benchmarks.awake import awake_cpus
from tests.benchmarks.interrupts import orderly_end
from tests.benchmarks.modes import PLUGIN_MODES, Mode
from tests.benchmarks.real_cgroups import CgroupTree
from tests.benchmarks.workload import amounts_of, container_of, pod_of
from tests.real_host.patience import patience

SHARED: Final = 250
TURNS: Final = 10
REPETITIONS: Final = 20  # of each turn
WARM_UP: Final = 2  # repetitions of each turn, as the daemon has just started

# containerd 2.1, which must not be sent updates that it did not ask for.
LEVEL: Final = NriLevel(0, 8)

CALLS: Final = ("CreateContainer", "StartContainer", "StopContainer")
BARE: Final = (f"narrow {SHARED} cpusets", f"widen {SHARED} cpusets")
_BARE_MODE: Final = "bare loop"

# The ratio is the median over turns, of a turn's medians.
_HEADER: Final = "| mode | what | p50, ms | p99, ms | times narrowing, p50 | aim |"
_AIMS: Final = {
    "CreateContainer": "p99 ≤ 5 ms",
    "StartContainer": "≤ 1.5 times narrowing",
    "StopContainer": "p99 ≤ 5 ms",
}

_IDENTITY: Final = "90-resource-policy"
_MS: Final = 1e3
_CPU: Final = pb.LinuxCPU(
    shares=pb.OptionalUInt64(value=1024),
    quota=pb.OptionalInt64(value=100_000),
    period=pb.OptionalUInt64(value=100_000),
)
_PAUSE: Final = 0.001  # seconds between two looks at what is allowed
_PATIENCE: Final = 10.0  # seconds

Pair = tuple[pb.PodSandbox, pb.Container]
Times = tuple[float, ...]  # milliseconds


class Node:
    """The cgroups of all containers, and the messages about them.

    Args:
        tree: Where the cgroups are made.
        machine: This one.
        count: The number of shared containers.

    Attributes:
        shared: The shared containers, each with its pod.
    """

    def __init__(self, tree: CgroupTree, machine: Machine, count: int = SHARED) -> None:
        self._tree = tree
        self._machine = machine
        self._paths: dict[str, str] = {}
        self._pids: dict[str, int] = {}
        self.shared = [self._pair(number) for number in _numbers("/besteffort", count)]
        for _, container in self.shared:
            container.pid = self._pids[container.id] = self._run(container)

    async def measure(self, plugin: ConnectedPlugin, number: int) -> Times:
        """Create, start, stop and remove a container with an exclusive CPU."""
        pod, container = self._pair(number)
        container.linux.resources.cpu.CopyFrom(_CPU)
        pid = self._run(container)
        await notify_all((plugin,), Event.RUN_POD_SANDBOX, pod)

        begin = time.perf_counter()
        creation = pb.CreateContainerRequest(pod=pod, container=container)
        message = await plugin.call("CreateContainer", creation)
        created = time.perf_counter() - begin
        reply = cast("pb.CreateContainerResponse", message)
        self._apply(container.id, reply.adjust.linux.resources.cpu)
        self._update(reply.update)
        container.state, container.pid = pb.CONTAINER_CREATED, pid
        await notify_all((plugin,), Event.POST_CREATE_CONTAINER, pod, container)

        begin = time.perf_counter()
        await notify_all((plugin,), Event.START_CONTAINER, pod, container)
        started = time.perf_counter() - begin
        container.state = pb.CONTAINER_RUNNING
        self._check_alone(pid)
        await notify_all((plugin,), Event.POST_START_CONTAINER, pod, container)

        self._tree.end(self._paths[container.id])
        container.state, container.pid = pb.CONTAINER_STOPPED, 0
        begin = time.perf_counter()
        stop = pb.StopContainerRequest(pod=pod, container=container)
        message = await plugin.call("StopContainer", stop)
        stopped = time.perf_counter() - begin
        self._update(cast("pb.StopContainerResponse", message).update)
        await notify_all((plugin,), Event.STOP_POD_SANDBOX, pod)
        await notify_all((plugin,), Event.REMOVE_CONTAINER, pod, container)
        await notify_all((plugin,), Event.REMOVE_POD_SANDBOX, pod)
        await self.until_all_share_all()
        return _MS * created, _MS * started, _MS * stopped

    def write_bare(self) -> Times:
        """Narrow and widen the cpusets of all shared containers."""
        paths = [self._paths[container.id] for _, container in self.shared]
        everything = self._machine.online
        narrowed = self._tree.bare_write(paths, str(everything.lowest(1)))
        widened = self._tree.bare_write(paths, str(everything))
        return _MS * narrowed, _MS * widened

    async def until_all_share_all(self) -> None:
        """Wait for what the daemon does after its reply."""
        await self.until_all_have(self._machine.online)

    async def until_all_have(
        self, cpus: CpuSet, seconds: float = _PATIENCE, pause: float = _PAUSE
    ) -> None:
        """Wait until the kernel allows exactly these CPUs to each shared container.

        Args:
            cpus: The CPUs.
            seconds: How long to wait for them.
            pause: Between two looks: the kernel has no event for it.
        """
        wanted, waiting = set(cpus), list(self._pids.values())
        async with asyncio.timeout(patience(seconds)):
            while waiting:
                while waiting and _allowed(waiting[-1]) == wanted:
                    waiting.pop()
                await asyncio.sleep(pause if waiting else 0)

    def cpus_files(self) -> Iterator[str]:
        """Return what the files of all shared containers hold."""
        for _, container in self.shared:
            yield self._tree.cpus_file(self._paths[container.id]).read_text().strip()

    def _pair(self, number: int) -> Pair:
        """Make a pod and its container, with a cgroup below this mode's own."""
        pod, container = pod_of(number), container_of(number, self._machine)
        pod.linux.cgroup_parent = f"{self._tree.top}{pod.linux.cgroup_parent}"
        path = f"{pod.linux.cgroup_parent}/{container.id}"
        container.linux.cgroups_path = self._paths[container.id] = path
        return pod, container

    def _run(self, container: pb.Container) -> int:
        return self._tree.add(self._paths[container.id])

    def _update(self, updates: Sequence[pb.ContainerUpdate]) -> None:
        for update in updates:
            self._apply(update.container_id, update.linux.resources.cpu)

    def _apply(self, container: str, cpu: pb.LinuxCPU) -> None:
        if cpu.cpus:
            self._tree.cpus_file(self._paths[container]).write_text(cpu.cpus)

    def _check_alone(self, pid: int) -> None:
        """Check that the kernel keeps others off its CPU, or figures mean nothing."""
        own = _allowed(pid)
        assert len(own) == 1, f"CPUs {own} are not one CPU"
        beside = [each for each in self._pids.values() if own & _allowed(each)]
        assert not beside, f"{len(beside)} other containers may use CPUs {own}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=TURNS, help="(%(default)s)")
    options = parser.parse_args()
    machine = read_machine(HostTree("/"))
    name = f"nri-resmgr-bench-{os.getpid()}"
    with orderly_end(), awake_cpus(), CgroupTree(name) as tree:
        node = Node(tree, machine)
        gc.collect()
        gc.freeze()  # the messages of all containers would be looked at again and again
        found = asyncio.run(_take_turns(node, options.turns))
    print(f"{_HEADER}\n{'|---' * _HEADER.count(' | ')}|---|")
    for row in _rows(found):
        print(row)


async def _take_turns(node: Node, turns: int) -> Mapping[str, list[list[Times]]]:
    """Return the times of each mode and of the bare loop: a list for each turn."""
    found: dict[str, list[list[Times]]] = {}
    for turn in range(turns):
        first = turn % len(PLUGIN_MODES)
        for mode in (*PLUGIN_MODES[first:], *PLUGIN_MODES[:first]):
            found.setdefault(mode.name, []).append(await _session(node, mode))
        bare = [node.write_bare() for _ in range(WARM_UP + REPETITIONS)]
        found.setdefault(_BARE_MODE, []).append(bare[WARM_UP:])
    return found


async def _session(node: Node, mode: Mode) -> list[Times]:
    """Measure a daemon from its start to its end."""
    with tempfile.TemporaryDirectory(prefix="nri-replies-") as name:
        folder = Path(name)
        async with Runtime(folder, LEVEL, options=RuntimeOptions(records=False)) as at:
            for pod, container in node.shared:
                at.world.pods[pod.id] = pod
                at.world.containers[container.id] = container
            command = _command(at.socket_path, folder, mode)
            async with plugin_process(at, *command, identity=_IDENTITY):
                plugin = at.roster.named(_IDENTITY)
                assert plugin is not None
                await node.until_all_share_all()
                numbers = _numbers("", WARM_UP + REPETITIONS)
                times = [await node.measure(plugin, number) for number in numbers]
    return times[WARM_UP:]


def _rows(found: Mapping[str, Sequence[Sequence[Times]]]) -> Iterator[str]:
    narrowed = [_medians(turn)[0] for turn in found[_BARE_MODE]]
    for mode, turns in found.items():
        for place, what in enumerate(BARE if mode == _BARE_MODE else CALLS):
            figures = [times[place] for turn in turns for times in turn]
            last = statistics.quantiles(figures, n=100, method="inclusive")[-1]
            ratios = [
                _medians(turn)[place] / bare
                for turn, bare in zip(turns, narrowed, strict=True)
            ]
            cells = map(_round, (statistics.median(figures), last))
            ratio = _round(statistics.median(ratios))
            aim = _AIMS.get(what, "")
            yield f"| {' | '.join((mode, what, *cells, ratio, aim))} |"


def _medians(times: Sequence[Times]) -> list[float]:
    return [statistics.median(column) for column in zip(*times, strict=True)]


def _round(figure: float) -> str:
    return f"{figure:.2f}" if figure < 10 else f"{figure:.0f}"


def _numbers(qos: str, count: int) -> list[int]:
    """Return numbers of containers of one class, the first ones."""
    found: list[int] = []
    number = 0
    while len(found) < count:
        if amounts_of(number).qos == qos:
            found.append(number)
        number += 1
    return found


def _command(socket: Path, folder: Path, mode: Mode) -> Sequence[str]:
    config = folder / "config.yaml"
    config.write_text(mode.document)
    return (
        *(sys.executable, "-m", "nri_resmgr", "run", "--nri-socket", str(socket)),
        *("--config-file", str(config), "--state-dir", str(folder / "state")),
        *("--run-dir", str(folder / "run")),
        *("--control-socket", str(folder / "control")),
        *("--log-to", str(folder / "log")),
        *(mode.flags or ()),
    )


def _allowed(pid: int) -> set[int]:
    """Return the CPUs that a process' cpuset leaves it (sched_setaffinity(2))."""
    return os.sched_getaffinity(pid)


if __name__ == "__main__":
    main()
