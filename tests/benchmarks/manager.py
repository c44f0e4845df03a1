"""Cost of the resource manager around the policies: idle, busy, and at a restart."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import attrs

from nri_resmgr.stub.service import SETTLING_TIME
from tests.benchmarks.churn import USUAL_CPUS
from tests.benchmarks.everything import BUILT_IN, Site, site, under_systemd
from tests.benchmarks.measure import ROUNDS, STARTS
from tests.benchmarks.plugins import Running, running
from tests.benchmarks.process import cpu_seconds

USUAL_NODE: Final = 100  # containers
FULL_NODE: Final = 500

_TURN: Final = 20  # containers that one of a pair places before the other's turn
_TURNS: Final = 20

_IDLE_RUNS: Final = 3  # processes
_IDLE: Final = 60.0  # seconds of each
_SETTLING: Final = 5.0  # seconds; the first verification is over
_CHANGES: Final = 20  # containers that come, one after the other

_MS: Final = 1e3

Row: TypeAlias = tuple[str, Sequence[float], str]


@attrs.frozen
class Times:
    """Milliseconds of the calls of one process.

    Attributes:
        came: Creations.
        went: Stops.
    """

    came: list[float] = attrs.field(factory=list)
    went: list[float] = attrs.field(factory=list)


@attrs.frozen
class Restart:
    """Figures of a process that starts from the checkpoint of another one.

    Attributes:
        in_sync: From its start to the answer of Synchronize, milliseconds.
        resident: Afterwards, MiB.
    """

    in_sync: float
    resident: float


def manager_rows(daemon: str | Path) -> Iterator[Row]:
    """Measure; yield the name, the figures, and the aim."""
    created, stopped = _overheads(daemon)
    what = f"of {USUAL_NODE} containers: all on costs"
    yield f"{what} CreateContainer, %", created, "≤ 15"
    yield f"{what} StopContainer, %", stopped, ""
    what = f"idle with all on and {USUAL_NODE} containers, % of a CPU"
    yield what, _idle_shares(daemon), "≤ 0.1"
    restarts = _restarts(daemon)
    what = f"start to in sync, {FULL_NODE} containers reinstated, ms"
    yield what, [one.in_sync for one in restarts], "≤ 600"
    what = "resident after it, all on, MiB"
    yield what, [one.resident for one in restarts], "≤ 45"
    seconds, sizes = _checkpoints(daemon)
    yield f"checkpoint of {FULL_NODE} containers, kB", sizes, ""
    yield "writing it, beside the requests, ms", seconds, ""


def _overheads(daemon: str | Path) -> tuple[list[float], list[float]]:
    """Return overheads in percent: one process of a pair has all features on."""
    created, stopped = [], []
    with site(USUAL_CPUS) as where:
        for _ in range(ROUNDS):
            on, off = _pair(where, daemon)
            created.append(_percents_more(on.came, off.came))
            stopped.append(_percents_more(on.went, off.went))
    return created, stopped


def _pair(where: Site, daemon: str | Path) -> tuple[Times, Times]:
    """Let a pair take turns, so that other load on the machine affects both."""
    on, off = Times(), Times()
    with (
        running(where.everything(daemon)) as all_on,
        running(where.nothing(daemon)) as all_off,
    ):
        for plugin in (all_on, all_off):
            plugin.peer.call("Synchronize", where.here.snapshot(USUAL_NODE))
            _turn(where, plugin, Times(), USUAL_NODE)  # warms caches
        for turn in range(1, _TURNS + 1):
            first = USUAL_NODE + turn * _TURN
            _turn(where, all_on, on, first)
            _turn(where, all_off, off, first)
    return on, off


def _turn(where: Site, plugin: Running, times: Times, first: int) -> None:
    for number in range(first, first + _TURN):
        times.came.append(where.here.arrive(number, plugin.peer))
        times.went.append(where.here.leave(number - USUAL_NODE, plugin.peer))


def _percents_more(ones: Sequence[float], others: Sequence[float]) -> float:
    return 100 * (statistics.median(ones) / statistics.median(others) - 1)


def _idle_shares(daemon: str | Path) -> list[float]:
    """Percents of a CPU that processes use for which there is nothing to do."""
    with site(USUAL_CPUS, BUILT_IN) as where:
        request = where.live(daemon, USUAL_NODE)
        return [_idle_share(where, daemon, request) for _ in range(_IDLE_RUNS)]


def _idle_share(where: Site, daemon: str | Path, request: bytes) -> float:
    with under_systemd(where.everything(daemon)) as plugin:
        plugin.peer.call("Synchronize", request)
        time.sleep(_SETTLING)
        begun, used = time.monotonic(), cpu_seconds(plugin.pid)
        time.sleep(_IDLE)
        share = (cpu_seconds(plugin.pid) - used) / (time.monotonic() - begun)
        _check_verified(where)
        return 100 * share


def _check_verified(where: Site) -> None:
    verified = where.metrics()['nri_resmgr_verified_containers{verdict="as-decided"}']
    assert verified == USUAL_NODE, f"only {verified} containers were verified"


def _restarts(daemon: str | Path) -> list[Restart]:
    with site(USUAL_CPUS) as where:
        request = where.live(daemon, FULL_NODE)
        restarts = [_restarted(where, daemon, request) for _ in range(STARTS)]
        found = where.log.read_text().count(f" containers={FULL_NODE} version=")
        assert found == STARTS, f"only {found} starts were from the checkpoint"
        return restarts


def _restarted(where: Site, daemon: str | Path, request: bytes) -> Restart:
    with running(where.everything(daemon)) as plugin:
        plugin.peer.call("Synchronize", request)
        in_sync = time.perf_counter() - plugin.begun
        time.sleep(SETTLING_TIME + 0.5)
        return Restart(_MS * in_sync, plugin.resident)


def _checkpoints(daemon: str | Path) -> tuple[list[float], list[float]]:
    """Milliseconds to encode and write some checkpoints, and their kB."""
    seconds, sizes = [], []
    with site(USUAL_CPUS) as where, running(where.everything(daemon)) as plugin:
        plugin.peer.call("Synchronize", where.here.snapshot(FULL_NODE))
        for number in range(FULL_NODE, FULL_NODE + _CHANGES):
            where.here.arrive(number, plugin.peer)
            time.sleep(0.5)
            found = where.metrics()
            seconds.append(_MS * found["nri_resmgr_checkpoint_seconds"])
            sizes.append(found["nri_resmgr_checkpoint_bytes"] / 1e3)
    return seconds, sizes
