"""``run --record``: messages and decisions, written to a file off the request path."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from google.protobuf.message import Message

from nri_resmgr.app.background.threads import in_thread, start_last_thread
from nri_resmgr.app.configuration.status import Setting
from nri_resmgr.app.observers.observer import DecisionObserver, PolicyDecision, Subject
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.checkpoint.encode import CHECKPOINT_NAME
from nri_resmgr.config import PolicyConfig
from nri_resmgr.host.bounded import reason
from nri_resmgr.host.state_dir import StateDir, StateUnusable
from nri_resmgr.log import Logger
from nri_resmgr.policy.events import (
    ColdStartEnded,
    ContainerSpec,
    Created,
    Event,
    Rebalance,
    Synchronized,
    Updated,
)
from nri_resmgr.recordings.entries import (
    Answered,
    Called,
    Configured,
    Decided,
    Entry,
    Header,
    MachineChanged,
    Rebalancing,
    RecordedCheckpoint,
    RecordedRefusal,
)
from nri_resmgr.recordings.file import CannotRecord, RecordingFile, RecordingFull
from nri_resmgr.recordings.secrets import checkpoint_without_secrets, without_secrets
from nri_resmgr.recordings.text import entry_line, header_line
from nri_resmgr.stub.errors import CallFailed, SessionError
from nri_resmgr.stub.observer import Sender, Tapped
from nri_resmgr.topology import Machine
from nri_resmgr.values import (
    Bytes,
    InputError,
    ResmgrError,
    format_bytes,
    parse_bytes,
)
from nri_resmgr.version import our_version

log = Logger(__name__)

MOST_WAITING: Final = Bytes(32 << 20)
"""Bytes of messages that wait for the disk; with more, the recording ends.

