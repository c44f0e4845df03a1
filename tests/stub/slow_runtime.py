"""A runtime that takes calls when a test lets it, and values to send to it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable

from nri_resmgr.stub import ContainerUpdate
from nri_resmgr.stub.pending_updates import Source


def updates(**cpus: str) -> tuple[ContainerUpdate, ...]:
    return tuple(ContainerUpdate(key).set_cpus(one) for key, one in cpus.items())


def cpus_of(wanted: dict[str, str]) -> Source:
    """Make a source of CPUs, which may change while something waits."""

    def source(key: str) -> ContainerUpdate | None:
        return ContainerUpdate(key).set_cpus(wanted[key]) if key in wanted else None

    return source


class SlowRuntime:
    """Takes each call when the gate is open.

    Attributes:
        calls: The updates of each call.
        refused: Ids of containers that cannot be updated.
        gate: Opens to let calls end.
        error: Raised by calls.
    """

    def __init__(self, error: Exception | None = None) -> None:
        self.calls: list[tuple[ContainerUpdate, ...]] = []
        self.refused: set[str] = set()
        self.gate = asyncio.Event()
        self.error = error
        self.may_call, self.quiet_seconds = True, math.inf

    async def update_containers(
        self, updates: Iterable[ContainerUpdate]
    ) -> tuple[ContainerUpdate, ...]:
        """See `nri_resmgr.stub.update_sender.ContainerUpdater`."""
        self.calls.append(tuple(updates))
        await self.gate.wait()
        if self.error:
            raise self.error
        return tuple(one for one in self.calls[-1] if one.container_id in self.refused)


def open_runtime(error: Exception | None = None) -> SlowRuntime:
    runtime = SlowRuntime(error)
    runtime.gate.set()
    return runtime


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)
