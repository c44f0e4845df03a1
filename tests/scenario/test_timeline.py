"""A trace of a replay has each container on the CPUs that were decided for it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.recordings.entries import Decided, Recording
from nri_resmgr.scenario.replay import Replay
from nri_resmgr.scenario.timeline import Place, Timeline
from nri_resmgr.scenario.trace_events import trace_text
from nri_resmgr.topology import Machine
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import NO_CPUS, CpuSet, QosClass
from nri_resmgr.values.printable import printable
from tests.cli.command import nri_resmgr
from tests.examples import examples
from tests.scenario.recorded import churn, document, load, recorded_node
from tests.topology.strategies import machines

BEGAN: Final = 1_700_000_000_000_000_001  # an odd one: microseconds have fractions
STEP: Final = 1500  # nanoseconds
HOSTILE: Final = '</script>"\\\x1b[2J\u202e\ud800'


@attrs.frozen
class Slice:
    """A complete event: times are nanoseconds since the beginning."""

    container: str
    begin: int
    end: int
    track: tuple[int, int]
    here: str
    kind: str


@attrs.frozen
class Trace:
    """A trace, as a viewer has it."""

    events: tuple[dict[str, Any], ...]

    @classmethod
    def of(cls, text: str) -> Trace:
        found = json.loads(text)
        assert found["displayTimeUnit"] == "ms"
        return cls(tuple(found["traceEvents"]))

    def slices(self) -> list[Slice]:
        return [
            Slice(
                one["args"]["container"],
                round(one["ts"] * 1000),
                round((one["ts"] + one["dur"]) * 1000),
                (one["pid"], one["tid"]),
                one["args"]["here"],
                one["cat"],
            )
            for one in self.events
            if one["ph"] == "X"
        ]

    def names(self, what: str) -> Mapping[tuple[int, int], str]:
        return {
            (one["pid"], one.get("tid", 0)): one["args"]["name"]
            for one in self.events
            if one["ph"] == "M" and one["name"] == what
        }

    def cpus_at(self, time: int) -> dict[str, CpuSet]:
        """Return the CPUs of present containers; none for one that is not pinned."""
        threads, found = self.names("thread_name"), dict[str, CpuSet]()
        for one in self.slices():
            if one.begin <= time < one.end:
                here = CpuSet.parse("" if one.here == "any" else one.here)
                if one.kind == "exclusive":
                    assert threads[one.track].startswith(f"CPU {here}")
                found[one.container] = found.get(one.container, NO_CPUS) | here
        return found

    def arrows(self) -> Iterator[tuple[Slice, Slice]]:
        """Yield the slices that arrows join, found as by viewers: by track and time."""
        ends = [one for one in self.events if one["ph"] in "sf"]
        for one, two in zip(ends[::2], ends[1::2], strict=True):
            assert (one["ph"], two["ph"], two["bp"]) == ("s", "f", "e")
            assert one["id"] == two["id"]
            yield self._around(one), self._around(two)

    def _around(self, end: dict[str, Any]) -> Slice:
        time, track = round(end["ts"] * 1000), (end["pid"], end["tid"])
        (found,) = (
            one
            for one in self.slices()
            if one.track == track and one.begin <= time < one.end
        )
        return found


@attrs.frozen
class History:
    """What was decided at times that are a step apart."""

    machine: Machine
    moments: tuple[Mapping[str, Place], ...]

    def trace(self) -> Trace:
        timeline = Timeline()
        timeline.know(self.machine)
        for number, places in enumerate(self.moments):
            timeline.note(BEGAN + number * STEP, places)
        timeline.finish(BEGAN + len(self.moments) * STEP)
        return Trace.of("".join(trace_text(timeline, BEGAN)))


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Draw containers that come, go, grow and move, also without any sense."""
    machine = draw(machines())
    some = st.sets(st.sampled_from(list(machine.online)), max_size=6)
    moments = []
    places: dict[str, Place] = {}
    for _ in range(draw(st.integers(1, 8))):
        for name in draw(st.sets(st.sampled_from("abcde"))):
            cpus = CpuSet.from_iterable(draw(some))
            exclusive = cpus & CpuSet.from_iterable(draw(some))
            places[name] = Place(f"n/{name}", QosClass.BURSTABLE, cpus, exclusive)
        for name in draw(st.sets(st.sampled_from("abcde"), max_size=2)):
            places.pop(name, None)
        moments.append(dict(places))
    return History(machine, tuple(moments))


@examples(0.5)
@given(histories())
def test_each_container_is_on_its_cpus_at_each_time(history: History) -> None:
    trace = history.trace()

    for number, places in enumerate(history.moments):
        wanted = {key: one.cpus for key, one in places.items()}
        for inside in (0, STEP - 1):
            assert trace.cpus_at(number * STEP + inside) == wanted
    assert trace.cpus_at(len(history.moments) * STEP) == {}


@examples(0.5)
@given(histories())
def test_no_two_slices_of_a_track_overlap(history: History) -> None:
    by_track: dict[tuple[int, int], list[Slice]] = {}
    for one in history.trace().slices():
        by_track.setdefault(one.track, []).append(one)

    for found in by_track.values():
        ordered = sorted(found, key=lambda one: one.begin)
        assert all(one.end <= two.begin for one, two in pairwise(ordered))
        assert all(one.begin < one.end for one in ordered)


