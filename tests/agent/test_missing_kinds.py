"""A kind that is missing is noticed soon after its CRD is there, by few requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import pytest

from nri_resmgr.agent.api import Access, Resource
from nri_resmgr.agent.api.credentials import Credentials
from nri_resmgr.agent.api.kinds import LOOK, MissingKinds
from nri_resmgr.agent.api.transport import Transport
from tests.agent.fake_api_server import FakeApiServer, Request, Wire, status
from tests.real_host.patience import patience

GROUP: Final = "/apis/config.nri/v1alpha1"
STATIC: Final = Resource(
    "config.nri", "v1alpha1", "staticpolicies", "StaticPolicy", True
)
BALLOONS: Final = Resource(
    "config.nri", "v1alpha1", "balloonspolicies", "BalloonsPolicy", True
)
ADJUSTMENTS: Final = Resource(
    "criresmgr.intel.com", "v1alpha1", "adjustments", "Adjustment", True
)
LONG: Final = 1e6  # seconds


class Looks:
    """Missing kinds, the pauses between looks, and the requests that they were."""

    def __init__(self, server: FakeApiServer, transport: Transport) -> None:
        self.pauses: list[float] = []
        self.kinds = MissingKinds(transport, self._sleep)
        self._server = server

    async def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await asyncio.sleep(0.01)

    @property
    def paths(self) -> list[str]:
        """The paths of all requests."""
        return [one.path for one in self._server.requests]

    async def until(self, number: int) -> None:
        """Wait for so many more requests."""
        wanted = len(self.paths) + number
        async with asyncio.timeout(patience(30)):
            while len(self.paths) < wanted:  # noqa: ASYNC110 - the server has no event
                await asyncio.sleep(0.01)


@asynccontextmanager
async def looking(server: FakeApiServer, access: Access) -> AsyncIterator[Looks]:
    server.kinds.clear()
    transport = Transport(access, Credentials(access))
    try:
        yield Looks(server, transport)
    finally:
        await transport.close()


async def test_one_poll_serves_all_waiters_for_kinds_of_a_group(
    server: FakeApiServer, access: Access
) -> None:
    async with looking(server, access) as looks, asyncio.TaskGroup() as group:
        first = [
            group.create_task(looks.kinds.wait(STATIC, LONG)),
            group.create_task(looks.kinds.wait(STATIC, LONG)),
        ]
        other = group.create_task(looks.kinds.wait(BALLOONS, LONG))
        await looks.until(3)
        none_yet = [task.done() for task in (*first, other)]
        server.kinds.add("config.nri/staticpolicies")
        await asyncio.wait(first, timeout=patience(30))
        one_is = [task.done() for task in (*first, other)]
        server.kinds.add("config.nri/balloonspolicies")
        await asyncio.wait_for(other, patience(30))
        count = len(looks.paths)
        await asyncio.sleep(0.2)

        assert none_yet == [False] * 3
        assert one_is == [True, True, False]
        assert set(looks.paths) == {GROUP}
        # One series for all three, which ends with the last of them.
        assert len(looks.paths) == count <= len(looks.pauses) <= count + 1
        assert all(LOOK <= pause <= 2 * LOOK for pause in looks.pauses)


async def test_each_group_is_looked_at_by_itself(
    server: FakeApiServer, access: Access
) -> None:
    async with looking(server, access) as looks, asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(looks.kinds.wait(one, LONG))
            for one in (STATIC, ADJUSTMENTS)
        ]
        await looks.until(4)
        server.kinds |= {"config.nri/staticpolicies", "criresmgr.intel.com/adjustments"}
        await asyncio.wait_for(asyncio.gather(*tasks), patience(30))

    assert set(looks.paths) == {GROUP, "/apis/criresmgr.intel.com/v1alpha1"}


async def test_polling_ends_with_its_last_waiter(
    server: FakeApiServer, access: Access
) -> None:
    async with looking(server, access) as looks:
        task = asyncio.create_task(looks.kinds.wait(STATIC, LONG))
        await looks.until(1)
        task.cancel()
        await asyncio.wait({task})
        await asyncio.sleep(0.1)
        count = len(looks.paths)
        await asyncio.sleep(0.2)
        assert len(looks.paths) == count
        # And again by another one.
        server.kinds.add("config.nri/staticpolicies")
        await asyncio.wait_for(looks.kinds.wait(STATIC, LONG), patience(30))


async def test_a_kind_whose_objects_stay_missing_is_polled_rarely(
    server: FakeApiServer, access: Access
) -> None:
    """As where a CRD has another scope, or no status, than the agent needs."""
    async with looking(server, access) as looks:
        server.kinds.add("config.nri/staticpolicies")
        for _ in range(5):
            await asyncio.wait_for(looks.kinds.wait(STATIC, LONG), patience(30))

    assert looks.pauses.count(LONG) == 2
    assert looks.pauses[-2:] == [LONG] * 2
    assert looks.paths == [GROUP] * 3


@pytest.mark.parametrize("code", [403, 500])
async def test_without_an_answer_the_pause_of_the_waiter_applies(
    code: int, server: FakeApiServer, access: Access
) -> None:
    async def refuse(_: Request, wire: Wire) -> bool:
        server.faults.append(refuse)
        await wire.answer(code, status(code, "No", "no"))
        return True

    server.faults = [refuse]
    async with looking(server, access) as looks:
        long = asyncio.create_task(looks.kinds.wait(STATIC, LONG))
        await asyncio.wait_for(looks.kinds.wait(STATIC, 0.1), patience(30))
        waits = not long.done()
        long.cancel()
        await asyncio.wait({long})

    assert waits
    assert all(pause >= LOOK for pause in looks.pauses)
