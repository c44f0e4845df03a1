"""``run --record``: messages and decisions, written to a file in a thread."""

from __future__ import annotations

import argparse
import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final

from google.protobuf.message import Message

from nri_resmgr.app.observers.observer import DecisionObserver, PolicyDecision, Subject
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.checkpoint.encode import CHECKPOINT_NAME
from nri_resmgr.config import PolicyConfig
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
from nri_resmgr.values import InputError, ResmgrError, parse_bytes
from nri_resmgr.version import our_version

log = Logger(__name__)

# Entries that wait for the disk, about 10 KB each. Beyond this the recording ends,
# because one with a gap could not be replayed.
MOST_WAITING: Final = 5000

_MANY: Final = 200  # entries written at once
_CLOSE_TIMEOUT: Final = 5.0  # seconds to write waiting entries at the end

# Events that may have no request of the runtime.
_UNSOLICITED: Final = (ColdStartEnded, Rebalance, Synchronized)

Write = Callable[[], Entry]


def open_recording(options: argparse.Namespace, machine: Machine) -> Recorder:
    """Begin the recording that the command line names.

    Raises:
        CannotRecord: The file cannot be created, or the limit is not a size.
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
    return Recorder(RecordingFile(options.record, limit), header)


class Recorder(DecisionObserver):
    """Takes entries in the event loop, and writes them in a thread of its own.

    When the file is full or too slow, the recording ends there, with a line in the
    log; the daemon goes on.
    """

    def __init__(self, file: RecordingFile, header: Header) -> None:
        self._file = file
        self._has_env, self._dry_run = header.has_env, header.dry_run
        self._machine = header.machine
        self._policy: ResourcePolicy | None = None
        self._config: PolicyConfig | None = None
        self._calls = 0
        self._open: list[tuple[int, Message]] = []  # requests without an answer
        self._ended = False
        self._waiting: queue.SimpleQueue[Write | None] = queue.SimpleQueue()
        self._write(header_line(header))
        self._thread = threading.Thread(target=self._run, name="recording", daemon=True)
        self._thread.start()

    def begin(self, policy: ResourcePolicy, state: StateDir | None = None) -> None:
        """Record the configuration and the checkpoint with which a policy begins."""
        self._policy = policy
        self._record_changes()
        # The daemon itself logs an unreadable checkpoint.
        with contextlib.suppress(StateUnusable, InputError):
            if state is not None and (text := state.read(CHECKPOINT_NAME)):
                now = time.time_ns()
                kept = text if self._has_env else checkpoint_without_secrets(text)
                self._put(lambda: RecordedCheckpoint(now, kept))

    def tap(self, message: Tapped) -> None:
        """Record a message; see `nri_resmgr.stub.StubOptions.on_message`."""
        is_ours, body = message.sender is Sender.PLUGIN, message.body
        now, method = time.time_ns(), message.method
        if message.request is None:
            self._calls += 1
            number = self._calls
            if isinstance(body, Message):
                self._open.append((number, body))
            self._put(lambda: Called(now, number, method, self._kept(body), is_ours))
        elif answer := self._close(message.request):
            code, why = _error(body)
            self._put(
                lambda: Answered(
                    now, answer, method, self._kept(body), code, why, is_ours
                )
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
            self._put(lambda: Decided(now, name, decision.reasons, hints, updates))

    def refused(self, subject: Subject, error: ResmgrError) -> None:
        """Record a refusal: a dry run has no reply with it."""
        now, title, why = time.time_ns(), subject.title, str(error)
        self._put(lambda: RecordedRefusal(now, title, why))

    def configured(self, _config: PolicyConfig) -> None:
        """Record the configuration or machine, if it has changed."""
        self._record_changes()

    def close(self) -> None:
        """Write waiting entries, and end."""
        self._waiting.put(None)
        self._thread.join(_CLOSE_TIMEOUT)

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

    def _put(self, write: Write) -> None:
        if self._ended:
            return
        if self._waiting.qsize() >= MOST_WAITING:
            self._stop("the disk is too slow")
            return
        self._waiting.put(write)

    def _stop(self, why: str) -> None:
        if not self._ended:
            self._ended = True
            self._open.clear()
            log.error("recording.ended", why=why)

    def _kept(self, body: object) -> Message | None:
        if not isinstance(body, Message):
            return None
        return body if self._has_env else without_secrets(body)

    def _run(self) -> None:
        # From here on only this thread writes to the file.
        for batch in self._batches():
            if not self._ended:
                try:
                    self._write("".join(entry_line(write()) for write in batch))
                except Exception as error:  # noqa: BLE001 - a recording has no gaps, so it ends
                    self._stop(f"{type(error).__name__}: {error}")
        self._file.close()

    def _write(self, text: str) -> None:
        try:
            self._file.write(text)
        except RecordingFull as full:
            self._stop(str(full))

    def _batches(self) -> Iterator[list[Write]]:
        """Yield waiting entries in batches: one write for many entries."""
        while (first := self._waiting.get()) is not None:
            batch = [first]
            while len(batch) < _MANY and not self._waiting.empty():
                if (more := self._waiting.get()) is None:
                    yield batch
                    return
                batch.append(more)
            yield batch


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
