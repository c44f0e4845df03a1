"""Clients that come at the same time share a text."""

from __future__ import annotations

import asyncio

import pytest

from nri_resmgr.daemon.rendering import Rendering


class Source:
    """Makes a new text each time, but for the third."""

    def __init__(self) -> None:
        self.runs = 0
        self.goes_on = asyncio.Event()

    async def __call__(self) -> bytes:
        self.runs += 1
        number = self.runs
        await self.goes_on.wait()
        if number == 3:
            raise OSError("the file is gone")
        return b"%d" % number


async def test_clients_at_the_same_time_share_a_run() -> None:
    source = Source()
    rendering = Rendering(source)
    clients = [asyncio.create_task(rendering.text()) for _ in range(16)]
    await asyncio.sleep(0)
    clients.pop().cancel()  # it leaves; the others get their text
    await asyncio.sleep(0)
    source.goes_on.set()
    together = await asyncio.gather(*clients)
    later = await rendering.text()
    with pytest.raises(OSError, match="the file is gone"):
        await rendering.text()

    assert (together, later) == ([b"1"] * 15, b"2")
    assert await rendering.text() == b"4"
