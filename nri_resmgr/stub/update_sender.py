"""Updates of running containers: the queue, and calls of UpdateContainers."""

from __future__ import annotations

import asyncio
import enum
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import Final, Protocol, cast

import attrs

from nri_proto import RUNTIME_METHODS, MessageTooLarge, nri_pb2
from nri_resmgr.log import Logger
from nri_resmgr.stub.convert import from_message, to_message
from nri_resmgr.stub.dry_run import withhold_updates
from nri_resmgr.stub.errors import (
    ConnectionLost,
    SessionError,
    UnsolicitedUpdatesUnsafe,
)
from nri_resmgr.stub.link import Link
from nri_resmgr.stub.model import ContainerEviction
from nri_resmgr.stub.pending_updates import OnTaken, PendingUpdates, Source
from nri_resmgr.stub.record_pace import RecordPace
from nri_resmgr.stub.replies import UpdatesResponse, synchronize_response
from nri_resmgr.stub.runner import Runner
from nri_resmgr.stub.runtime_info import RuntimeInfo
from nri_resmgr.stub.update import ContainerUpdate

log = Logger(__name__)

# The runtime may be busy with requests of other plugins. Go's stub has no limit.
CALL_TIMEOUT: Final = 10.0  # seconds

# The dead-lock (`RuntimeInfo.is_safe_to_call`) gets more likely with the rate of calls,
# and each call holds the runtime's one lock, which delays container starts.
MIN_INTERVAL: Final = 0.05  # seconds

_UPDATE_CONTAINERS: Final = RUNTIME_METHODS["UpdateContainers"]

_IDS_IN_LOG: Final = 5

_AGAIN: Final = 5.0  # seconds after an error of ours


class UnsolicitedUpdates(enum.StrEnum):
    """Permission to send updates by calls instead of replies."""

    AUTO = "auto"  # if the runtime cannot dead-lock on them
    ALWAYS = "always"
    NEVER = "never"


@attrs.define(eq=False, repr=False)
class UpdateCalls:
    """Calls UpdateContainers in one session, never while a request is handled.

    Attributes:
        policy: Whether calls are allowed.
        call_timeout: Seconds to wait for an answer.
        is_dry_run: Whether calls are logged instead of made.
        runtime: Known after Configure.
    """

    link: Link
    runner: Runner
    policy: UnsolicitedUpdates = UnsolicitedUpdates.AUTO
    call_timeout: float = CALL_TIMEOUT
    is_dry_run: bool = attrs.field(default=False, kw_only=True)
    runtime: RuntimeInfo = attrs.field(factory=RuntimeInfo)
    _turn: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)
    _last: float = attrs.field(default=float("-inf"), init=False)

    async def update_containers(
        self,
        updates: Iterable[ContainerUpdate],
        evictions: Iterable[ContainerEviction] = (),
    ) -> tuple[ContainerUpdate, ...]:
        """Call UpdateContainers after earlier calls; see `Stub.update_containers`."""
        if not self.may_call:
            raise UnsolicitedUpdatesUnsafe(self.runtime.level, self.runtime.name)
        checked = synchronize_response(updates).update
        if self.is_dry_run:
            withhold_updates(checked)
            return ()
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

    @property
    def may_call(self) -> bool:
        """True if calls are allowed; otherwise only replies carry updates."""
        match self.policy:
            case UnsolicitedUpdates.ALWAYS:
                return True
            case UnsolicitedUpdates.NEVER:
                return False
            case UnsolicitedUpdates.AUTO:
                return self.runtime.is_safe_to_call

    @property
    def quiet_seconds(self) -> float:
        """Seconds since the last request of the runtime; 0 while one is handled."""
        return self.runner.quiet_seconds


