"""No order of changes, calls and replies loses an update, or lets a record go first."""

from __future__ import annotations

from collections.abc import Mapping

import hypothesis.strategies as st
from hypothesis import given
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
)

from nri_resmgr.stub import ContainerUpdate
from nri_resmgr.stub.convert import from_message
from nri_resmgr.stub.pending_updates import MOST_RECORDS_IN_REPLY, PendingUpdates
from nri_resmgr.stub.record_pace import RecordPace
from nri_resmgr.stub.replies import (
    UpdatesResponse,
    create_response,
    stop_response,
    update_response,
)

IDS = st.sampled_from("abcdef")
SETS = st.sets(IDS)
KINDS = ("create", "update", "stop")


class Changes(RuleBasedStateMachine):
    """An application that changes CPUs, and the record of its runtime.

    Attributes:
        wanted: The CPUs of each container that runs.
        runtime: The CPUs that the runtime knows.
        known: Those of which the application knows that the runtime knows them.
        urgent: The containers with an urgent update that waits.
        refused: Those whose update has failed by a call.
    """

    def __init__(self) -> None:
        super().__init__()
        self.pending = PendingUpdates(lambda: 0.0)
        self.wanted: dict[str, str] = {}
        self.runtime: dict[str, str] = {}
        self.known: dict[str, str] = {}
        self.urgent: set[str] = set()
        self.refused: set[str] = set()
        self.call: dict[str, ContainerUpdate] = {}
        self.call_urgent: set[str] = set()

    def value_of(self, key: str) -> ContainerUpdate | None:
        """Compute an urgent update, which a repair sends even if nothing changed."""
        cpus = self.wanted.get(key)
        return ContainerUpdate(key).set_cpus(cpus) if cpus else None

    def record_of(self, key: str) -> ContainerUpdate | None:
        """Compute a record."""
        is_known = self.wanted.get(key) == self.known.get(key)
        return None if is_known else self.value_of(key)

    def take(self, updates: Mapping[str, ContainerUpdate]) -> None:
        """Note what the runtime was given."""
        for key, one in updates.items():
            self.known[key] = cpus_in(one)

    @rule(key=IDS, cpus=st.sampled_from("123"), is_urgent=st.booleans())
    def change(self, key: str, cpus: str, *, is_urgent: bool) -> None:
        self.wanted[key] = cpus
        if is_urgent:
            self.pending.add(self.value_of, [key])
            self.urgent.add(key)
            self.refused.discard(key)
        else:
            self.pending.add_records(self.record_of, [key])
            if key not in self.urgent:
                self.refused.discard(key)

    @rule(key=IDS)
    def end(self, key: str) -> None:
        for one in (self.wanted, self.runtime, self.known):
            one.pop(key, None)
        self.urgent.discard(key)
        self.refused.discard(key)
        self.call_urgent.discard(key)
        self.pending.forget(key)

    @precondition(lambda self: not self.call)
    @rule(most=st.integers(1, 3))
    def begin_call(self, most: int) -> None:
        expected = self.urgent - self.refused
        self.call = self.pending.take()
        assert self.call.keys() == expected
        if not expected:
            self.call = self.pending.take_records(most)
            assert len(self.call) <= most
            assert not self.call.keys() & (self.urgent | self.refused)
        self.call_urgent = self.urgent & self.call.keys()
        self.urgent -= self.call.keys()

    @precondition(lambda self: self.call)
    @rule(failed=SETS)
    def end_call(self, failed: set[str]) -> None:
        sent, self.call = self.call, {}
        for key, one in sent.items():
            if key in self.wanted and key not in failed:
                self.runtime[key] = cpus_in(one)
        self.pending.settle(sent, failed, self.take)
        for key in sent.keys() & self.wanted.keys():
            is_failed, is_urgent = key in failed, key in self.call_urgent
            if is_urgent and (is_failed or self.runtime[key] != self.wanted[key]):
                if is_failed and key not in self.urgent:
                    self.refused.add(key)
                self.urgent.add(key)

    @precondition(lambda self: self.call)
    @rule(is_refused=st.booleans())
    def lose_call(self, *, is_refused: bool) -> None:
        self.call = {}
        self.pending.put_back(needs_reply=is_refused)
        if is_refused:
            # What was sent again meanwhile gets another call.
            self.refused |= self.call_urgent - self.urgent
        self.urgent |= self.call_urgent

    @rule(kind=st.sampled_from(KINDS), own=SETS, busy=IDS, with_records=st.booleans())
    def answer(
        self, kind: str, own: set[str], busy: str, *, with_records: bool
    ) -> None:
        own = {key for key in own & self.wanted.keys() if key != busy}
        mine = tuple(ContainerUpdate(key).set_cpus(self.wanted[key]) for key in own)
        response = response_of(kind, mine, busy)
        self.take(self.pending.attach(response, busy, with_records=with_records))

        said = [from_message(one) for one in response.update]
        keys = [one.container_id for one in said]
        assert len(keys) == len(set(keys))
        rode = set(keys) - own
        skipped = {busy} if kind != "update" else set()
        assert not skipped & rode
        assert self.urgent - skipped <= set(keys)
        records = rode - self.urgent
        assert len(records) <= (0 if kind == "create" else MOST_RECORDS_IN_REPLY)
        for one in said:
            key = one.container_id
            assert cpus_in(one) == self.wanted[key]
            assert one.ignore_failure == (key in records)
            self.runtime[key] = self.known[key] = self.wanted[key]
        self.urgent -= set(keys)
        self.refused -= set(keys)

    @invariant()
    def nothing_is_lost(self) -> None:
        lacking = {
            key for key, cpus in self.wanted.items() if self.runtime.get(key) != cpus
        }
        assert lacking <= self.pending.containers()

    @invariant()
    def urgent_ones_are_counted_apart(self) -> None:
        urgent = self.urgent | self.call_urgent if self.call else self.urgent
        assert len(self.pending) == len(urgent)
        assert self.pending.records + len(urgent) == len(self.pending.containers())


