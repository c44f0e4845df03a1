"""Signals at any time: SIGTERM is an orderly end, SIGHUP and SIGUSR1 do no harm."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final

import pytest

from nri_resmgr.testing import Runtime
from tests.faults.daemons import Daemons, Place, fork_server
from tests.faults.histories import BEGINNINGS, MACHINE
from tests.faults.history import (
    Step,
    burstable,
    end_pod,
    guaranteed,
    remove,
    resize,
    run,
    stop,
)

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(600)]

TIMES: Final = 200  # of each signal
HALVES: Final = 2  # of the orderly ends, each of which is followed by a start
STARTS: Final = 20  # points of one

# Leaves the node as it was, except for which container has which CPUs.
ROUND: Final[tuple[Step, ...]] = (
    run("web", burstable(500)),
    run("db", guaranteed(2000)),
    run("side", guaranteed(1500), "pod-db"),
    resize("db", guaranteed(3000)),
    stop("side"),
    remove("side"),
    run("side", guaranteed(1500), "pod-db"),
    end_pod("pod-web"),
    resize("db", guaranteed(2000)),
    end_pod("pod-db"),
)

# Steps of the daemon in one of these, at most.
_LONGEST: Final = 4000

_EARLY: Final = 15_000  # steps, of some 140,000 that are a start

_LONGEST_STEP: Final = 0.02  # seconds


@pytest.fixture(scope="module")
def daemons() -> Iterator[Daemons]:
    with fork_server() as found:
        yield found


def place_on(
    daemons: Daemons, folder: Path, runtime: Runtime, *, watched: bool = True
) -> Place:
    place = Place(daemons, folder, runtime, MACHINE, watched=watched)
    place.write_config(BEGINNINGS["topology-aware"][0])
    return place


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGUSR1])
async def test_signals_that_ask_for_something(
    daemons: Daemons, tmp_path: Path, number: signal.Signals
) -> None:
    random, sent = Random(number), 0  # noqa: S311 - the same points each time
    async with Runtime(tmp_path) as runtime:
        place = place_on(daemons, tmp_path, runtime)
        expected = []
        await place.start()
        for step in ROUND:
            await step.act(place)
            expected.append(place.pins())
        wrong = []
        while sent < TIMES:
            for step, pins in zip(ROUND, expected, strict=True):
                place.trigger.arm(random.randrange(1, _LONGEST), number)
                await step.act(place)
                sent += not place.trigger.is_armed
                wrong += [] if place.pins() == pins else [step.title]
        await place.rested()
        status = await place.kill(signal.SIGTERM)

    assert (wrong, status) == ([], 0)
    assert place.logged("part.failed") == place.logged("handler.failed") == 0


@pytest.mark.parametrize("seed", range(HALVES))
async def test_an_orderly_end_at_any_time(
    daemons: Daemons, tmp_path: Path, seed: int
) -> None:
    random, wrong = Random(seed), []  # noqa: S311 - the same moments each time
    loop = asyncio.get_running_loop()
    async with Runtime(tmp_path) as runtime:
        place = place_on(daemons, tmp_path, runtime, watched=False)
        await place.start()
        expected = []
        for step in ROUND:
            await step.act(place)
            expected.append((place.pins(), await place.state()))
        while len(place.statuses) < TIMES // HALVES:
            for step, before in zip(ROUND, expected, strict=True):
                # It is looked at between two requests, whenever it comes.
                delay = random.uniform(0, _LONGEST_STEP)
                loop.call_later(delay, os.kill, place.pid, signal.SIGTERM)
                await step.act(place)
                await place.ended()
                await place.start()
                found = place.pins(), await place.state()
                wrong += [] if found == before else [step.title]
        status = await place.kill(signal.SIGTERM)

    assert (wrong, status, set(place.statuses)) == ([], 0, {0})


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGUSR1, signal.SIGTERM])
async def test_signals_while_it_starts(
    daemons: Daemons, tmp_path: Path, number: signal.Signals
) -> None:
    async with Runtime(tmp_path) as runtime:
        place = place_on(daemons, tmp_path, runtime)
        await place.start()
        await ROUND[0].act(place)
        await ROUND[1].act(place)
        before = place.pins()
        await place.kill(signal.SIGTERM)
        await place.start()
        await place.rested()
        steps, statuses = place.trigger.count, list[int]()
        await place.kill(signal.SIGTERM)
        for part in range(STARTS):
            await place.launch()
            # Earlier, no handler is installed, and a signal has its default action.
            place.trigger.arm(_EARLY + (steps - _EARLY) * part // STARTS, number)
            await place.in_step()
            await place.rested()
            statuses.append(await place.kill(signal.SIGTERM))
        await place.start()
        after = place.pins()
        await place.kill(signal.SIGTERM)

    assert after == before
    assert set(statuses) <= ({0, -number} if number is signal.SIGTERM else {0})
