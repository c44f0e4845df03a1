"""Writes checkpoints: after replies, in a thread, at most ten times a second."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import UTC, datetime
from functools import partial
from typing import Final

from nri_resmgr.app.background.threads import found_by, in_thread, start_last_thread
from nri_resmgr.app.observers.observer import DecisionObserver, PolicyDecision
from nri_resmgr.app.plugin.node_policy import NodePolicy
from nri_resmgr.checkpoint.encode import CHECKPOINT_NAME, Draft, checkpoint
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.log import Logger
from nri_resmgr.policy.events import Event, Synchronized
from nri_resmgr.values import HostError, ResmgrError
from nri_resmgr.version import our_version

log = Logger(__name__)

# A write takes a few milliseconds of a CPU with 500 containers: at most some percent
# of one. What a crash loses is rebuilt from the running containers.
_INTERVAL: Final = 0.1  # seconds between the end of a write and the next one

# The tick of the hotplug poll, with which this one wakes up.
_CHECK: Final = 10.0  # seconds

# For the last write at the end, within the grace period of systemd and the kubelet.
_PATIENCE: Final = 2.0  # seconds


class StateNotWritten(HostError):
    """The state is not on the disk, where it has to be before something else."""

    def __str__(self) -> str:
        return "the state cannot be written; the log says why (state.not-written)"


class CheckpointWriter(DecisionObserver):
    """Writes the state of a policy to a directory.

    A write begins as soon as the event loop is idle. The loop makes lines for changed
    records, a few at a time; a thread does the rest, in calls that release the GIL.

    Attributes:
        writes: The number of writes.
        failures: The number of failed writes.
        last_size: Bytes of the last successful write.
        last_seconds: Its duration.
        is_failing: Whether the last write failed.

    Args:
        state: The directory, locked by this process.
        check: Seconds between two looks at whether the directory was replaced.
    """

    def __init__(self, state: StateDir, check: float = _CHECK) -> None:
        self.writes = self.failures = self.last_size = 0
        self.last_seconds = 0.0
        self.is_failing = False
        self._check = check
        self._state = state
        self._policy: NodePolicy | None = None
        self._draft = Draft()
        self._saved: object = None  # the state that was, or is being, written
        self._written: object = None  # the state on the disk; set in the thread
        self._has_begun = self._is_closed = False
        self._wake = asyncio.Event()
        self._waiting: list[asyncio.Future[None]] = []
        # A thread cannot be cancelled: `close` waits for a write that has begun.
        self._busy = threading.Lock()

    def begin(self, policy: NodePolicy) -> None:
        """Write the state of *policy*, from its first Synchronize on."""
        self._policy = policy

    def decided(self, event: Event, decision: PolicyDecision) -> None:
        """Schedule a write if the state has changed."""
        # Until Synchronize the checkpoint of an earlier process has more containers.
        is_in_sync = isinstance(event, Synchronized) and event.pods is not None
        self._has_begun = self._has_begun or is_in_sync
        if self._has_begun and decision.state is not self._saved:
            self._wake.set()

    async def written(self, within: float) -> None:
        """Wait until the present state is on the disk.

        Args:
            within: Seconds.

        Raises:
            StateNotWritten: It is not.
        """
        policy = self._policy
        if policy is not None and policy.state is self._written:
            return
        # Of a write that begins from here on.
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(done)
        self._wake.set()
        try:
            async with asyncio.timeout(within):
                await done
        except TimeoutError:
            raise StateNotWritten from None

    async def run(self) -> None:
        """Write the state when it has changed; call it again after an exception.

        Raises:
            Exception: A write failed.
        """
        async with asyncio.TaskGroup() as group:
            group.create_task(self._write_changes())
            group.create_task(self._watch_folder())

    def close(self) -> None:
        """Write the last state, and end."""
        if not self._policy or not self._has_begun:
            return
        # A write that has begun may still fail, or hang.
        if not self._busy.acquire(timeout=_PATIENCE):
            log.error("state.not-written", why="the disk takes too long")
            return
        self._is_closed = True
        self._busy.release()
        if self._policy.state is self._written:
            return
        thread = start_last_thread(partial(self._write_last, self._policy))
        if thread is not None:
            thread.join(_PATIENCE)
            if thread.is_alive():
                log.error("state.not-written", why="the disk takes too long")

    async def _write_changes(self) -> None:
        policy = self._policy
        if policy and self._has_begun and policy.state is not self._written:
            self._wake.set()
        while True:
            await self._wake.wait()
            self._wake.clear()
            if self._policy is not None:
                await self._write_state(self._policy)
            await asyncio.sleep(_INTERVAL)

    async def _watch_folder(self) -> None:
        while await found_by(lambda: self._state.was_replaced() or None, self._check):
            if self._has_begun:
                self._saved = None
                self._wake.set()
            await asyncio.sleep(self._check)

    async def _write_state(self, policy: NodePolicy) -> None:
        # Noted at the beginning: a decision from here on needs another write.
        kind, self._saved = policy.policy.kind, policy.state
        waiting, self._waiting = self._waiting, []
        try:
            for _ in self._draft.steps(policy.policy, self._saved):
                await asyncio.sleep(0)  # requests that arrived meanwhile go first
            await in_thread(partial(self._write, self._draft.lines, kind, self._saved))
        except BaseException as error:
            # The draft may be half made.
            self._draft, self._saved = Draft(), None
            if isinstance(error, Exception):
                self._note(is_failing=True)
            _settle(waiting, StateNotWritten())
            raise
        self._note(is_failing=False)
        _settle(waiting)

    def _note(self, *, is_failing: bool) -> None:
        self.writes += 1
        self.failures += is_failing
        self.is_failing = is_failing

    def _write(self, lines: list[str], kind: str, state: object) -> None:
        with self._busy:
            if not self._is_closed:  # otherwise `close` writes a later state
                self._write_out(lines, kind)
                self._written = state

    def _write_last(self, policy: NodePolicy) -> None:
        try:
            lines = Draft().lines_of(policy.policy, policy.state)
            self._write_out(lines, policy.policy.kind)
        except Exception as error:
            # The rest of the end must follow.
            log.error(
                "state.not-written",
                why=str(error) or type(error).__name__,
                exc_info=None if isinstance(error, ResmgrError) else error,
            )
            self._note(is_failing=True)
        else:
            self._note(is_failing=False)

    def _write_out(self, lines: list[str], kind: str) -> None:
        begun = time.monotonic()
        when = datetime.now(UTC).isoformat(timespec="milliseconds")
        text = checkpoint(lines, kind, our_version(), when)
        self._state.write(CHECKPOINT_NAME, text)
        self.last_size, self.last_seconds = len(text), time.monotonic() - begun


def _settle(
    waiting: list[asyncio.Future[None]], error: StateNotWritten | None = None
) -> None:
    for one in waiting:
        if one.done():  # it has waited long enough
            continue
        if error is None:
            one.set_result(None)
        else:
            one.set_exception(error)
