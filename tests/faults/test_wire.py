"""EOF, silence, delay and garbage at every frame of a session, either way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from nri_resmgr.testing import Runtime, RuntimeOptions, RuntimeRefusal
from tests.faults.daemons import IDENTITY, PATIENCE, Daemons, Place, fork_server
from tests.faults.histories import BEGINNINGS, MACHINE
from tests.faults.history import burstable, end_pod, guaranteed, place_container
from tests.faults.wire_proxy import Fault, Harm, Proxy, Side

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(600)]

# A session with a container that comes and goes has more.
FRAMES: Final = 10  # of each side

# Of the runtime, seconds: as those of real ones, for the machine may be busy.
LIMIT: Final = 2.0

_SOON: Final = 0.4  # seconds in which a session that is harmed has got as far as it can


@pytest.fixture(scope="module")
def daemons() -> Iterator[dict[Side, Daemons]]:
    with fork_server() as one, fork_server() as other:
        yield {Side.PLUGIN: one, Side.RUNTIME: other}


class Wire:
    """A daemon, a proxy and a runtime, with containers that must not move."""

    def __init__(self, place: Place, proxy: Proxy) -> None:
        self.place, self.proxy = place, proxy
        self.wrong: list[str] = []
        self._number = 0

    async def disturb(self, fault: Fault) -> None:
        """Harm a session, and check that the next one is good."""
        before, runtime = self.place.pins(), self.place.runtime
        self.proxy.faults.append(fault)
        await self._next_session()
        await self._until(lambda: self._is_done(fault) or IDENTITY in runtime.plugins)
        with suppress(TimeoutError):
            await runtime.synchronized(IDENTITY, within=_SOON)
        name = await self._come()
        with suppress(RuntimeRefusal):
            await end_pod(f"pod-{name}").act(self.place)
        if not self._is_done(fault):
            self.wrong.append(f"{fault}: the session has no such frame")
        await self._next_session()
        await runtime.synchronized(IDENTITY, within=PATIENCE)
        if self.place.pins() != before:
            self.wrong.append(f"{fault}: {self.place.pins()}, not {before}")
        name = await self._come()
        own = self.place.pins()[name][0]
        if not own or any(own == cpus for cpus, _, _ in before.values()):
            self.wrong.append(f"{fault}: {name} is on {own!r}")
        await end_pod(f"pod-{name}").act(self.place)
        if self.place.pins() != before:
            self.wrong.append(f"{fault}: afterwards {self.place.pins()}")

    def _is_done(self, fault: Fault) -> bool:
        return self.proxy.done[-1:] == [fault]

    async def _until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not holds():
                await self.place.ending(within=0.01)

    async def _come(self) -> str:
        self._number += 1
        name = f"c{self._number}"
        with suppress(RuntimeRefusal):
            await place_container(self.place, name, guaranteed(1000))
        return name

    async def _next_session(self) -> None:
        count = self.proxy.connections
        self.proxy.hang_up()
        await self._until(lambda: self.proxy.connections > count)
        self.place.runtime.roster.drop_closed()


async def harmed(daemons: Daemons, folder: Path, harm: Harm, side: Side) -> list[str]:
    """Do harm to each frame of one side; return what went wrong."""
    folder.mkdir()  # noqa: ASYNC240 - nothing else runs yet
    async with Runtime(
        folder, options=RuntimeOptions(request_timeout=LIMIT)
    ) as runtime:
        proxy = Proxy(folder, runtime.socket_path)
        serving = asyncio.create_task(proxy.serve())
        await asyncio.sleep(0)
        place = Place(daemons, folder, runtime, MACHINE, socket=proxy.path)
        place.write_config(BEGINNINGS["topology-aware"][0])
        await place.start()
        for name, row in (("web", burstable(500)), ("db", guaranteed(2000))):
            await place_container(place, name, row)
        wire = Wire(place, proxy)
        for at in range(FRAMES):
            await wire.disturb(Fault(side, at, harm))
        wire.wrong += [] if await place.kill(15) == 0 else ["no orderly end"]
        wire.wrong += ["a handler failed"] * place.logged("handler.failed")
        serving.cancel()
        await asyncio.wait({serving})
    return wire.wrong


@pytest.mark.parametrize("harm", Harm)
async def test_every_step(
    daemons: dict[Side, Daemons], tmp_path: Path, harm: Harm
) -> None:
    # Side by side: most of the time they wait.
    found = await asyncio.gather(
        *(
            harmed(one, tmp_path / side.name, harm, side)
            for side, one in daemons.items()
        )
    )

    assert found == [[], []]
