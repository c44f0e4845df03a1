"""Writes checkpoints: after replies, in a thread, at most ten times a second."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

from nri_resmgr.app.checkpoint.write import CHECKPOINT_NAME, Draft, checkpoint
from nri_resmgr.app.observers.observer import DecisionObserver, PolicyDecision
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.log import Logger
from nri_resmgr.policy.events import Event, Synchronized
from nri_resmgr.values import HostError
from nri_resmgr.version import our_version

log = Logger(__name__)

# A write takes a few milliseconds of a CPU with 500 containers: at most some percent
# of one. What a crash loses is rebuilt from the running containers.
_INTERVAL: Final = 0.1  # seconds between the end of a write and the next one

# A full disk is rarely freed sooner.
_RETRY: Final = 10.0  # seconds

# For the last write at the end, within the grace period of systemd and the kubelet.
_PATIENCE: Final = 2.0  # seconds

_DONE: Final = object()


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
        retry: Seconds after a write that failed.
    """

    def __init__(self, state: StateDir, retry: float = _RETRY) -> None:
        self._retry = retry
        self.writes = self.failures = self.last_size = 0
        self.last_seconds = 0.0
        self._state = state
        self._policy: ResourcePolicy | None = None
        self._draft = Draft()
        self._saved: object = None  # the state that was, or is being, written
        self._kind = ""  # of its policy
        self._ended = 0.0
        self._timer: asyncio.Handle | None = None
        self._steps: Iterator[None] = iter(())
        self._thread: threading.Thread | None = None
        self.is_failing = False
        self._has_begun = False

    def begin(self, policy: ResourcePolicy) -> None:
        """Write the state of *policy*, from its first Synchronize on."""
        self._policy = policy

    def decided(self, event: Event, decision: PolicyDecision) -> None:
        """Schedule a write if the state has changed."""
        # Until Synchronize the checkpoint of an earlier process has more containers.
        is_in_sync = isinstance(event, Synchronized) and event.pods is not None
        self._has_begun = self._has_begun or is_in_sync
        if decision.state is not self._saved:
            self._write_in(_INTERVAL)

    def close(self) -> None:
        """Write the last state, and end."""
        # The loop has ended: the outcome of a running write is unknown.
        is_due = bool(self._timer or self._thread or self.is_failing)
        if self._timer is not None:
            self._timer.cancel()
        if self._thread is not None:
            self._thread.join(_PATIENCE)
        if self._policy and self._has_begun and not self._is_writing():
            policy, state = self._policy.policy, self._policy.state
            if is_due or state is not self._saved:
                self._kind = policy.kind
                self._draft.lines_of(policy, state)
                self._write(None)
        if self._thread is not None:
            self._thread.join(_PATIENCE)
        if self._is_writing():
            log.error("state.not-written", why="the disk takes too long")

    def _is_writing(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _write_in(self, seconds: float) -> None:
        """Write *seconds* after the last write, or at once if they have passed."""
        if self._has_begun and self._timer is None and self._thread is None:
            loop = asyncio.get_running_loop()
            delay = max(0.0, self._ended + seconds - loop.time())
            self._timer = loop.call_later(delay, self._begin_write, loop)

    def _begin_write(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._policy is not None:
            # Noted at the beginning: a decision from here on needs another write.
            self._kind, self._saved = self._policy.policy.kind, self._policy.state
            self._steps = self._draft.steps(self._policy.policy, self._saved)
            self._make_lines(loop)

    def _make_lines(self, loop: asyncio.AbstractEventLoop) -> None:
        """Make some lines; requests that arrived meanwhile go first."""
        if next(self._steps, _DONE) is _DONE:
            self._timer = None
            self._write(loop)
        else:
            self._timer = loop.call_soon(self._make_lines, loop)

    def _write(self, loop: asyncio.AbstractEventLoop | None) -> None:
        lines = self._draft.lines
        # A daemon thread: the process ends without it, however long a disk takes.
        self._thread = threading.Thread(
            target=self._write_out,
            args=(lines, self._kind, loop),
            name="checkpoint",
            daemon=True,
        )
        self._thread.start()

    def _write_out(
        self, lines: list[str], kind: str, loop: asyncio.AbstractEventLoop | None
    ) -> None:
        begun, why = time.monotonic(), ""
        when = datetime.now(UTC).isoformat(timespec="milliseconds")
        text = checkpoint(lines, kind, our_version(), when)
        try:
            self._state.write(CHECKPOINT_NAME, text)
        except HostError as error:
            why = str(error)
        outcome = len(text), time.monotonic() - begun, why
        if loop is None:
            self._note(*outcome)
        else:
            with suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(self._written, *outcome)

    def _written(self, size: int, seconds: float, why: str) -> None:
        self._thread = None
        self._ended = asyncio.get_running_loop().time()
        self._note(size, seconds, why)
        if why:
            self._write_in(self._retry)
        elif self._policy and self._policy.state is not self._saved:
            self._write_in(_INTERVAL)

    def _note(self, size: int, seconds: float, why: str) -> None:
        self.writes += 1
        if why:
            self.failures += 1
            if not self.is_failing:  # once per outage
                after = "containers are served; a restart finds them where they run"
                log.error("state.not-written", why=why, meanwhile=after)
        else:
            self.last_size, self.last_seconds = size, seconds
            if self.is_failing:
                log.info("state.written-again", size=size)
        self.is_failing = bool(why)
