"""``python -m tests.benchmarks.sustained``: replies under a load that goes on.

Twenty containers come and twenty go each second, among 500, with all features of the
daemon on: state, metrics, control socket, log, verification. The load keeps its times:
a slow reply delays the next request, which is then sent at once.

With ``--attribute`` the daemon notes what else it does, and the slowest replies are
listed with that; the notes cost some microseconds each.
"""

from __future__ import annotations

import argparse
import heapq
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import attrs

from nri_proto import nri_pb2 as pb
from tests.benchmarks.awake import awake_cpus
from tests.benchmarks.churn import USUAL_CPUS
from tests.benchmarks.everything import Site, site
from tests.benchmarks.measure import Command
from tests.benchmarks.plugins import Programs, Running, running

_SOURCE: Final = Path(__file__).parents[2]
_WATCHED: Final = Path(__file__).with_name("watched_daemon.py")

ALIVE: Final = 500
RATE: Final = 20  # creations per second, and as many removals
WARM_UP: Final = 5.0  # seconds, not counted
SLOWEST: Final = 20  # replies that are attributed

_MS: Final = 1e3
_NS: Final = 1e-9
_COUNTED: Final = ("CreateContainer", "StopContainer", "RemoveContainer")


@attrs.frozen(order=True)
class Reply:
    """A reply to a request.

    Attributes:
        seconds: From the first byte of the request to the last one of the reply.
        begin: When it was sent, on the monotonic clock.
        method: Of the request.
        ran: Seconds in which the daemon's main thread ran.
        queued: Seconds in which it was ready to run, and had no CPU.
    """

    seconds: float
    begin: float
    method: str
    ran: float
    queued: float

    def overlap(self, begin: float, end: float) -> float:
        """Return the seconds of a span that are within this reply."""
        own_end = self.begin + self.seconds
        return max(0.0, min(end, own_end) - max(begin, self.begin))


class Load:
    """Sends the requests, and applies the replies to the cgroups of the machine."""

    def __init__(self, here: Site, plugin: Running, *, attributes: bool) -> None:
        self._site = here
        self._plugin = plugin
        self._attributes = attributes
        self._counts = False
        self._paths: dict[str, str] = {}
        self.times: dict[str, list[float]] = {name: [] for name in _COUNTED}
        self.slowest: list[Reply] = []
        self.late = 0.0

    def know(self, numbers: range) -> None:
        """Remember the cgroups of containers that run already."""
        for number in numbers:
            _, container = self._site.here.pair(number)
            self._paths[container.id] = container.linux.cgroups_path

    def turn_over(self, oldest: int, newest: int, seconds: float) -> int:
        """Let containers come and go for a while; return how many."""
        turns = round(seconds * RATE)
        start = time.monotonic()
        for turn in range(turns):
            due = start + turn / RATE
            self._counts = due - start >= WARM_UP
            if (early := due - time.monotonic()) > 0:
                time.sleep(early)
            elif self._counts:
                self.late = max(self.late, -early)
            self._come(newest + turn)
            # Between two creations, as pods come and go on their own.
            time.sleep(max(0.0, due + 0.5 / RATE - time.monotonic()))
            self._go(oldest + turn)
        return turns

    def _come(self, number: int) -> None:
        pod, container = self._site.here.pair(number)
        self._call("RunPodSandbox", pb.RunPodSandboxRequest(pod=pod))
        both = pb.CreateContainerRequest(pod=pod, container=container)
        self._call("CreateContainer", both)
        reply = pb.CreateContainerResponse.FromString(self._plugin.peer.reply)
        path = container.linux.cgroups_path
        self._paths[container.id] = path
        self._site.write_cgroup(path, reply.adjust.linux.resources.cpu)
        self._update(reply.update)
        self._call("StartContainer", both)

    def _go(self, number: int) -> None:
        pod, container = self._site.here.pair(number)
        both = pb.CreateContainerRequest(pod=pod, container=container)
        self._call("StopContainer", both)
        path = self._paths.pop(container.id)
        shutil.rmtree(self._site.cgroup(path))
        reply = pb.StopContainerResponse.FromString(self._plugin.peer.reply)
        self._update(reply.update)
        self._call("StopPodSandbox", pb.RunPodSandboxRequest(pod=pod))
        self._call("RemoveContainer", both)
        self._call("RemovePodSandbox", pb.RunPodSandboxRequest(pod=pod))

    def _update(self, updates: Sequence[pb.ContainerUpdate]) -> None:
        for one in updates:
            path = self._paths[one.container_id]
            self._site.write_cgroup(path, one.linux.resources.cpu)

    def _call(
        self, method: str, request: pb.RunPodSandboxRequest | pb.CreateContainerRequest
    ) -> None:
        payload = request.SerializeToString()
        before = self._scheduled()
        begin = time.monotonic()
        seconds = self._plugin.peer.call(method, payload)
        if not self._counts or method not in self.times:
            return
        self.times[method].append(seconds)
        ran, queued = (
            now - then for now, then in zip(self._scheduled(), before, strict=True)
        )
        reply = Reply(seconds, begin, method, ran, queued)
        if len(self.slowest) < SLOWEST:
            heapq.heappush(self.slowest, reply)
        else:
            heapq.heappushpop(self.slowest, reply)

    def _scheduled(self) -> tuple[float, float]:
        """Return the seconds in which the main thread ran, and waited for a CPU.

        Source:
            Linux, Documentation/scheduler/sched-stats.rst, "/proc/<pid>/schedstat".
        """
        if not self._attributes:
            return 0.0, 0.0
        text = Path(f"/proc/{self._plugin.pid}/schedstat").read_text()
        ran, queued, _ = text.split()
        return _NS * int(ran), _NS * int(queued)


