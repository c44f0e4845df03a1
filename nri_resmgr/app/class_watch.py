"""Passes on what was decided to those who have classes of running containers follow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from nri_resmgr.app.witness import Witness
from nri_resmgr.config import PolicyConfig
from nri_resmgr.policy.decision import Decision
from nri_resmgr.policy.events import Event, Synchronized


class ClassWatch(Witness):
    """A witness that is there from the start, and light: few nodes have such classes.

    Attributes:
        rdt: The `RdtEffects`; None until somebody needs them.
        blockio: The `BlockIoEffects`, likewise.
    """

    def __init__(self) -> None:
        self.rdt: Any = None
        self.blockio: Any = None
        self._is_in_sync = False
        self._changed = asyncio.Event()

    def follow(self, *, rdt: Any = None, blockio: Any = None) -> None:
        """Pass on from now on, and what was said before."""
        self.rdt, self.blockio = rdt or self.rdt, blockio or self.blockio
        for one in (rdt, blockio):
            if one is not None:
                one.is_in_sync = self._is_in_sync

    def configured(self, config: PolicyConfig) -> None:
        """Pass it on."""
        self._changed.set()
        for one in (self.rdt, self.blockio):
            if one is not None:
                one.configured(config)

    def decided(self, event: Event, decision: Decision[Any]) -> None:
        """Pass it on."""
        self._is_in_sync = self._is_in_sync or isinstance(event, Synchronized)
        for one in (self.rdt, self.blockio):
            if one is not None:
                one.decided(event, decision)

    async def until(self, is_needed: Callable[[], bool]) -> None:
        """Wait for a configuration that needs something."""
        while not is_needed():
            self._changed.clear()
            await self._changed.wait()

    def close(self) -> None:
        """Take back what the host has of us."""
        if self.rdt is not None:
            self.rdt.close()
