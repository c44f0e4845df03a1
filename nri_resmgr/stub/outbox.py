"""Updates that no request asked for: sent on their own, or with the next reply."""

from __future__ import annotations

import asyncio
import enum
import operator
from collections.abc import Iterable
from typing import Any, Final, cast

import attrs
from google.protobuf.message import Message

from nri_proto import RUNTIME_METHODS, Level, MessageTooLarge, nri_pb2
from nri_proto.levels import SAFE_UPDATES
from nri_resmgr.log import Logger
from nri_resmgr.stub.convert import from_message, to_message
from nri_resmgr.stub.errors import (
    CalledFromHandler,
    CallFailed,
    CallTimedOut,
    ConnectionLost,
    UnsolicitedUpdatesUnsafe,
)
from nri_resmgr.stub.link import Link
from nri_resmgr.stub.model import ContainerEviction
from nri_resmgr.stub.replies import synchronize_response
from nri_resmgr.stub.request import current_request
from nri_resmgr.stub.runner import Runner
from nri_resmgr.stub.snapshot import UPDATES_BUDGET, entry_size
from nri_resmgr.stub.update import ContainerUpdate

log = Logger(__name__)

# Go's stub waits for ever. The runtime may be busy with other plugins' requests.
CALL_TIMEOUT: Final = 10.0  # seconds

# The dead-lock of NRI <= 0.12.0 grows with the rate of calls, and every call
# takes the runtime's one lock from the node's container starts.
MIN_INTERVAL: Final = 0.05  # seconds

_IDS_IN_LOG: Final = 5

# What tells the entries of a list apart; lists without a key are replaced.
_KEYS: Final = {"hugepage_limits": "page_size"}

_UPDATE_CONTAINERS: Final = RUNTIME_METHODS["UpdateContainers"]


class UnsolicitedUpdates(enum.StrEnum):
    """When updates may go to the runtime without a request of its own."""

    AUTO = "auto"  # where its NRI cannot dead-lock on them
    ALWAYS = "always"
    NEVER = "never"