@examples(0.5)
@given(histories())
def test_each_move_is_an_arrow(history: History) -> None:
    moves = []
    for number, (before, after) in enumerate(pairwise(history.moments), 1):
        for key in before.keys() & after.keys():
            one, two = before[key], after[key]
            others = (
                one.cpus
                and two.cpus
                and not (one.cpus <= two.cpus or two.cpus <= one.cpus)
            )
            if others or (one.exclusive == NO_CPUS) != (two.exclusive == NO_CPUS):
                moves.append((key, number * STEP))
    arrows = list(history.trace().arrows())

    assert all(one.end == two.begin for one, two in arrows)
    assert all(one.container == two.container for one, two in arrows)
    assert sorted((two.container, two.begin) for _, two in arrows) == sorted(moves)


def test_nodes_cpus_and_shared_cpus_have_names() -> None:
    machine = parse_spec("1s2n2c1t")
    places = {
        "own": Place("n/own", QosClass.GUARANTEED, CpuSet.of(2), CpuSet.of(2)),
        "one": Place("n/one", QosClass.BURSTABLE, CpuSet.parse("1,3")),
        "two": Place("n/two", QosClass.BURSTABLE, CpuSet.of(3)),
        "any": Place("n/any", QosClass.BEST_EFFORT),
    }
    trace = History(machine, (places,)).trace()

    processes = {
        process: name for (process, _), name in trace.names("process_name").items()
    }
    tracks = {
        (one.container, one.here, processes[one.track[0]], threads)
        for one in trace.slices()
        for threads in [trace.names("thread_name")[one.track]]
    }
    assert tracks == {
        ("own", "2", "NUMA node 1", "CPU 2"),
        ("one", "1", "NUMA node 0", "shared CPUs"),
        ("one", "3", "NUMA node 1", "shared CPUs"),
        ("two", "3", "NUMA node 1", "shared CPUs (2)"),
        ("any", "any", "not pinned", "shared CPUs"),
    }
    assert all(one["pid"] > 0 and one.get("tid", 1) > 0 for one in trace.events)


def test_a_container_that_stays_keeps_its_track_beside_a_new_one() -> None:
    machine = parse_spec("1s1n4c1t")
    wide, narrow = (CpuSet.parse(text) for text in ("0-3", "0-2"))
    moments = [
        {key: Place(key, QosClass.BURSTABLE, cpus) for key in present}
        for present, cpus in (("bc", wide), ("abc", narrow), ("ac", wide))
    ]
    trace = History(machine, tuple(moments)).trace()

    tracks: dict[str, set[tuple[int, int]]] = {}
    for one in trace.slices():
        tracks.setdefault(one.container, set()).add(one.track)
    assert [len(tracks[key]) for key in "abc"] == [1, 1, 1]
    assert list(trace.arrows()) == []


def test_of_several_places_at_one_time_the_last_counts() -> None:
    timeline = Timeline()
    timeline.know(parse_spec("1s1n4c1t"))
    for number in range(3):
        cpu = CpuSet.of(number)
        timeline.note(BEGAN, {"a": Place("a", QosClass.GUARANTEED, cpu, cpu)})
    timeline.finish(BEGAN + STEP)
    trace = Trace.of("".join(trace_text(timeline, BEGAN)))

    assert [one.here for one in trace.slices()] == ["2"]
    assert list(trace.arrows()) == []


def test_hostile_names_are_escaped() -> None:
    place = Place(HOSTILE, QosClass.BURSTABLE, CpuSet.of(0), pool=HOSTILE)
    trace = History(parse_spec("1s1n1c1t"), ({HOSTILE: place},)).trace()

    (one,) = (one for one in trace.events if one["ph"] == "X")
    assert one["name"] == one["args"]["pool"] == printable(HOSTILE)
    assert one["args"]["container"].isprintable()


@pytest.mark.parametrize("kind", ["TopologyAwarePolicy", "BalloonsPolicy"])
async def test_a_recorded_node_is_on_the_trace_as_it_was_decided(
    tmp_path: Path, kind: str
) -> None:
    async with recorded_node(tmp_path, document(kind=kind)) as node:
        await churn(node.runtime, 3, 60)
    recording, timeline = load(node.file), Timeline()
    replay = Replay(recording.header, recording.entries, timeline=timeline)
    outcome = await replay.run()
    trace = Trace.of("".join(trace_text(timeline, recording.header.time)))

    assert outcome.differences == ()
    checked = 0
    for time, container, cpus in placed(recording):
        assert trace.cpus_at(time).get(container, NO_CPUS) == cpus
        checked += 1
    assert checked > 40


def placed(recording: Recording) -> Iterator[tuple[int, str, CpuSet]]:
    """Yield what decisions say of the CPUs of containers, when it is in force."""
    for entry, after in pairwise(recording.entries):
        if isinstance(entry, Decided) and entry.time < after.time:
            for one in entry.reasons:
                yield entry.time - recording.header.time, one.container, one.cpus


@pytest.mark.process
async def test_the_command_writes_a_trace(tmp_path: Path) -> None:
    async with recorded_node(tmp_path, document()) as node:
        await churn(node.runtime, 4, 30)
    file, trace = node.file, tmp_path / "trace.json"

    done = nri_resmgr("replay", file, "--timeline", trace)
    refused = nri_resmgr("replay", file, "--timeline", tmp_path / "none" / "x")
    both = nri_resmgr("replay", file, "--timeline", trace, "--show")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("no difference\n")
    assert Trace.of(trace.read_text()).slices()
    assert refused.returncode == 2
    assert refused.stderr.endswith("/x: no such file or directory\n")
    assert both.returncode == 2
    assert "not allowed with" in both.stderr
