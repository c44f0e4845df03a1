"""A runtime that starts again and again finds its containers where they were."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from nri_resmgr.testing import Runtime
from tests.faults.daemons import IDENTITY, Daemons, Place, fork_server
from tests.faults.histories import BEGINNINGS, MACHINE
from tests.faults.history import burstable, guaranteed, place_container

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(600)]

NODES: Final = 4  # side by side: a daemon waits a tenth of a second before it returns
RESTARTS: Final = 50  # of each


@pytest.fixture
def servers() -> Iterator[list[Daemons]]:
    with fork_server() as a, fork_server() as b, fork_server() as c, fork_server() as d:
        yield [a, b, c, d]


async def restarted(daemons: Daemons, folder: Path, policy: str) -> list[str]:
    """Restart a runtime while containers start and end; return the differences."""
    wrong: list[str] = []
    folder.mkdir()  # noqa: ASYNC240 - nothing waits
    runtime = Runtime(folder)
    place = Place(daemons, folder, runtime, MACHINE)
    place.write_config(BEGINNINGS[policy][0])
    await runtime.start()
    await place.start()
    await place_container(place, "web", burstable(500, "web"))
    await place_container(place, "db", guaranteed(2000, "db"))
    for number in range(RESTARTS):
        name = f"own{number}"
        await place_container(place, name, guaranteed(2000, "db"))
        before = place.pins()
        await runtime.stop()
        if number % 3 == 1:  # one ends while the plugin is not connected
            await runtime.remove_container(name)
        if number % 3 == 2:  # and one begins
            await place_container(place, f"late{number}", guaranteed(1000, "db"))
        await runtime.start()
        await runtime.synchronized(IDENTITY)
        after = place.pins()
        gone, late = number % 3 == 1, number % 3 == 2
        kept = {"web", "db"} - ({"web"} if gone or late else set())
        wrong += [
            f"{number}: {one} is on {after[one]}, not {before[one]}"
            for one in kept | (set() if gone else {name})
            if after[one] != before[one]
        ]
        own = [cpus for one, (cpus, _, _) in after.items() if one != "web"]
        wrong += [] if len(set(own)) == len(own) else [f"{number}: twice: {after}"]
        for one in runtime.world.pods.copy():
            if one not in {"pod-web", "pod-db"}:
                await runtime.stop_pod(one)
                await runtime.remove_pod(one)
    if place.logged("session.ended") != RESTARTS:
        wrong.append(f"{place.logged('session.ended')} sessions have ended")
    wrong += [] if await place.kill(15) == 0 else ["no orderly end"]
    await runtime.stop()
    return wrong


async def test_containers_keep_their_cpus_over_restarts_of_the_runtime(
    servers: list[Daemons], tmp_path: Path
) -> None:
    policies = (*BEGINNINGS, "topology-aware")
    found = await asyncio.gather(
        *(
            restarted(daemons, tmp_path / str(number), policy)
            for number, (daemons, policy) in enumerate(
                zip(servers, policies, strict=True)
            )
        )
    )

    assert found == [[]] * NODES
    assert NODES * RESTARTS >= 200