def main() -> None:
    """Run the load, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="(%(default)s)")
    parser.add_argument(
        "--attribute", action="store_true", help=f"explain the slowest {SLOWEST}"
    )
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="nri-bench-") as name,
        tempfile.NamedTemporaryFile(prefix="nri-spans-", dir="/dev/shm") as spans,
        site(USUAL_CPUS) as here,
        awake_cpus() as awake,
    ):
        programs = Programs.install(Path(name), _SOURCE)
        command: Command = here.everything(programs.daemon)
        request = here.live(programs.daemon, ALIVE)
        if options.attribute:
            command = (programs.python, _WATCHED, spans.name, *command[1:])
        with running(command) as plugin:
            plugin.peer.call("Synchronize", request)
            load = Load(here, plugin, attributes=options.attribute)
            load.know(range(ALIVE))
            before = plugin.resident
            seconds = 60 * options.minutes + WARM_UP
            turns = load.turn_over(0, ALIVE, seconds)
            after, found = plugin.resident, here.metrics()
            # Repairs would be requests of the daemon, which this runtime does not take.
            assert not any(v for k, v in found.items() if "drift" in k), "drift"
        print(
            f"{turns} creations and removals in {seconds:.0f} s with {ALIVE} alive; "
            f"idle CPUs kept awake: {'yes' if awake else 'no'}; latest request "
            f"{_MS * load.late:.0f} ms after its time; resident {before:.0f} MiB, "
            f"then {after:.0f} MiB\n"
        )
        print("\n".join(_table(load)))
        if options.attribute:
            print("\n".join(_attributed(load, Path(spans.name))))
    sys.stdout.flush()


def _table(load: Load) -> Iterator[str]:
    yield "| reply | calls | p50, ms | p99, ms | p99.9, ms | max, ms |"
    yield "|---|---|---|---|---|---|"
    together = [time for times in load.times.values() for time in times]
    for name, times in (*load.times.items(), ("all", together)):
        cuts = statistics.quantiles(times, n=1000, method="inclusive")
        figures = (statistics.median(times), cuts[989], cuts[998], max(times))
        cells = " | ".join(f"{_MS * one:.2f}" for one in figures)
        yield f"| {name} | {len(times)} | {cells} |"


def _attributed(load: Load, spans: Path) -> Iterator[str]:
    """List the slowest replies, with what the daemon did beside them."""
    lines = [line.split() for line in spans.read_text().splitlines()]
    notes = [(float(begin), float(end), name) for begin, end, name in lines]
    yield f"\nSlowest {SLOWEST} replies, ms; beside them is what overlaps each:\n"
    yield "| reply | at, s | took | ran | waited for a CPU | beside it |"
    yield "|---|---|---|---|---|---|"
    first = notes[0][0] if notes else 0.0
    for reply in sorted(load.slowest, reverse=True):
        beside: dict[str, float] = {}
        for begin, end, name in notes:
            if (overlap := reply.overlap(begin, end)) > 0:
                beside[name] = beside.get(name, 0.0) + overlap
        found = sorted(beside.items(), key=lambda one: -one[1])
        figures = (_MS * one for one in (reply.seconds, reply.ran, reply.queued))
        cells = (
            reply.method,
            f"{reply.begin - first:.1f}",
            *(f"{one:.2f}" for one in figures),
            ", ".join(f"{name} {_MS * took:.2f}" for name, took in found) or "nothing",
        )
        yield f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
