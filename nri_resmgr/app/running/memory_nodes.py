"""Writes memory nodes of running containers, apart from their CPUs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeAlias

import msgspec

from nri_resmgr.app.background.threads import in_thread
from nri_resmgr.app.running.waiting import WaitingPins
from nri_resmgr.host.cgroups.containers import CgroupReference
from nri_resmgr.host.cgroups.writer import CgroupWriter, CpusetValues, WriteResult
from nri_resmgr.values import NodeSet


class NodeWrite(msgspec.Struct, frozen=True):
    """Memory nodes to write.

    Attributes:
        is_check: Whether they were written before, and are only compared.
    """

    cgroup: CgroupReference
    mems: NodeSet
    is_check: bool = False


WantedNodes: TypeAlias = Callable[[str], tuple[CgroupReference, NodeSet] | None]
"""Returns a container's cgroup and the nodes that it should have; None for neither."""


class MemoryNodeWrites:
    """Writes the memory nodes of containers, one after the other.

    In cgroup v2 the kernel moves a container's memory before the write returns, which
    takes a second for each gigabyte or so. No start waits for that, unless the kernel
    makes writes of CPUs wait for memory that moves, as some releases do.

    Args:
        writer: Used by this thread only.
        waiting: Containers whose nodes are to be written or compared.
        wanted: See `WantedNodes`.
        written: Called with each result.
        failed: Called with those that wait, and the reason, where none can be written.
    """

    def __init__(
        self,
        writer: CgroupWriter,
        waiting: WaitingPins,
        wanted: WantedNodes,
        written: Callable[[NodeWrite, WriteResult], None],
        failed: Callable[[Iterable[str], str], None],
    ) -> None:
        self._writer = writer
        self.waiting = waiting
        self._wanted = wanted
        self._written = written
        self._failed = failed
        self._left: tuple[str, ...] = ()  # to the runtime, as nothing could be written

    async def run(self) -> None:
        """Write what waits, until cancelled; call it again after an exception."""
        for key in self._left:
            self.waiting.add(key)
        self._left = ()
        try:
            while True:
                if changed := self.waiting.changed:
                    self.waiting.take(changed[:1])
                    await self._write(changed[0], is_check=False)
                elif due := self.waiting.take_checks(1):
                    await self._write(*due, is_check=True)
                else:
                    await self.waiting.wait()
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            self._left = self.waiting.clear()
            self._failed(self._left, why)
            raise

    async def _write(self, container: str, *, is_check: bool) -> None:
        if (found := self._wanted(container)) is not None:
            write = NodeWrite(*found, is_check)
            values = CpusetValues(mems=write.mems)
            result = await in_thread(partial(self._writer.write, write.cgroup, values))
            self._written(write, result)
        self.waiting.landed(container)