One with a gap could not be replayed. A message has 4 MiB at most; a Synchronize of
5,000 containers comes in several, 30 MB together.
"""

_AT_ONCE: Final = 256 << 10  # bytes of messages whose lines are written together
_SMALL: Final = 1 << 10  # bytes, about, of an entry without a message, or of a reason
_PAUSE: Final = 0.02  # seconds: the request is answered before its entry is written
_CLOSE_TIMEOUT: Final = 5.0  # seconds to write waiting entries at the end

# Events that may have no request of the runtime.
_UNSOLICITED: Final = (ColdStartEnded, Rebalance, Synchronized)

Write = Callable[[], Entry]


def open_recording(options: argparse.Namespace, machine: Machine) -> Recorder:
    """Begin the recording that the command line names.

    Raises:
        CannotRecord: The file cannot be created, or the limit is not a size, or too
            small for the machine.
    """
    try:
        limit = parse_bytes(options.record_limit)
    except InputError as error:
        raise CannotRecord(options.record, f"--record-limit: {error}") from None
    header = Header(
        version=our_version(),
        time=time.time_ns(),
        machine=machine,
        dry_run=options.dry_run,
        unsolicited_updates=options.unsolicited_updates,
        has_env=options.record_env,
    )
    try:
        return Recorder(RecordingFile(options.record, limit), header)
    except OSError as error:
        raise CannotRecord(options.record, reason(error)) from None
    except RecordingFull as full:
        raise CannotRecord(options.record, str(full)) from None


class _Waiting:
    """A message that waits, as its bytes: many small texts take ten times as much."""

    def __init__(self, message: Message) -> None:
        self._kind, self._data = type(message), message.SerializeToString()
        self.size = len(self._data)

    def message(self) -> Message:
        """Return the message."""
        return self._kind.FromString(self._data)


class Recorder(DecisionObserver):
    """Takes entries in the event loop; `run` writes them, call by call in a thread.

    Where the file cannot be written they wait. When it is full, or too many wait, the
    recording ends there, with a line in the log and in `setting`; the daemon goes on.

    Raises:
        OSError: The header cannot be written.
        RecordingFull: It exceeds the limit.
    """

    def __init__(self, file: RecordingFile, header: Header) -> None:
        self._file = file
        self._has_env, self._dry_run = header.has_env, header.dry_run
        self._machine = header.machine
        self._policy: ResourcePolicy | None = None
        self._config: PolicyConfig | None = None
        self._calls = 0
        self._open: list[tuple[int, Message]] = []  # requests without an answer
        self._why_ended = ""
        # Used by two: entries come in the event loop, and go in a thread.
        self._waiting: deque[tuple[int, Write]] = deque()
        self._taken = self._written = 0  # bytes; what waits is the difference
        self._has_more = asyncio.Event()
        # A thread cannot be cancelled: the next one waits until it has written.
        self._busy = threading.Lock()
        file.write(header_line(header))

    @property
    def setting(self) -> Setting:
        """The file, and why the recording has ended if it has."""
        ended = f", ended: {self._why_ended}" if self._why_ended else ""
        return Setting("recording", f"{self._file.path}{ended}", "--record")

    def begin(self, policy: ResourcePolicy, state: StateDir | None = None) -> None:
        """Record the configuration and the checkpoint with which a policy begins."""
        self._policy = policy
        self._record_changes()
        # The daemon itself logs an unreadable checkpoint.
        with contextlib.suppress(StateUnusable, InputError):
            if state is not None and (text := state.read(CHECKPOINT_NAME)):
                now = time.time_ns()
                kept = text if self._has_env else checkpoint_without_secrets(text)
                self._put(lambda: RecordedCheckpoint(now, kept), len(kept))

    def tap(self, message: Tapped) -> None:
        """Record a message; see `nri_resmgr.stub.StubOptions.on_message`."""
        is_ours, body = message.sender is Sender.PLUGIN, message.body
        now, method = time.time_ns(), message.method
        waiting = _Waiting(body) if isinstance(body, Message) else None
        size = _SMALL + (waiting.size if waiting else 0)
        if message.request is None:
            self._calls += 1
            number = self._calls
            if isinstance(body, Message):
                self._open.append((number, body))
            self._put(
                lambda: Called(now, number, method, self._kept(waiting), is_ours), size
            )
        elif answer := self._close(message.request):
            code, why = _error(body)
            self._put(
                lambda: Answered(
                    now, answer, method, self._kept(waiting), code, why, is_ours
                ),
                size,
            )

    def _close(self, request: Message) -> int:
        """Return the number of an answered request; 0 if it is unknown."""
        for place, (number, one) in enumerate(self._open):
            if one is request:  # not `==`: equal requests may be open at once
                del self._open[place]
                return number
        return 0

    def decided(self, event: Event, decision: PolicyDecision) -> None:
        """Record a decision, and the topology hints of new containers."""
        # Observers get the decision of a new configuration before `configured`.
        self._record_changes()
        now, name = time.time_ns(), type(event).__name__
        hints = tuple((one.id, one.hints) for one in _specs(event) if one.hints)
        # The replies to requests have their updates, except in a dry run.
        is_needed = isinstance(event, _UNSOLICITED) or self._dry_run
        updates = decision.updates if is_needed else ()
        if isinstance(event, Rebalance):
            # No message of the runtime has it.
            self._put(lambda: Rebalancing(now, event))
        if decision.reasons or hints or updates:
            parts = 1 + len(decision.reasons) + len(hints) + len(updates)
            self._put(
                lambda: Decided(now, name, decision.reasons, hints, updates),
                parts * _SMALL,
            )

    def refused(self, subject: Subject, error: ResmgrError) -> None:
        """Record a refusal: a dry run has no reply with it."""
        now, title, why = time.time_ns(), subject.title, str(error)
        self._put(lambda: RecordedRefusal(now, title, why))

    def configured(self, _config: PolicyConfig) -> None:
        """Record the configuration or machine, if it has changed."""
        self._record_changes()

    async def run(self) -> None:
        """Write entries until cancelled, or at the end; call it again after an error.

        Raises:
            OSError: The file cannot be written; the entries wait.
        """
        while not self._why_ended:
            self._has_more.clear()
            if not self._waiting:
                await self._has_more.wait()
                await asyncio.sleep(_PAUSE)
                continue
            try:
                await in_thread(self._write_some)
            except RecordingFull as full:
                self._end(str(full))

    def close(self) -> None:
        """Write waiting entries, and end."""
        thread = start_last_thread(self._write_rest)
        if thread is not None:
            thread.join(_CLOSE_TIMEOUT)
        if self._waiting:
            self._end("the last entries could not be written")

    def _record_changes(self) -> None:
        if (policy := self._policy) is None:  # before `begin` nothing is in force
            return
        now, machine, config = time.time_ns(), policy.machine, policy.config
        if machine is not self._machine:
            self._machine = machine
            self._put(lambda: MachineChanged(now, machine))
        if config is not self._config:
            self._config = config
            text = policy.configuration.document.text
            self._put(lambda: Configured(now, text))

    def _put(self, write: Write, size: int = _SMALL) -> None:
        if self._why_ended:
            return
        if self._taken - self._written + size > MOST_WAITING:
            self._end(f"more than {format_bytes(MOST_WAITING)} wait for the disk")
            return
        self._taken += size
        self._waiting.append((size, write))
        self._has_more.set()

    def _end(self, why: str) -> None:
        self._why_ended = why
        self._waiting = deque()  # a thread may use the old one
        self._open.clear()
        self._has_more.set()
        log.error("recording.ended", why=why)

    def _kept(self, waiting: _Waiting | None) -> Message | None:
        if waiting is None:
            return None
        body = waiting.message()
        return body if self._has_env else without_secrets(body)

    def _write_some(self) -> None:
        """Write the oldest entries, in a thread; they wait until that has succeeded."""
        with self._busy:
            waiting, lines, size = self._waiting, list[str](), 0
            while len(lines) < len(waiting) and size < _AT_ONCE:
                each, write = waiting[len(lines)]
                lines.append(entry_line(write()))
                size += each
            self._file.write("".join(lines))
            for _ in lines:
                waiting.popleft()
            self._written += size

    def _write_rest(self) -> None:
        """Write all entries, in the last thread."""
        try:
            while self._waiting:
                self._write_some()
        except (OSError, RecordingFull) as error:
            self._end(str(error))
        self._file.close()


def _error(body: object) -> tuple[int, str]:
    if isinstance(body, CallFailed):
        return body.code, body.message
    return (-1, str(body)) if isinstance(body, SessionError) else (0, "")


def _specs(event: Event) -> tuple[ContainerSpec, ...]:
    match event:
        case Created(spec) | Updated(spec):
            return (spec,)
        case Synchronized(specs):
            return specs
    return ()
