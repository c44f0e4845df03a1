"""A thousand documents under load, a third of them wrong: always the last right one."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from nri_resmgr.control.client import Client, QueryRefused
from nri_resmgr.testing import Runtime, RuntimeRefusal
from nri_resmgr.values import CpuSet
from tests.faults.daemons import PATIENCE, Daemons, Place, fork_server
from tests.faults.histories import BEGINNINGS, MACHINE, document
from tests.faults.history import (
    best_effort,
    burstable,
    end_pod,
    guaranteed,
    place_container,
    resize,
)

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(600)]

SWAPS: Final = 1000
_LOOK: Final = 50  # swaps after which daemon and runtime rest for a moment


def permitting(text: str) -> str:
    """Let a document take exclusive CPUs from containers."""
    text = text.replace("spec: {", "spec: {allowLoss: true, ")
    return text.replace("spec: \n", "spec:\n  allowLoss: true\n")


_GOOD: Final = (
    *(text for text, _ in BEGINNINGS.values()),
    document("TopologyAwarePolicy", "{reservedResources: {cpu: 'cpuset:15,31'}}"),
    document("TopologyAwarePolicy", "{colocatePods: true, pinMemory: false}"),
    document("StaticPolicy", "{reservedResources: {cpu: 'cpuset:8-9'}}"),
    document("BalloonsPolicy", "{balloonTypes: [{name: db, namespaces: [db]}]}"),
)
GOOD: Final = tuple(permitting(text) for text in _GOOD)
BAD: Final = (
    "",
    "kind: [",
    GOOD[0].replace("reserved", "preserved"),
    GOOD[0].replace("'cpuset:0,16'", "99"),
    document("NoPolicy", "{}"),
    GOOD[1][: len(GOOD[1]) * 2 // 3],
    GOOD[1].replace("minCPUs: 2", "minCPUs: 64"),
)

ROWS: Final = (
    guaranteed(1000, "db"),
    guaranteed(2000),
    guaranteed(1500),
    burstable(500, "web"),
    best_effort(),
)


@pytest.fixture
def daemons() -> Iterator[Daemons]:
    with fork_server() as found:
        yield found


class Load:
    """Containers that come, grow, shrink and go; it can rest."""

    def __init__(self, place: Place, random: Random) -> None:
        self._place, self._random = place, random
        self.may_run = asyncio.Event()
        self.rests = asyncio.Event()
        self.requests = 0

    async def run(self) -> None:
        names: list[str] = []
        while True:
            self.rests.set()
            await self.may_run.wait()
            self.rests.clear()
            self.requests += 1
            try:
                await self._something(names)
            except RuntimeRefusal:
                continue  # a node may be full for one policy and not for another
            await asyncio.sleep(0.001)

    async def _something(self, names: list[str]) -> None:
        if len(names) > 8 or (names and self._random.random() < 0.3):
            name = names.pop(self._random.randrange(len(names)))
            await end_pod(f"pod-{name}").act(self._place)
        elif names and self._random.random() < 0.3:
            await resize(names[0], burstable(500 * self.requests % 2000)).act(
                self._place
            )
        else:
            name = f"c{self.requests}"
            await place_container(self._place, name, self._random.choice(ROWS))
            names.append(name)


async def swap(place: Place, text: str) -> str:
    """Put a document in force; return why that failed."""
    place.write_config(text)
    client = Client(str(place.folder / "control.sock"))
    try:
        await asyncio.to_thread(client.post, "/v1/reload")
    except QueryRefused as error:
        return error.why
    return ""


async def looked_at(place: Place) -> list[str]:
    """Check that containers run where the daemon reports, each in one place."""
    async with asyncio.timeout(PATIENCE):
        while True:
            state = await place.ask()
            if (wrong := _unlike(place, state)) == []:
                break
            await place.ending(within=0.05)  # updates are under way
    own = [CpuSet.parse(one["exclusive"]) for one in state["containers"]]
    if len(CpuSet.union(own)) != sum(map(len, own)):
        wrong.append(f"CPUs are granted twice: {own}")
    return wrong


def _unlike(place: Place, state: dict[str, Any]) -> list[str]:
    pins = place.pins()
    reported = {one["id"]: one for one in state["containers"]}
    if reported.keys() != pins.keys():
        return [f"{set(pins)} run, {set(reported)} are known"]
    return [
        f"{name} is on {pins[name][0]}, not {one['cpus']}"
        for name, one in reported.items()
        if one["cpus"] and pins[name][0] != one["cpus"]
    ]


async def test_documents_come_and_go(daemons: Daemons, tmp_path: Path) -> None:
    random = Random(0)  # noqa: S311 - the same documents each time
    wrong, refused, in_force = list[str](), 0, GOOD[0]
    async with Runtime(tmp_path) as runtime:
        place = Place(daemons, tmp_path, runtime, MACHINE)
        place.write_config(in_force)
        await place.start()
        load = Load(place, random)
        running = asyncio.create_task(load.run())
        load.may_run.set()
        await place.ask()
        for number in range(SWAPS):
            is_bad = number % 3 == 2
            text = random.choice(BAD if is_bad else GOOD)
            why = await swap(place, text)
            in_force = in_force if is_bad else text
            refused += bool(why)
            wrong += [] if bool(why) == is_bad else [f"{text!r}: {why or 'taken'}"]
            if number % _LOOK == _LOOK - 1:
                load.may_run.clear()
                await load.rests.wait()
                found = (await place.ask())["configuration"]["sha256"]
                if found != hashlib.sha256(in_force.encode()).hexdigest():
                    wrong.append(f"{number}: another document is in force")
                wrong += await looked_at(place)
                load.may_run.set()
        running.cancel()
        await asyncio.wait({running})
        status = await place.kill(15)

    assert running.cancelled()
    assert (wrong, status) == ([], 0)
    assert refused == SWAPS // 3
    assert load.requests > SWAPS // 2
