"""A timeline as a trace for Perfetto and Chrome, in the Trace Event format.

A NUMA node is a process of the trace. A CPU is a thread of it, and a container with
exclusive CPUs is a slice on each of these. Containers that share CPUs overlap, which
slices of one thread must not: such a container has one slice for all CPUs of a node
that it shares, on the first of the node's further threads that is free.

A container moves where it gets CPUs that it had not and loses some that it had, or gets
its first exclusive CPU, or loses its last one. A move is a flow arrow from its slice
before to the one after. Shared CPUs that only grow or shrink are no move.

Source:
    Trace Event Format: complete events (``X``), flow events (``s``, ``f``), metadata
    (``M``); times are microseconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, TypeAlias

import attrs

from nri_resmgr.scenario.timeline import Place, Stay, Timeline
from nri_resmgr.values import CpuSet
from nri_resmgr.values.documents import JsonObject
from nri_resmgr.values.printable import printable

_MICROSECOND: Final = 1000  # nanoseconds
_BEFORE_END: Final = 1  # nanosecond: at its very end, a slice is over
_SHARED: Final = 1 << 20  # sorts the threads of shared CPUs below all CPUs

# A process and a thread of the trace; 0 is special to viewers as either.
_Track: TypeAlias = tuple[int, int]


def trace_text(timeline: Timeline, began: int) -> Iterator[str]:
    """Yield a trace as JSON, piece by piece.

    Args:
        timeline: Where containers were; all stays have ended.
        began: The time that is 0 in the trace, UNIX nanoseconds.
    """
    yield '{"displayTimeUnit": "ms", "traceEvents": ['
    separator = "\n"
    for event in _events(timeline, began):
        yield f"{separator}{json.dumps(event)}"
        separator = ",\n"
    yield "\n]}\n"


@attrs.define(eq=False)
class _Lane:
    """A thread of the trace, and the last stay on it."""

    thread: int
    container: str = ""
    end: int = 0


@attrs.define(eq=False, repr=False)
class _Lanes:
    """Gives each slice a thread on which no other one is meanwhile."""

    _by_row: dict[tuple[int, int], list[_Lane]] = attrs.field(factory=dict)
    _count: int = 0

    def take(self, process: int, row: int, stay: Stay) -> _Track:
        """Return the track of a stay; stays come in the order of their beginnings."""
        lanes = self._by_row.setdefault((process, row), [])
        free = [one for one in lanes if one.end <= stay.begin]
        # A container that stays on the same CPUs stays on its track.
        own = [one for one in free if one.container == stay.container]
        if not free:
            self._count += 1
            lanes.append(_Lane(self._count))
            free = lanes[-1:]
        lane = (own or free)[0]
        lane.container, lane.end = stay.container, stay.end
        return process, lane.thread

    def names(self) -> Iterator[tuple[_Track, int, str]]:
        """Yield each track with its row and its name."""
        for (process, row), lanes in self._by_row.items():
            name = f"CPU {row}" if row < _SHARED else "shared CPUs"
            for number, lane in enumerate(lanes, 1):
                more = f" ({number})" if number > 1 else ""
                yield (process, lane.thread), row, f"{name}{more}"


def _events(timeline: Timeline, began: int) -> Iterator[JsonObject]:
    lanes, stays = _Lanes(), _in_order(timeline.stays)
    first: dict[Stay, _Track] = {}
    anywhere = max(timeline.node_of.values(), default=0) + 2
    for stay in stays:
        for process, row, here in _rows(stay.place, timeline, anywhere):
            track = lanes.take(process, row, stay)
            first.setdefault(stay, track)
            yield _slice(stay, track, here, began)
    for number, (one, two) in enumerate(_moves(stays), 1):
        yield from _arrow(number, (one, first[one]), (two, first[two]), began)
    yield from _names(lanes, anywhere)


def _in_order(stays: Sequence[Stay]) -> list[Stay]:
    """Sort stays by their beginnings, those that follow another one first.

    Else a new container would get the track of one that stays.
    """
    ends = {(one.container, one.end) for one in stays}
    return sorted(
        stays,
        key=lambda one: (one.begin, (one.container, one.begin) not in ends),
    )


def _rows(
    place: Place, timeline: Timeline, anywhere: int
) -> Iterator[tuple[int, int, CpuSet]]:
    """Yield the processes, rows and CPUs of the slices of a container."""
    if not place.cpus:
        yield anywhere, _SHARED, place.cpus
    for cpu in place.exclusive:
        yield timeline.node_of[cpu] + 1, cpu, CpuSet.of(cpu)
    shared: dict[int, list[int]] = {}
    for cpu in place.cpus - place.exclusive:
        shared.setdefault(timeline.node_of[cpu], []).append(cpu)
    for node, cpus in sorted(shared.items()):
        yield node + 1, _SHARED, CpuSet.from_iterable(cpus)


def _slice(stay: Stay, track: _Track, here: CpuSet, began: int) -> JsonObject:
    place = stay.place
    kind = "exclusive" if here and here <= place.exclusive else "shared"
    return {
        "name": printable(place.title),
        "cat": kind if place.cpus else "not pinned",
        "ph": "X",
        "ts": (stay.begin - began) / _MICROSECOND,
        "dur": (stay.end - stay.begin) / _MICROSECOND,
        **_ids(track),
        "args": {
            "container": printable(stay.container),
            "here": str(here) or "any",
            "cpus": str(place.cpus) or "any",
            "exclusive": str(place.exclusive),
            "memory nodes": str(place.mems) or "any",
            "pool": printable(place.pool),
            "QoS": place.qos.value,
        },
    }


def _moves(stays: Sequence[Stay]) -> Iterator[tuple[Stay, Stay]]:
    by_container: dict[str, list[Stay]] = {}
    for stay in stays:
        by_container.setdefault(stay.container, []).append(stay)
    for mine in by_container.values():
        for one, two in pairwise(mine):
            if one.end == two.begin and _is_move(one.place, two.place):
                yield one, two


def _is_move(one: Place, two: Place) -> bool:
    if bool(one.exclusive) != bool(two.exclusive):
        return True
    before, after = one.cpus, two.cpus
    return bool(before and after and before - after and after - before)


def _arrow(
    number: int, one: tuple[Stay, _Track], two: tuple[Stay, _Track], began: int
) -> Iterator[JsonObject]:
    before, after = one[0].place, two[0].place
    how = {"name": "move", "cat": "move", "id": number}
    time = one[0].end - began
    yield {
        **how,
        "ph": "s",
        "ts": (time - _BEFORE_END) / _MICROSECOND,
        **_ids(one[1]),
        "args": {"from": str(before.cpus) or "any", "to": str(after.cpus) or "any"},
    }
    # bp: the arrow ends at the slice around this time, not at the next one.
    yield {**how, "ph": "f", "bp": "e", "ts": time / _MICROSECOND, **_ids(two[1])}


def _names(lanes: _Lanes, anywhere: int) -> Iterator[JsonObject]:
    processes = set()
    for track, row, name in lanes.names():
        processes.add(track[0])
        yield _about("thread_name", **_ids(track), args={"name": name})
        yield _about("thread_sort_index", **_ids(track), args={"sort_index": row})
    for process in sorted(processes):
        name = "not pinned" if process == anywhere else f"NUMA node {process - 1}"
        yield _about("process_name", pid=process, args={"name": name})
        yield _about("process_sort_index", pid=process, args={"sort_index": process})


def _about(what: str, **more: object) -> JsonObject:
    return {"name": what, "ph": "M", **more}


def _ids(track: _Track) -> JsonObject:
    process, thread = track
    return {"pid": process, "tid": thread}
