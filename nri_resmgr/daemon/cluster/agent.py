"""Reports of the agent, and its silence."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from nri_resmgr.app.configuration.cluster import AgentReport
from nri_resmgr.log import Logger

log = Logger(__name__)

ABSENT_AFTER: Final = 600.0
"""Seconds without a report of the agent, after which it counts as absent."""


class AgentContact:
    """Keeps the last report of the agent, and logs when none comes any more.

    Args:
        absent_after: Seconds without a report after which the agent counts as absent.

    Attributes:
        report: The last one; None if there was none.
    """

    def __init__(self, absent_after: float = ABSENT_AFTER) -> None:
        self.report: AgentReport | None = None
        self._absent_after = absent_after
        self._began = time.monotonic()
        self._reported = asyncio.Event()

    @property
    def silence(self) -> float:
        """Seconds since the last report, or since this process began."""
        seen = self.report.seen if self.report else self._began
        return time.monotonic() - seen

    def is_absent(self, silence: float) -> bool:
        """Return whether the agent counts as absent after that many seconds."""
        return silence >= self._absent_after

    def hear(
        self, version: str, node: str, contact: float | None, problem: str = ""
    ) -> None:
        """Note a report of the agent.

        Args:
            version: Of the agent.
            node: Its node.
            contact: Seconds since the API server last answered it; None if never.
            problem: What keeps it from its work.
        """
        was, now = self.report, time.monotonic()
        moment = None if contact is None else now - contact
        self.report = AgentReport(version, node, now, moment, problem)
        if was is None or (was.version, was.node) != (version, node):
            log.info("cluster.agent", version=version, node=node)
        self._reported.set()

    async def watch(self) -> None:
        """Log when the agent becomes absent, and when it returns. Never returns."""
        while True:
            self._reported.clear()
            rest = self._absent_after - self.silence
            if rest > 0:
                await asyncio.sleep(rest)
                continue
            seconds = round(self.silence)
            log.warning("cluster.agent-absent", seconds=seconds)
            await self._reported.wait()
            log.info("cluster.agent-returned")
