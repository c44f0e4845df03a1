"""A daemon that is killed anywhere and started again has the same state."""

from __future__ import annotations

import resource
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import attrs
import pytest

from nri_resmgr.testing import Runtime
from tests.faults.daemons import Daemons, Place, fork_server
from tests.faults.histories import BEGINNINGS, MACHINE
from tests.faults.history import Step, burstable, end_pod, run
from tests.faults.unequal import unequal

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(600)]

PARTS: Final = 4  # of each step, with one kill each
STARTS: Final = 12  # points of a start
WRITES: Final = 12  # bytes of a checkpoint

_GOLDEN: Final = 0.6180339887  # its multiples are spread evenly between 0 and 1
_ENOUGH: Final = 8  # steps of a history, after which most kinds of containers run

Pins = dict[str, tuple[str, str, int]]


@attrs.frozen
class Undisturbed:
    """Outcome of a step without a kill.

    Attributes:
        title: Of the step.
        steps: How many the daemon makes, until it rests.
        state: The grants that it reports.
        pins: Where the runtime has the containers.
    """

    title: str
    steps: int
    state: dict[str, Any]
    pins: Pins


async def undisturbed(place: Place, history: tuple[Step, ...]) -> list[Undisturbed]:
    """Play a history to its end."""
    found = []
    await place.start()
    await place.rested()
    for step in history:
        before = place.trigger.count
        await step.act(place)
        await place.rested()
        steps = place.trigger.count - before
        found.append(Undisturbed(step.title, steps, await place.state(), place.pins()))
    assert await place.kill(signal.SIGTERM) == 0
    return found


async def differences(
    place: Place, history: tuple[Step, ...], as_before: list[Undisturbed], part: int
) -> tuple[int, list[str]]:
    """Kill the daemon once in each step; return how often, and what differs.

    Args:
        place: Where nothing runs yet.
        history: The steps.
        as_before: How they end undisturbed.
        part: Which part of each step, of `PARTS`.
    """
    killed, wrong = 0, []
    await place.start()
    await place.rested()
    for number, (step, before) in enumerate(zip(history, as_before, strict=True)):
        fraction = (part + number * _GOLDEN % 1) / PARTS
        if step.counts:
            place.trigger.arm(round(before.steps * fraction), signal.SIGKILL)
        await step.act(place)
        await place.rested()
        if step.counts:
            where = f"{step.title}, {'after' if place.is_up else f'at {fraction:.0%}'}"
            killed += await place.kill() == -signal.SIGKILL
            await place.start()
            await place.rested()
            wrong += [f"{where}: {one}" for one in await _changed(place, before)]
    assert await place.kill(signal.SIGTERM) == 0
    return killed, wrong


async def _changed(place: Place, before: Undisturbed) -> list[str]:
    now = {"pins": place.pins(), **await place.state()}
    return list(unequal(now, {"pins": before.pins, **before.state}))


@pytest.fixture(scope="module")
def daemons() -> Iterator[Daemons]:
    with fork_server() as found:
        yield found


@pytest.fixture(scope="module")
def known() -> dict[str, list[Undisturbed]]:
    """Outcomes of histories, for all tests of a worker."""
    return {}


@asynccontextmanager
async def at(daemons: Daemons, folder: Path, text: str) -> AsyncIterator[Place]:
    folder.mkdir()  # noqa: ASYNC240 - nothing waits
    async with Runtime(folder) as runtime:
        place = Place(daemons, folder, runtime, MACHINE, watched=True)
        place.write_config(text)
        yield place


# The outcomes without a kill are computed once per worker.
EACH_POLICY: Final = [
    pytest.param(policy, marks=pytest.mark.xdist_group(f"kill-points-{policy}"))
    for policy in BEGINNINGS
]


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("policy", EACH_POLICY)
async def test_killed_at_any_point(
    daemons: Daemons,
    known: dict[str, list[Undisturbed]],
    tmp_path: Path,
    policy: str,
    part: int,
) -> None:
    text, history = BEGINNINGS[policy]
    if policy not in known:
        async with at(daemons, tmp_path / "undisturbed", text) as place:
            known[policy] = await undisturbed(place, history)
    async with at(daemons, tmp_path / "killed", text) as place:
        killed, wrong = await differences(place, history, known[policy], part)

    assert wrong == []
    assert killed == sum(step.counts for step in history)


def test_there_are_points_enough() -> None:
    counted = (step.counts for _, history in BEGINNINGS.values() for step in history)

    assert PARTS * sum(counted) >= 200


@pytest.mark.parametrize("policy", BEGINNINGS)
async def test_killed_while_it_starts(
    daemons: Daemons, tmp_path: Path, policy: str
) -> None:
    text, history = BEGINNINGS[policy]
    async with at(daemons, tmp_path / "here", text) as place:
        await place.start()
        for step in history[:_ENOUGH]:
            await step.act(place)
        before = Undisturbed("start", 0, await place.state(), place.pins())
        await place.kill()
        await place.start()
        await place.rested()
        steps, wrong = place.trigger.count, await _changed(place, before)
        await place.kill()
        for number in range(STARTS):
            await place.launch()
            place.trigger.arm(steps * number // STARTS, signal.SIGKILL)
            await place.in_step()
            await place.rested()
            assert await place.kill() == -signal.SIGKILL
            await place.start()
            wrong += await _changed(place, before)
            await place.kill()

    assert wrong == []


async def test_killed_while_it_writes(daemons: Daemons, tmp_path: Path) -> None:
    text, history = BEGINNINGS["topology-aware"]
    async with at(daemons, tmp_path / "here", text) as place:
        # A log in a file would be cut, too.
        place.log.symlink_to("/dev/null")
        await place.start()
        for step in history[:_ENOUGH]:
            await step.act(place)
        await place.rested()
        before = Undisturbed("write", 0, await place.state(), place.pins())
        checkpoint = tmp_path / "here" / "state" / "policy.checkpoint"
        size, wrong, statuses = checkpoint.stat().st_size, [], []
        for number in range(1, WRITES + 1):
            limit = size * number // WRITES
            # The kernel ends it at just this byte.
            resource.prlimit(place.pid, resource.RLIMIT_FSIZE, (limit, limit))
            await run("one-more", burstable(100)).act(place)
            statuses.append(await place.ended())
            cut = checkpoint.with_name(".policy.checkpoint.new").stat().st_size
            wrong += [] if cut == limit else [f"{cut} bytes, not {limit}"]
            await end_pod("pod-one-more").act(place)
            await place.start()
            wrong += await _changed(place, before)

    assert wrong == []
    assert statuses == [-signal.SIGXFSZ] * WRITES
