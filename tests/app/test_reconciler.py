"""When a reconciler acts, in which thread, and how it ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from time import monotonic
from typing import Any, Final

import pytest
from structlog.testing import capture_logs

from nri_resmgr.app.background.reconciler import PATIENCE, Reconciler
from nri_resmgr.policies import parse_config
from nri_resmgr.policy.decision import Decision
from nri_resmgr.policy.events import Event, PodStopped, Started, Synchronized
from tests.app.node import config
from tests.app.ready_target import ReadyTarget
from tests.waiting import until

IN_SYNC: Final = Synchronized((), pods=frozenset())
PAUSE: Final = 0.01  # seconds
SHORT: Final = 0.02  # seconds
A_WHILE: Final = 0.05  # seconds: several pauses and short periods


class Notes:
    """Notes which steps there were; it is concerned by containers that start.

    Attributes:
        period: See `Applier.period`.
        looks: For each step, whether it looked.
        threads: Where steps were applied.
        reported: How many steps were reported.
        restored: How often all was put back.
        has_work: Whether there is anything to do.
    """

    def __init__(
        self,
        work: Callable[[], object] = lambda: None,
        undo: Callable[[], object] = lambda: None,
    ) -> None:
        self.period: float | None = None
        self.looks: list[bool] = []
        self.threads: list[threading.Thread] = []
        self.reported = self.restored = self.configurations = 0
        self.has_work = True
        self._work = work
        self._undo = undo

    def note(self, event: Event) -> bool:
        return isinstance(event, Started)

    def configured(self) -> None:
        self.configurations += 1

    def next_step(self, *, looks: bool) -> NotedStep | None:
        if not self.has_work:
            return None
        self.looks.append(looks)
        return NotedStep(self)

    def work(self) -> None:
        self.threads.append(threading.current_thread())
        self._work()

    def restore(self) -> None:
        self.restored += 1
        self._undo()


class NotedStep:
    """A step of `Notes`."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes

    def apply(self) -> None:
        self._notes.work()

    async def report(self) -> None:
        self._notes.reported += 1


class Unwanted(ReadyTarget[Notes]):
    """A target of which nothing is wanted, at first."""

    is_asked_for = has_rest = False

    def note(self, event: Event) -> bool:
        return isinstance(event, Started)

    def has_leftovers(self) -> bool:
        return self.has_rest

    def is_wanted(self) -> bool:
        return self.is_asked_for


NO_STATE: Any = None  # no reconciler reads it


def decide(reconciler: Reconciler[Notes], event: Event) -> None:
    reconciler.decided(event, Decision(NO_STATE, ()))


def configure(reconciler: Reconciler[Notes]) -> None:
    reconciler.configured(parse_config(config("{}")))


@asynccontextmanager
async def running(
    notes: Notes,
    target: ReadyTarget[Notes] | None = None,
    event: Event | None = IN_SYNC,
) -> AsyncIterator[Reconciler[Notes]]:
    """Run a reconciler, in sync unless there is another event or none."""
    reconciler = Reconciler[Notes]("part", PAUSE)
    task = asyncio.create_task(reconciler.run(target or ReadyTarget(notes)))
    await asyncio.sleep(0)
    if event is not None:
        decide(reconciler, event)
    try:
        yield reconciler
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(None, id="no event"),
        pytest.param(Started("c0"), id="a container that starts"),
        pytest.param(Synchronized(()), id="another configuration"),
    ],
)
async def test_nothing_is_applied_before_the_first_synchronization(
    event: Event | None,
) -> None:
    notes = Notes()
    async with running(notes, event=event) as reconciler:
        configure(reconciler)
        await asyncio.sleep(A_WHILE)
        before = list(notes.looks)
        decide(reconciler, IN_SYNC)
        await until(lambda: notes.reported == 1)

    assert (before, notes.looks) == ([], [False])


async def test_steps_follow_events_that_concern_the_applier_and_configurations() -> (
    None
):
    notes = Notes()
    async with running(notes) as reconciler:
        await until(lambda: notes.reported == 1)
        await asyncio.sleep(A_WHILE)
        decide(reconciler, PodStopped("p0"))
        await asyncio.sleep(A_WHILE)
        assert notes.reported == 1

        decide(reconciler, Started("c0"))
        await until(lambda: notes.reported == 2)
        configure(reconciler)
        await until(lambda: notes.reported == 3)

    assert (notes.looks, notes.configurations) == ([False] * 3, 1)


async def test_requests_go_on_while_a_step_is_applied() -> None:
    may_end = threading.Event()
    notes = Notes(may_end.wait)
    async with running(notes):
        await until(lambda: bool(notes.threads))
        await asyncio.sleep(A_WHILE)  # the event loop is free
        assert notes.reported == 0
        may_end.set()
        await until(lambda: notes.reported == 1)

    assert threading.main_thread() not in notes.threads


async def test_a_burst_makes_one_more_step() -> None:
    may_end = threading.Event()
    notes = Notes(may_end.wait)
    async with running(notes) as reconciler:
        await until(lambda: bool(notes.threads))
        for number in range(100):
            decide(reconciler, Started(f"c{number}"))
            await asyncio.sleep(0)
        may_end.set()
        await until(lambda: notes.reported == 2)
        await asyncio.sleep(A_WHILE)

    assert len(notes.looks) == 2


