"""What fails is started again, is reported, and ends the process only at last."""

from __future__ import annotations

import asyncio
import errno
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from time import monotonic

import pytest
from structlog.testing import capture_logs

from nri_resmgr.app.background.supervisor import (
    LAST_PAUSE,
    STEADY,
    Part,
    PartLost,
    Supervisor,
    Timing,
)
from nri_resmgr.app.background.threads import in_thread
from nri_resmgr.app.metrics.of_parts import series_of_parts
from nri_resmgr.app.metrics.text import render
from nri_resmgr.host.state_dir import StateUnusable
from nri_resmgr.values import HostError
from tests.waiting import until

SHORT = Timing(first_pause=0.01, last_pause=0.04, steady=0.1, longest=0.2)

Run = Callable[[], Awaitable[None]]


async def forever() -> None:
    await asyncio.get_running_loop().create_future()


def failing(*errors: BaseException) -> Run:
    """Fail with each of these, then work; with the last one for ever if it is one."""
    left = list(errors)

    async def run() -> None:
        if len(errors) == 1:
            raise errors[0]
        if left:
            raise left.pop(0)
        await forever()

    return run


@asynccontextmanager
async def supervised(
    *parts: Part, may_end: bool = True
) -> AsyncIterator[tuple[Supervisor, asyncio.Task[None]]]:
    supervisor = Supervisor(may_end=may_end, timing=SHORT)
    task = asyncio.create_task(supervisor.run(parts))
    yield supervisor, task
    task.cancel()
    await asyncio.wait({task})


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (
            RuntimeError("can't start new thread"),
            "RuntimeError: can't start new thread",
        ),
        (MemoryError(), "MemoryError"),
        (OSError(errno.EMFILE, "too many"), "OSError: [Errno 24] too many"),
        (HostError("the disk is full"), "the disk is full"),
        (ImportError("half"), "ImportError: half"),
        (asyncio.CancelledError(), "CancelledError"),
        (ExceptionGroup("two", [TypeError("x"), KeyError()]), "TypeError: x"),
    ],
)
async def test_a_transient_fault_ends_nothing(error: BaseException, why: str) -> None:
    part = Part("one", failing(error, error), "it waits")
    other = Part("other", forever, "")
    with capture_logs() as lines:
        async with supervised(part, other):
            await until(lambda: part.tries == 1)
            assert (part.why, part.next_try > part.since) == (why, True)
            await until(lambda: part.why == "")

    assert (part.restarts, other.restarts, part.tries) == (2, 0, 0)
    assert [line["event"] for line in lines] == ["part.failed", "part.recovered"]
    assert (lines[0]["part"], lines[0]["why"]) == ("one", why)
    assert (lines[0]["meanwhile"], lines[1]["tries"]) == ("it waits", 2)


async def test_metrics_say_which_part_fails_since_when_and_the_next_try() -> None:
    one = Part("one", failing(MemoryError()), "")
    parts = (one, Part("other", forever, ""))
    supervisor = Supervisor(timing=Timing(first_pause=60.0, last_pause=60.0))
    task = asyncio.create_task(supervisor.run(parts))
    await until(lambda: one.tries == 1)
    await asyncio.sleep(0.01)
    lines = render(series_of_parts(parts)).splitlines()
    task.cancel()
    await asyncio.wait({task})

    rows = (line.split() for line in lines if not line.startswith("#"))
    found = {name.removeprefix("nri_resmgr_part_"): float(text) for name, text in rows}
    assert found['failures_total{part="one"}'] == 1
    assert found['failing_seconds{part="one"}'] > 0
    assert 0 < found['next_try_seconds{part="one"}'] < 60
    assert found['failures_total{part="other"}'] == 0
    assert found['failing_seconds{part="other"}'] == 0
    assert 'next_try_seconds{part="other"}' not in found


async def test_a_part_that_is_off_is_not_started_again() -> None:
    begun = []

    async def run() -> None:
        begun.append(monotonic())

    async with supervised(Part("one", run, "")) as (_, task):
        await task

    assert len(begun) == 1