def cpus_in(update: ContainerUpdate) -> str:
    assert update.linux is not None
    assert update.linux.resources is not None
    assert update.linux.resources.cpu is not None
    return update.linux.resources.cpu.cpus


def response_of(
    kind: str, own: tuple[ContainerUpdate, ...], busy: str
) -> UpdatesResponse:
    match kind:
        case "create":
            response = create_response(None, busy)
            response.update.extend(update_response(own).update)
            return response
        case "update":
            return update_response(own)
        case _:
            return stop_response(own)


TestChanges = Changes.TestCase

SECONDS = st.floats(0, 100)


@given(now=SECONDS, quiet=SECONDS, age=SECONDS)
def test_records_wait_for_quiet_or_until_patience_ends(
    now: float, quiet: float, age: float
) -> None:
    pace = RecordPace()
    wait = pace.wait(now, quiet, age)

    assert 0 <= wait <= pace.quiet
    assert (wait == 0) == (quiet >= pace.quiet or (quiet > 0 and age >= pace.patience))


@given(now=SECONDS, calls=st.lists(st.tuples(st.floats(0.0001, 10), st.integers(1, 9))))
def test_pauses_equal_the_time_of_calls_and_batches_reach_their_target(
    now: float, calls: list[tuple[float, int]]
) -> None:
    pace = RecordPace()
    for seconds, records in calls:
        now += pace.wait(now, 100, 100) + seconds
        pace.called(now, seconds, records)
        assert pace.wait(now, 100, 100) >= seconds * 0.99

    per_update = 0.02
    for _ in range(30):
        assert pace.most >= 1
        pace.called(now, per_update * pace.most, pace.most)
    assert pace.most * per_update <= pace.call * 1.01
    assert (pace.most + 1) * per_update > pace.call * 0.99