@attrs.define(eq=False, repr=False)
class Outbox:
    """Sends updates one call at a time, never while a request is handled.

    What may not be sent on its own waits here for the next reply that can carry
    it, merged to one update per container.
    """

    link: Link
    runner: Runner
    policy: UnsolicitedUpdates = UnsolicitedUpdates.AUTO
    call_timeout: float = CALL_TIMEOUT
    level: Level | None = None
    _waiting: dict[str, nri_pb2.ContainerUpdate] = attrs.field(factory=dict, init=False)
    _turn: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)
    _last: float = attrs.field(default=float("-inf"), init=False)
    _flush: asyncio.Task[None] | None = attrs.field(default=None, init=False)

    async def send(
        self,
        updates: Iterable[ContainerUpdate],
        evictions: Iterable[ContainerEviction] = (),
    ) -> tuple[ContainerUpdate, ...]:
        """Call UpdateContainers; see `Stub.update_containers`."""
        if current_request() is not None:
            raise CalledFromHandler
        if not self._may_call():
            raise UnsolicitedUpdatesUnsafe(self.level)
        checked = synchronize_response(updates).update
        request = nri_pb2.UpdateContainersRequest(
            update=checked, evict=[to_message(eviction) for eviction in evictions]
        )
        return await self._call(request)

    def schedule(self, updates: Iterable[ContainerUpdate]) -> None:
        """Send as soon as it is safe; see `Stub.schedule_updates`."""
        self.put(synchronize_response(updates).update)

    def put(self, updates: Iterable[nri_pb2.ContainerUpdate]) -> None:
        """Add messages to what waits; a later value of a field wins."""
        for update in updates:
            if (waiting := self._waiting.get(update.container_id)) is None:
                waiting = self._waiting[update.container_id] = nri_pb2.ContainerUpdate()
            merge_update(waiting, update)
        if self._waiting and self._may_call() and self._flush is None:
            self._flush = asyncio.create_task(self._flush_waiting())

    def attach(self, response: Any, busy: str) -> None:
        """Add what waits to a reply that can carry updates.

        Args:
            response: Has a repeated field ``update``.
            busy: The container the request is about; its updates wait on.
        """
        if not self._waiting:
            return
        for update in response.update:
            if (stale := self._waiting.pop(update.container_id, None)) is not None:
                merge_update(stale, update)
                update.CopyFrom(stale)
        room = UPDATES_BUDGET - response.ByteSize()
        for container_id, waiting in list(self._waiting.items()):
            if container_id != busy and (room := room - entry_size(waiting)) >= 0:
                response.update.append(self._waiting.pop(container_id))

    def forget(self, container_id: str) -> None:
        """Drop what waits for a container that is gone: it could only fail."""
        self._waiting.pop(container_id, None)

    def close(self) -> None:
        """Forget what waits: the next session starts from a new snapshot."""
        self._waiting.clear()
        if self._flush is not None:
            self._flush.cancel()

    def _may_call(self) -> bool:
        match self.policy:
            case UnsolicitedUpdates.ALWAYS:
                return True
            case UnsolicitedUpdates.NEVER:
                return False
            case UnsolicitedUpdates.AUTO:
                return self.level is not None and self.level >= SAFE_UPDATES

    async def _call(
        self, request: nri_pb2.UpdateContainersRequest
    ) -> tuple[ContainerUpdate, ...]:
        loop = asyncio.get_running_loop()
        async with self._turn:
            await asyncio.sleep(max(0.0, self._last + MIN_INTERVAL - loop.time()))
            await self.runner.idle.wait()
            self._last = loop.time()
            reply = await self.link.call(_UPDATE_CONTAINERS, request, self.call_timeout)
        failed = cast("nri_pb2.UpdateContainersResponse", reply).failed
        return tuple(from_message(update) for update in failed)

    async def _flush_waiting(self) -> None:
        # A task of its own: the reply of the request that scheduled this goes first.
        try:
            while self._waiting:
                await self._call_or_log(self._next_batch())
        except ConnectionLost as lost:
            log.error("updates.lost", why=str(lost))
        finally:
            self._flush = None

    async def _call_or_log(self, request: nri_pb2.UpdateContainersRequest) -> None:
        try:
            await self._call(request)
        except (CallFailed, CallTimedOut, MessageTooLarge) as error:
            ids = [update.container_id for update in request.update[:_IDS_IN_LOG]]
            log.error("updates.failed", why=str(error), containers=ids)

    def _next_batch(self) -> nri_pb2.UpdateContainersRequest:
        # One at least: what is too large for any message must not wait for ever.
        request = nri_pb2.UpdateContainersRequest()
        room = UPDATES_BUDGET
        for container_id, waiting in list(self._waiting.items()):
            room -= entry_size(waiting)
            if room < 0 and request.update:
                break
            request.update.append(self._waiting.pop(container_id))
        return request


def merge_update(
    target: nri_pb2.ContainerUpdate, change: nri_pb2.ContainerUpdate
) -> None:
    """Lay *change* over *target*, which is empty or of the same container.

    As in a runtime's merge, the whole may only fail in silence if both parts may.
    """
    may_fail = not target.container_id or target.ignore_failure
    overlay(target, change)
    target.ignore_failure = may_fail and change.ignore_failure


def overlay(target: Message, change: Message) -> None:
    """Lay the fields that *change* has over *target*.

    Unlike protobuf's merge it replaces wrappers, so that a zero counts. Of a list
    it keeps the entries whose key the change does not have: no key stands twice.
    """
    for field, value in change.ListFields():
        if field.is_repeated:
            _overlay_entries(field, getattr(target, field.name), value)
        elif field.message_type is None:
            setattr(target, field.name, value)
        elif field.message_type.name.startswith("Optional"):
            getattr(target, field.name).CopyFrom(value)
        else:
            overlay(getattr(target, field.name), value)


def _overlay_entries(field: Any, target: Any, change: Any) -> None:
    if _is_map(field):
        target.update(change)
        return
    if field.name in _KEYS:
        key = operator.attrgetter(_KEYS[field.name])
        new = {key(entry) for entry in change}
        kept = [entry for entry in target if key(entry) not in new]
        change = [*kept, *change]
    del target[:]
    target.extend(change)


def _is_map(field: Any) -> bool:
    message = field.message_type
    return message is not None and message.GetOptions().map_entry
