"""The queue of updates for running containers, and what sends them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from nri_proto import MessageTooLarge
from nri_resmgr.log import Logger
from nri_resmgr.stub.errors import (
    ConnectionLost,
    SessionError,
    UnsolicitedUpdatesUnsafe,
)
from nri_resmgr.stub.pending_updates import PendingUpdates, Source
from nri_resmgr.stub.replies import synchronize_response
from nri_resmgr.stub.update import ContainerUpdate

log = Logger(__name__)

_IDS_IN_LOG: Final = 5


class Runtime(Protocol):
    """Takes updates by calls; `UpdateCalls` does."""

    async def update_containers(
        self, updates: Iterable[ContainerUpdate]
    ) -> tuple[ContainerUpdate, ...]:
        """Update containers now; return those that could not be.

        Raises:
            SessionError: They were not taken.
            UnsolicitedUpdatesUnsafe: They must be carried by replies.
            MessageTooLarge: They fit into no message.
        """


class UpdateSender:
    """Sends pending updates by calls, one at a time, as soon as that is safe.

    What no call could take waits for the next reply that can carry updates: whatever
    answers requests has `PendingUpdates.attach` add it.

    Args:
        runtime: Where calls go; without one all updates wait.

    Attributes:
        pending: What is yet to be sent.
        sent: How many updates the runtime took by calls.
        failed: How many it did not take.
    """

    def __init__(self, runtime: Runtime | None = None) -> None:
        self.pending = PendingUpdates()
        self.sent = self.failed = 0
        self._runtime = runtime
        self._sending: asyncio.Task[None] | None = None

    def connect(self, runtime: Runtime) -> None:
        """Have calls go there; what waits is sent at the next `wake`."""
        self._runtime = runtime

    def disconnect(self) -> None:
        """Stop calling; fixed values are dropped, as they end with their session."""
        self._runtime = None
        self.pending.drop_fixed()

    def send(self, source: Source, containers: Iterable[str]) -> None:
        """Send what *source* gives for containers; needs a running loop to call."""
        self.pending.add(source, containers)
        self.wake()

    def schedule(self, updates: Iterable[ContainerUpdate]) -> None:
        """Send fixed values; see `Stub.schedule_updates`."""
        updates = tuple(updates)
        synchronize_response(updates)  # which raises what is wrong with them
        self.pending.add_fixed(updates)
        self.wake()

    def wake(self) -> None:
        """Begin to send what waits, unless that is under way."""
        if self._runtime and len(self.pending) and self._sending is None:
            # A task of its own: the reply of the request that caused this goes first.
            self._sending = asyncio.create_task(self._send(self._runtime))

    async def _send(self, runtime: Runtime) -> None:
        try:
            while self._runtime is runtime and (updates := self.pending.take()):
                await self._call(runtime, updates)
        except ConnectionLost as lost:
            self._count_failed(updates, str(lost))
        finally:
            # Empty but for a lost connection or a cancelled task.
            self.pending.put_back(needs_reply=False)
            self._sending = None

    async def _call(
        self, runtime: Runtime, updates: Mapping[str, ContainerUpdate]
    ) -> None:
        try:
            failed = await runtime.update_containers(tuple(updates.values()))
        except UnsolicitedUpdatesUnsafe:
            self.pending.put_back(needs_reply=True)
        except MessageTooLarge as error:
            self.pending.abandon()
            self._count_failed(updates, str(error))
        except ConnectionLost:
            raise
        except SessionError as error:
            self.pending.put_back(needs_reply=True)
            self._count_failed(updates, str(error))
        else:
            ids = [one.container_id for one in failed]
            self.sent += len(updates) - len(ids)
            self.pending.settle(updates, ids)
            if ids:
                self._count_failed(ids, "refused")

    def _count_failed(self, containers: Iterable[str], why: str) -> None:
        ids = list(containers)
        self.failed += len(ids)
        log.error("updates.failed", why=why, containers=ids[:_IDS_IN_LOG])