class ContainerUpdater(Protocol):
    """Makes calls of UpdateContainers, as `UpdateCalls` does."""

    @property
    def may_call(self) -> bool:
        """True if calls are allowed; otherwise only replies carry updates."""

    @property
    def quiet_seconds(self) -> float:
        """Seconds since the last request of the runtime; 0 while one is handled."""

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
    `attach` adds them there.

    Records (see `PendingUpdates`) are sent by calls when nothing urgent waits, after a
    time without requests, in batches that are short enough not to delay a request that
    comes meanwhile: `RecordPace` has the sizes and times. Where calls are not allowed,
    replies carry them.

    Args:
        updater: Makes the calls; without one all updates wait.
        again: Seconds after an internal error until waiting updates are sent.

    Attributes:
        pending: The updates that are yet to be sent.
        pace: When calls carry records, and how many.
        on_taken: Called with updates that the runtime was given: those that succeeded
            by a call, and those that a reply carries. The updates of a reply that did
            not wait here are not among them.
        on_refused: Called with the ids of containers whose updates the runtime refused.
            Present runtimes do not report which update of a call failed, so these are
            all of the call's. They wait for a reply unless they are added again.
        sent: Number of updates that succeeded by calls.
        failed: Number of updates that failed.
    """

    def __init__(
        self, updater: ContainerUpdater | None = None, again: float = _AGAIN
    ) -> None:
        self.pending = PendingUpdates()
        self.pace = RecordPace()
        self.on_taken: OnTaken | None = None
        self.on_refused: Callable[[Collection[str]], None] | None = None
        self.sent = self.failed = 0
        self._updater = updater
        self._again = again
        self._sending: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def may_call(self) -> bool:
        """True if calls may carry updates at present; otherwise only replies do."""
        return self._updater is not None and self._updater.may_call

    def connect(self, updater: ContainerUpdater) -> None:
        """Use *updater* for calls; waiting updates are sent at the next `wake`."""
        self._updater = updater

    def disconnect(self) -> None:
        """Stop calling; fixed values are dropped, since they end with their session."""
        # The task in progress is not cancelled: its call fails with the connection, and
        # it then puts the updates with computed values back for the next session.
        self._updater = None
        self._stop_timer()
        self.pending.drop_fixed()

    def send(self, source: Source, containers: Iterable[str]) -> None:
        """Send the updates that *source* computes for containers, before all records.

        A running event loop is needed while connected.
        """
        self.pending.add(source, containers)
        self.wake()

    def record(self, source: Source, containers: Iterable[str]) -> None:
        """Send updates whose values are in force already, when they delay nothing else.

        *source* returns None as soon as the runtime's record has the values, such as
        after a change that was taken back: nothing is sent then. A container with an
        urgent update as well is updated once, at once. A running event loop is needed
        while connected.
        """
        self.pending.add_records(source, containers)
        self.wake()

    def schedule(self, updates: Iterable[ContainerUpdate]) -> None:
        """Send fixed values; see `Stub.schedule_updates`."""
        updates = tuple(updates)
        synchronize_response(updates)  # raises for invalid updates
        self.pending.add_fixed(updates)
        self.wake()

    def attach(self, response: UpdatesResponse, busy: str) -> None:
        """Add waiting updates to a reply; see `PendingUpdates.attach`."""
        carried = self.pending.attach(response, busy, with_records=not self.may_call)
        if carried and self.on_taken is not None:
            self.on_taken(carried)

    def wake(self) -> None:
        """Start to send waiting updates, unless that is in progress."""
        if self._updater is None or self._sending is not None:
            return
        if len(self.pending) or self._record_wait(self._updater) == 0:
            # In a task, so that the reply of the causing request is sent first.
            self._sending = asyncio.create_task(self._send(self._updater))
        else:
            self._start_timer()

    async def _send(self, updater: ContainerUpdater) -> None:
        try:
            while self._updater is updater:
                if updates := self.pending.take():
                    await self._call(updater, updates)
                elif updates := self._take_records(updater):
                    await self._call(updater, updates, are_records=True)
                else:
                    break
        except ConnectionLost as lost:
            self._count_failed(updates, str(lost))
        except Exception as error:
            # Such as without memory: what is put back would wait for another update.
            self.pace.rest(time.monotonic(), self._again)
            asyncio.get_running_loop().call_later(self._again, self.wake)
            with suppress(Exception):  # there may be no memory for a line
                log.error("updates.failed", why="internal error", exc_info=error)
        finally:
            # Has an effect only after an error or in a cancelled task.
            self.pending.put_back(needs_reply=False)
            self._sending = None
            self._start_timer()

    def _take_records(self, updater: ContainerUpdater) -> dict[str, ContainerUpdate]:
        is_due = self._record_wait(updater) == 0
        return self.pending.take_records(self.pace.most) if is_due else {}

    def _record_wait(self, updater: ContainerUpdater) -> float | None:
        """Return the seconds until records may be sent by a call; None for never."""
        if not (self.pending.has_records_to_call and updater.may_call):
            return None
        return self.pace.wait(
            time.monotonic(),
            updater.quiet_seconds,
            self.pending.oldest_record_seconds,
        )

    def _start_timer(self) -> None:
        # One timer that looks again: requests, which postpone it, cost nothing.
        self._stop_timer()
        if self._updater and (wait := self._record_wait(self._updater)) is not None:
            self._timer = asyncio.get_running_loop().call_later(wait, self.wake)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _call(
        self,
        updater: ContainerUpdater,
        updates: Mapping[str, ContainerUpdate],
        *,
        are_records: bool = False,
    ) -> None:
        began, records = time.monotonic(), 0
        try:
            failed = await updater.update_containers(tuple(updates.values()))
            records = len(updates) if are_records else 0
        except UnsolicitedUpdatesUnsafe:
            self.pending.put_back(needs_reply=True)
        except MessageTooLarge as error:
            self.pending.abandon()
            self._refuse(updates, str(error))
        except ConnectionLost:
            raise
        except SessionError as error:
            self.pending.put_back(needs_reply=True)
            self._refuse(updates, str(error))
        else:
            ids = [one.container_id for one in failed]
            self.sent += len(updates) - len(ids)
            self.pending.settle(updates, ids, self.on_taken)
            if ids:
                self._refuse(ids, "refused")
        finally:
            ended = time.monotonic()
            self.pace.called(ended, ended - began, records)
            # The next call would wait for the interval, and count it as its own time.
            self.pace.rest(ended, MIN_INTERVAL)

    def _refuse(self, containers: Collection[str], why: str) -> None:
        self._count_failed(containers, why)
        if self.on_refused is not None:
            self.on_refused(containers)

    def _count_failed(self, containers: Collection[str], why: str) -> None:
        ids = list(containers)
        self.failed += len(ids)
        log.error("updates.failed", why=why, containers=ids[:_IDS_IN_LOG])
