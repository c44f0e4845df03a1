"""Updates of running containers: the queue, and calls of UpdateContainers."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Iterable, Mapping
from typing import Final, Protocol, cast

import attrs

from nri_proto import RUNTIME_METHODS, MessageTooLarge, NriLevel, nri_pb2
from nri_proto.levels import SAFE_UPDATES
from nri_resmgr.log import Logger
from nri_resmgr.stub.convert import from_message, to_message
from nri_resmgr.stub.errors import (
    ConnectionLost,
    SessionError,
    UnsolicitedUpdatesUnsafe,
)
from nri_resmgr.stub.link import Link
from nri_resmgr.stub.model import ContainerEviction
from nri_resmgr.stub.pending_updates import PendingUpdates, Source
from nri_resmgr.stub.replies import synchronize_response
from nri_resmgr.stub.runner import Runner
from nri_resmgr.stub.update import ContainerUpdate

log = Logger(__name__)

# The runtime may be busy with requests of other plugins. Go's stub has no limit.
CALL_TIMEOUT: Final = 10.0  # seconds

# The dead-lock of NRI <= 0.12.0 gets more likely with the rate of calls, and each call
# holds the runtime's one lock, which delays container starts.
MIN_INTERVAL: Final = 0.05  # seconds

_UPDATE_CONTAINERS: Final = RUNTIME_METHODS["UpdateContainers"]

_IDS_IN_LOG: Final = 5


class UnsolicitedUpdates(enum.StrEnum):
    """When updates may be sent by calls instead of replies."""

    AUTO = "auto"  # if the runtime's NRI cannot dead-lock on them
    ALWAYS = "always"
    NEVER = "never"


@attrs.define(eq=False, repr=False)
class UpdateCalls:
    """Calls UpdateContainers in one session, never while a request is handled.

    Attributes:
        link: The connection to call on.
        runner: Runs the handlers of requests.
        policy: Whether calls are allowed.
        call_timeout: Seconds to wait for an answer.
        level: The runtime's NRI level, known after Configure.
    """

    link: Link
    runner: Runner
    policy: UnsolicitedUpdates = UnsolicitedUpdates.AUTO
    call_timeout: float = CALL_TIMEOUT
    level: NriLevel | None = None
    _turn: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)
    _last: float = attrs.field(default=float("-inf"), init=False)

    async def update_containers(
        self,
        updates: Iterable[ContainerUpdate],
        evictions: Iterable[ContainerEviction] = (),
    ) -> tuple[ContainerUpdate, ...]:
        """Call UpdateContainers after earlier calls; see `Stub.update_containers`."""
        if not self._may_call():
            raise UnsolicitedUpdatesUnsafe(self.level)
        checked = synchronize_response(updates).update
        request = nri_pb2.UpdateContainersRequest(
            update=checked, evict=[to_message(eviction) for eviction in evictions]
        )
        loop = asyncio.get_running_loop()
        async with self._turn:
            await asyncio.sleep(max(0.0, self._last + MIN_INTERVAL - loop.time()))
            await self.runner.idle.wait()
            self._last = loop.time()
            reply = await self.link.call(_UPDATE_CONTAINERS, request, self.call_timeout)
        failed = cast("nri_pb2.UpdateContainersResponse", reply).failed
        return tuple(from_message(update) for update in failed)

    def _may_call(self) -> bool:
        match self.policy:
            case UnsolicitedUpdates.ALWAYS:
                return True
            case UnsolicitedUpdates.NEVER:
                return False
            case UnsolicitedUpdates.AUTO:
                return self.level is not None and self.level >= SAFE_UPDATES


class ContainerUpdater(Protocol):
    """Makes calls of UpdateContainers, as `UpdateCalls` does."""

    async def update_containers(
        self, updates: Iterable[ContainerUpdate]
    ) -> tuple[ContainerUpdate, ...]:
        """Update containers; return the updates that failed.

        Raises:
            SessionError: The call failed.
            UnsolicitedUpdatesUnsafe: Only replies may carry updates.
            MessageTooLarge: The updates do not fit into a message.
        """


class UpdateSender:
    """Sends pending updates by calls, one at a time, as soon as that is safe.

    Updates that cannot be sent by a call wait for the next reply that can carry them;
    `PendingUpdates.attach` adds them there.

    Args:
        updater: Makes the calls; without one all updates wait.

    Attributes:
        pending: The updates that are yet to be sent.
        sent: Number of updates that succeeded by calls.
        failed: Number of updates that failed.
    """

    def __init__(self, updater: ContainerUpdater | None = None) -> None:
        self.pending = PendingUpdates()
        self.sent = self.failed = 0
        self._updater = updater
        self._sending: asyncio.Task[None] | None = None

    def connect(self, updater: ContainerUpdater) -> None:
        """Use *updater* for calls; waiting updates are sent at the next `wake`."""
        self._updater = updater

    def disconnect(self) -> None:
        """Stop calling; fixed values are dropped, since they end with their session."""
        # The task in progress is not cancelled: its call fails with the connection, and
        # it then puts the updates with computed values back for the next session.
        self._updater = None
        self.pending.drop_fixed()

    def send(self, source: Source, containers: Iterable[str]) -> None:
        """Send the updates that *source* computes for containers.

        A running event loop is needed while connected.
        """
        self.pending.add(source, containers)
        self.wake()

    def schedule(self, updates: Iterable[ContainerUpdate]) -> None:
        """Send fixed values; see `Stub.schedule_updates`."""
        updates = tuple(updates)
        synchronize_response(updates)  # raises for invalid updates
        self.pending.add_fixed(updates)
        self.wake()

    def wake(self) -> None:
        """Start to send waiting updates, unless that is in progress."""
        if self._updater and len(self.pending) and self._sending is None:
            # In a task, so that the reply of the causing request is sent first.
            self._sending = asyncio.create_task(self._send(self._updater))

    async def _send(self, updater: ContainerUpdater) -> None:
        try:
            while self._updater is updater and (updates := self.pending.take()):
                await self._call(updater, updates)
        except ConnectionLost as lost:
            self._count_failed(updates, str(lost))
        finally:
            # Has an effect only after a lost connection or in a cancelled task.
            self.pending.put_back(needs_reply=False)
            self._sending = None

    async def _call(
        self, updater: ContainerUpdater, updates: Mapping[str, ContainerUpdate]
    ) -> None:
        try:
            failed = await updater.update_containers(tuple(updates.values()))
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
