"""Takes updates to the runtime that no request asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from nri_resmgr.app.translate import updates_of
from nri_resmgr.log import Logger
from nri_resmgr.policy.decision import PinUpdate
from nri_resmgr.policy.events import Pin
from nri_resmgr.stub.errors import SessionError, UnsolicitedUpdatesUnsafe
from nri_resmgr.stub.update import ContainerUpdate

log = Logger(__name__)

_IDS_IN_LOG: Final = 5


class Runtime(Protocol):
    """What takes updates; a `Stub` is one."""

    async def update_containers(
        self, updates: Iterable[ContainerUpdate]
    ) -> tuple[ContainerUpdate, ...]:
        """Update containers now; return those that could not be.

        Raises:
            SessionError: They were not taken.
            UnsolicitedUpdatesUnsafe: They must ride on replies.
        """


class Courier:
    """Sends what should hold, not what was decided when it was sent for.

    Replies may overtake a call, so it sends again what has changed meanwhile. What
    the runtime does not take is overdue and rides on the next reply.

    Args:
        wanted: Finds the pinning that should be in force by a container's id; None
            if the container is gone.

    Attributes:
        sent: How many updates the runtime took.
        failed: How many it did not take.
    """

    def __init__(self, wanted: Callable[[str], Pin | None]) -> None:
        self._wanted = wanted
        self.sent = self.failed = 0
        self._runtime: Runtime | None = None
        self._due: dict[str, None] = {}  # a set in order
        self._overdue: dict[str, None] = {}
        self._flying: dict[str, Pin] = {}
        self._sending: asyncio.Task[None] | None = None

    def connect(self, runtime: Runtime) -> None:
        """Tell to whom updates go; without a runtime all of them are overdue."""
        self._runtime = runtime

    def send(self, containers: Iterable[str]) -> None:
        """Have containers updated as soon as possible; needs a running loop."""
        if self._runtime is None:
            self._overdue |= dict.fromkeys(containers)
            return
        self._due |= dict.fromkeys(containers)
        if self._due and self._sending is None:
            self._sending = asyncio.create_task(self._send(self._runtime))

    def waiting(self) -> frozenset[str]:
        """Say for whom an update is on its way, or yet to be sent."""
        return frozenset((*self._due, *self._flying, *self._overdue))

    def with_overdue(self, updates: Sequence[PinUpdate]) -> Sequence[PinUpdate]:
        """Add to the updates of a reply what no call could take."""
        if not self._overdue:
            return updates
        waiting, self._overdue = self._overdue, {}
        whole = {key: pin for key in waiting if (pin := self._wanted(key))}
        others = [one for one in updates if one.container not in whole]
        return (*others, *(PinUpdate(key, pin) for key, pin in whole.items()))

    def drop(self) -> None:
        """Forget what waits: all containers are about to be told anew."""
        self._due.clear()
        self._overdue.clear()

    async def _send(self, runtime: Runtime) -> None:
        try:
            while self._due:
                ids, self._due = self._due, {}
                sent = {key: pin for key in ids if (pin := self._wanted(key))}
                self._flying = sent
                if sent and await self._call(runtime, sent):
                    changed = (
                        key for key, pin in sent.items() if self._moved(key, pin)
                    )
                    self._due |= dict.fromkeys(changed)
        finally:
            self._sending, self._flying = None, {}

    async def _call(self, runtime: Runtime, pins: dict[str, Pin]) -> bool:
        updates = updates_of([PinUpdate(key, pin) for key, pin in pins.items()])
        try:
            failed = await runtime.update_containers(updates)
        except UnsolicitedUpdatesUnsafe:
            self._overdue |= dict.fromkeys(pins)
            return False
        except SessionError as error:
            self._overdue |= dict.fromkeys(pins)
            self.failed += len(pins)
            ids = list(pins)[:_IDS_IN_LOG]
            log.error("updates.failed", why=str(error), containers=ids)
            return False
        ids = [one.container_id for one in failed]
        self.sent += len(pins) - len(ids)
        self.failed += len(ids)
        if ids:
            self._overdue |= dict.fromkeys(ids)
            log.error("updates.failed", why="refused", containers=ids[:_IDS_IN_LOG])
        return True

    def _moved(self, container: str, pin: Pin) -> bool:
        now = self._wanted(container)
        return now is not None and now != pin