def test_pauses_grow_until_a_part_works_again_within_30_s() -> None:
    pauses = [Timing().pause(tries) for tries in (1, 2, 3, 4, 5, 100_000)]

    assert pauses == [1, 2, 4, 8, LAST_PAUSE, LAST_PAUSE]
    assert LAST_PAUSE + STEADY < 30
    # What still fails in a poll, at the longest interval of one, fails before.
    assert STEADY > 10


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(RuntimeError("can't start new thread"), id="no thread"),
        pytest.param(TypeError("a mistake"), id="a mistake of ours"),
        pytest.param(None, id="a host error for want of descriptors"),
    ],
)
async def test_an_essential_part_that_keeps_failing_ends_the_process(
    error: BaseException | None,
) -> None:
    if error is None:
        error = StateUnusable("/state", "too many open files")
        error.__cause__ = OSError(errno.EMFILE, "too many open files")
    part = Part("one", failing(error), "")
    begun = monotonic()
    async with supervised(part) as (supervisor, task):
        await asyncio.wait({task}, timeout=10)
        with pytest.raises(PartLost, match="one has failed for") as lost:
            task.result()
        problems = supervisor.problems()

    assert monotonic() - begun >= SHORT.longest
    assert problems == (str(lost.value),)


@pytest.mark.parametrize(
    ("part", "may_end", "is_sick"),
    [
        pytest.param(
            Part("one", failing(TypeError("x")), "", is_essential=False),
            True,
            False,
            id="an optional part",
        ),
        pytest.param(
            Part("one", failing(StateUnusable("/s", "no space left")), ""),
            True,
            False,
            id="a host that refuses",
        ),
        pytest.param(
            Part("one", failing(TypeError("x")), ""),
            False,
            True,
            id="a process that would not be launched again",
        ),
    ],
)
async def test_the_process_continues_without_an_optional_part(
    part: Part, *, may_end: bool, is_sick: bool
) -> None:
    with capture_logs() as lines:
        async with supervised(part, may_end=may_end) as (supervisor, task):
            await asyncio.sleep(SHORT.longest * 2)
            assert not task.done()
            found = supervisor.problems()

    events = [line["event"] for line in lines]
    assert bool(found) is is_sick
    assert events == ["part.failed", *(["part.lost"] if is_sick else [])]


async def test_a_call_that_hangs_is_reported_and_no_other_is_added() -> None:
    may_end, threads = threading.Event(), list[threading.Thread]()

    def hang() -> None:
        threads.append(threading.current_thread())
        may_end.wait(10)

    async def run() -> None:
        if part.restarts > 1:
            await forever()
        hanging = asyncio.create_task(in_thread(hang))
        await asyncio.sleep(0.1)
        hanging.cancel()
        raise TypeError("beside it")

    part = Part("one", run, "", patience=0.05)
    other = Part("other", forever, "", patience=0.05)
    async with supervised(part, other):
        await until(lambda: part.restarts == 1)
        await asyncio.sleep(SHORT.steady)
        assert (part.hangs > 0.05, other.hangs, len(threads)) == (True, 0, 1)
        may_end.set()
        await until(lambda: part.restarts == 2)
        await until(lambda: part.why == "")

    assert part.hangs == 0
    assert all(one.daemon for one in threads)


async def test_a_failing_cleanup_does_not_start_a_part_again() -> None:
    starts = []

    async def run() -> None:
        starts.append(1)
        try:
            await forever()
        finally:
            raise StateUnusable("/run/x.sock", "input/output error")

    with capture_logs() as lines:
        async with supervised(Part("one", run, "")) as (supervisor, _):
            await until(lambda: bool(starts))
        await asyncio.sleep(3 * SHORT.last_pause)

    assert len(starts) == 1
    assert supervisor.parts[0].why == ""
    assert [line["event"] for line in lines] == ["part.not-cleaned-up"]


async def test_a_task_group_that_fails_is_not_the_end_of_its_part() -> None:
    fails = asyncio.Event()
    starts = []

    async def fail() -> None:
        await fails.wait()
        raise MemoryError

    async def run() -> None:
        starts.append(1)
        async with asyncio.TaskGroup() as group:
            group.create_task(fail())
            group.create_task(forever())

    # On a busy machine all tries take longer than it may fail.
    async with supervised(Part("one", run, ""), may_end=False):
        await until(lambda: bool(starts))
        fails.set()
        await until(lambda: len(starts) > 3)
