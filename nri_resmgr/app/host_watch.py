"""Notices that what a policy wants of its host may have changed."""

from __future__ import annotations

import asyncio
from typing import Any

from nri_resmgr.app.witness import Witness
from nri_resmgr.config import PolicyConfig
from nri_resmgr.policy.decision import Decision
from nri_resmgr.policy.events import Event, Synchronized


class HostWatch(Witness):
    """Wakes up who has the host follow, once it is known what runs.

    Attributes:
        effects: The `HostEffects`; its class is imported late. None as long as
            nothing is wanted of the host.
        why_ended: Why nobody has the host follow any more; empty as long as somebody
            does.
    """

    def __init__(self) -> None:
        self.effects: Any = None
        self.why_ended = ""
        self._changed = asyncio.Event()
        self._is_told = False

    def decided(self, event: Event, decision: Decision[Any]) -> None:  # noqa: ARG002 - the state is asked for later
        """Note that the state is another one."""
        if not self._is_told:
            # What ran before us has its share in what the host is like.
            self._is_told = isinstance(event, Synchronized) and event.pods is not None
        if self._is_told:
            self._changed.set()

    def configured(self, config: PolicyConfig) -> None:  # noqa: ARG002 - asked for later
        """Note that the rules, or the machine, are others."""
        if self._is_told:
            self._changed.set()

    async def next(self, seconds: float | None) -> bool:
        """Wait until something may have changed.

        Args:
            seconds: For how long; None for ever.

        Returns:
            Whether it may have, and is not only over.
        """
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return False
        self._changed.clear()
        return True

    def ended(self, why: str) -> None:
        """Tell that nobody has the host follow from now on."""
        self.why_ended = why
        if self.effects is not None:
            self.effects.report.stopped(why)

    @property
    def why_not(self) -> str:
        """Why the host does not follow; empty where it does, or nothing is wanted."""
        if self.why_ended or self.effects is None:
            return self.why_ended
        why: str = self.effects.report.why_not
        return why

    def close(self) -> None:
        """Have the host set back."""
        if self.effects is not None:
            self.effects.close()