async def test_an_event_shortly_after_a_step_waits_for_the_pause() -> None:
    notes, reconciler = Notes(), Reconciler[Notes]("part", pause=60.0)
    task = asyncio.create_task(reconciler.run(ReadyTarget(notes)))
    decide(reconciler, IN_SYNC)
    await until(lambda: notes.reported == 1)
    decide(reconciler, Started("c0"))
    await asyncio.sleep(A_WHILE)
    task.cancel()

    assert notes.reported == 1


async def test_the_period_counts_without_events_and_among_many() -> None:
    notes = Notes()
    notes.period = SHORT
    async with running(notes) as reconciler:
        await until(lambda: notes.looks.count(True) >= 2)
        notes.looks.clear()
        while notes.looks.count(True) < 2:
            decide(reconciler, Started("c0"))
            await asyncio.sleep(0)

    assert False in notes.looks


async def test_without_a_period_nothing_looks() -> None:
    notes = Notes()
    notes.period = SHORT
    async with running(notes):
        await until(lambda: True in notes.looks)
        notes.period = None
        await asyncio.sleep(A_WHILE)
        count = len(notes.looks)
        await asyncio.sleep(A_WHILE)

        assert len(notes.looks) == count


async def test_an_idle_step_uses_no_thread() -> None:
    notes = Notes()
    notes.has_work = False
    async with running(notes):
        await asyncio.sleep(A_WHILE)

    assert (notes.threads, notes.reported) == ([], 0)


async def test_the_applier_is_made_when_it_is_first_needed() -> None:
    notes = Notes()
    target = Unwanted(notes)
    async with running(notes, target) as reconciler:
        await asyncio.sleep(A_WHILE)
        assert reconciler.applier is None
        target.is_asked_for = True
        decide(reconciler, Started("c0"))
        await until(lambda: notes.reported == 1)

        assert reconciler.applier is notes


async def test_leftovers_of_an_earlier_process_are_a_reason_to_act() -> None:
    notes = Notes()
    target = Unwanted(notes)
    target.has_rest = True
    async with running(notes, target):
        await until(lambda: notes.reported == 1)


async def test_a_fault_is_raised_and_reported() -> None:
    def fail() -> None:
        raise ZeroDivisionError("by chance")

    notes = Notes(fail)
    target, reconciler = ReadyTarget(notes), Reconciler[Notes]("part", PAUSE)
    decide(reconciler, IN_SYNC)
    with pytest.raises(ZeroDivisionError):
        await reconciler.run(target)
    why = "nothing is applied since a fault, ZeroDivisionError: by chance"

    assert (reconciler.problem, target.faults, notes.reported) == (why, [why], 0)
    reconciler.close()
    assert notes.restored == 1


async def test_after_a_fault_another_applier_compares_the_host_at_once() -> None:
    def fail() -> None:
        raise ZeroDivisionError("by chance")

    class Renewed(ReadyTarget[Notes]):
        """Makes an applier that works, the second time."""

        made = 0

        async def make_applier(self) -> Notes:
            self.made += 1
            return good if self.made > 1 else await super().make_applier()

    good, bad = Notes(), Notes(fail)
    target, reconciler = Renewed(bad), Reconciler[Notes]("part", PAUSE)
    decide(reconciler, IN_SYNC)
    with pytest.raises(ZeroDivisionError):
        await reconciler.run(target)
    again = asyncio.create_task(reconciler.run(target))
    await until(lambda: good.reported == 1)
    await until(lambda: not reconciler.problem)
    again.cancel()

    assert (good.looks, target.faults[1:]) == ([True], [""])
    reconciler.close()
    assert (good.restored, bad.restored) == (1, 0)


async def test_the_end_waits_for_a_step_and_puts_all_back() -> None:
    begun, order = threading.Event(), list[str]()

    def work() -> None:
        begun.set()
        threading.Event().wait(A_WHILE)
        order.append("applied")

    notes = Notes(work, lambda: order.append("restored"))
    async with running(notes) as reconciler:
        await until(begun.is_set)
        reconciler.close()

        assert order == ["applied", "restored"]
        decide(reconciler, Started("c0"))
        await asyncio.sleep(A_WHILE)
        assert len(notes.threads) == 1


async def test_the_end_does_not_wait_for_a_step_that_hangs() -> None:
    begun, may_end = threading.Event(), threading.Event()

    def hang() -> None:
        begun.set()
        may_end.wait()

    notes = Notes(hang)
    async with running(notes) as reconciler:
        await until(begun.is_set)
        begin = monotonic()
        with capture_logs() as lines:
            reconciler.close(SHORT)
        assert monotonic() - begin < PATIENCE
        assert notes.restored == 0
    # Python itself would wait at its end for one that is no daemon.
    assert [one.daemon for one in notes.threads] == [True]
    may_end.set()

    (line,) = lines
    assert line["event"] == "reconciler.not-restored"
    assert (line["why"], line["after"]) == ("it takes too long", SHORT)


async def test_a_fault_at_the_end_is_logged() -> None:
    def fail() -> None:
        raise ZeroDivisionError("by chance")

    notes = Notes(undo=fail)
    async with running(notes) as reconciler:
        await until(lambda: notes.reported == 1)
        with capture_logs() as lines:
            reconciler.close()

    (line,) = lines
    assert line["event"] == "reconciler.not-restored"
    assert isinstance(line["exc_info"], ZeroDivisionError)


def test_without_an_applier_nothing_is_restored() -> None:
    reconciler = Reconciler[Notes]("part")
    with capture_logs() as lines:
        reconciler.close()

    assert lines == []
