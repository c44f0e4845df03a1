"""Periodic parts wake up together, and the loop sleeps between."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.app.background.periodic import until_tick
from nri_resmgr.app.background.threads import OneCall, found_by
from nri_resmgr.values import InputError


@given(st.integers(1, 60))
def test_all_intervals_of_whole_seconds_meet_at_the_longest_one(seconds: int) -> None:
    begun = time.monotonic()
    due = begun + until_tick(seconds)

    # What a clock of milliseconds and the steps of this test take.
    assert abs(due / seconds - round(due / seconds)) < 0.01
    assert begun < due < begun + seconds + 0.01


async def test_a_sleeper_wakes_once_for_each_tick() -> None:
    period, early = 0.02, 0.002  # a timer may fire some clock steps before its time
    woken = []
    for _ in range(20):
        await asyncio.sleep(until_tick(period))
        # Rounded down: on a busy machine a sleeper wakes late in its tick.
        woken.append(int((time.monotonic() + early) / period))

    assert len(set(woken)) == len(woken)


async def test_polls_in_one_thread_until_there_is_something() -> None:
    threads: list[int] = []

    def poll() -> str | None:
        threads.append(threading.get_ident())
        return "found" if len(threads) == 5 else None

    assert await found_by(poll, 0.005) == "found"
    assert len(threads) == 5
    assert set(threads).isdisjoint({threading.get_ident()})
    assert len(set(threads)) == 1


async def test_an_error_of_the_poll_is_raised_where_it_is_waited_for() -> None:
    def poll() -> None:
        raise InputError("the disk is gone")

    with pytest.raises(InputError, match="the disk is gone"):
        await found_by(poll, 0.005)


async def test_the_loop_goes_on_while_a_poll_hangs_and_nothing_waits_for_its_end() -> (
    None
):
    hangs, may_end = threading.Event(), threading.Event()

    def poll() -> str | None:
        hangs.set()
        may_end.wait(10)
        return "too late"

    waiting = asyncio.create_task(found_by(poll, 0.005))
    await asyncio.to_thread(hangs.wait)
    waiting.cancel()
    await asyncio.wait({waiting})
    may_end.set()
    await asyncio.sleep(0.02)  # it sets a future that nothing awaits

    assert waiting.cancelled()


async def test_clients_of_a_call_that_hangs_share_one_thread() -> None:
    calls: list[int] = []
    may_end = threading.Event()

    def hang() -> str:
        calls.append(threading.get_ident())
        may_end.wait(10)
        return "at last"

    one = OneCall[str](patience=0.02)
    for _ in range(3):
        with pytest.raises(TimeoutError):
            await one.result(hang)
    may_end.set()

    assert await one.result(hang) == "at last"
    assert len(calls) == 1
    assert await one.result(lambda: "afresh") == "afresh"


async def test_polling_ends_when_the_wait_is_cancelled() -> None:
    polls: list[float] = []
    has_begun = threading.Event()

    def poll() -> str | None:
        polls.append(time.monotonic())
        has_begun.set()
        return None

    waiting = asyncio.create_task(found_by(poll, 0.005))
    await asyncio.to_thread(has_begun.wait)
    waiting.cancel()
    await asyncio.wait({waiting})
    await asyncio.sleep(0.02)
    seen = len(polls)
    await asyncio.sleep(0.03)

    assert len(polls) == seen
