"""The agent as a task of the test's process."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import random

from nri_resmgr.agent.agent import Agent
from nri_resmgr.agent.api import Access, ApiClient
from nri_resmgr.agent.options import AgentOptions


@asynccontextmanager
async def agent_task(
    access: Access, options: AgentOptions, chance: Callable[[], float] = random
) -> AsyncIterator[None]:
    """Run an agent until the end of the block."""
    async with ApiClient.open(access) as api:
        task = asyncio.create_task(Agent(api, options, chance).run())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
