"""``run --record``: all that is said and decided, into a file, off the request path."""

from __future__ import annotations

import argparse
import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from google.protobuf.message import Message

from nri_resmgr.app.checkpoint.write import CHECKPOINT_NAME
from nri_resmgr.app.observers.observer import DecisionObserver
from nri_resmgr.config import PolicyConfig
from nri_resmgr.host.state_dir import StateDir, StateUnusable
from nri_resmgr.log import Logger
from nri_resmgr.policy.decision import Decision
from nri_resmgr.policy.events import (
    ColdStartEnded,
    Created,
    Event,
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
    Refused,
    Remembered,
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

# Of entries that wait for the disk. Some 10 KB each: more would be felt, and a
# recording with a gap could not be replayed.
MOST_WAITING: Final = 5000

_MANY: Final = 200  # entries written at once
_FAREWELL: Final = 5.0  # seconds to write what waits when the daemon ends

# What can come without a request.
_UNASKED: Final = (ColdStartEnded, Synchronized)

Write = Callable[[], Entry]


def open_recording(options: argparse.Namespace, machine: Machine) -> Recorder:
    """Begin a recording as the command line wants it.

    Raises:
        CannotRecord: The file cannot be made, or the limit is no size.
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
    """Takes what happens in the event loop, and writes it in a thread of its own.

    When the file can take no more, or is too slow, the recording ends there, with a
    line in the log, and the node is served on.

    Args:
        file: Where it goes.
        header: How it begins.
    """

    def __init__(self, file: RecordingFile, header: Header) -> None:
        self._file = file
        self._has_env, self._dry_run = header.has_env, header.dry_run
        self._machine = header.machine
        self._policy: Any = None
        self._config: PolicyConfig | None = None
        self._calls = 0
        self._open: list[tuple[int, Message]] = []  # requests without an answer
        self._ended = False
        self._waiting: queue.SimpleQueue[Write | None] = queue.SimpleQueue()
        self._write(header_line(header))
        self._thread = threading.Thread(target=self._run, name="recording", daemon=True)
        self._thread.start()

    def begin(self, policy: Any, state: StateDir | None = None) -> None:
        """Note the configuration and the state that a policy begins with.

        Args:
            policy: A `ResourcePolicy`.
            state: Where an earlier process kept its state, if any did.
        """
        self._policy = policy
        self._note_what_is_in_force()
        # What is unreadable helps nobody, and the daemon says so itself.
        with contextlib.suppress(StateUnusable, InputError):
            if state is not None and (text := state.read(CHECKPOINT_NAME)):
                now = time.time_ns()
                told = text if self._has_env else checkpoint_without_secrets(text)
                self._put(lambda: Remembered(now, told))

    def tap(self, message: Tapped) -> None:
        """Take a message; see `nri_resmgr.stub.Options.on_message`."""
        is_ours, body = message.sender is Sender.PLUGIN, message.body
        now, method = time.time_ns(), message.method
        if message.request is None:
            self._calls += 1
            number = self._calls
            if isinstance(body, Message):
                self._open.append((number, body))
            self._put(lambda: Called(now, number, method, self._told(body), is_ours))
        elif answer := self._close(message.request):
            code, why = _error(body)
            self._put(
                lambda: Answered(
                    now, answer, method, self._told(body), code, why, is_ours
                )
            )

    def _close(self, request: Message) -> int:
        """Return the number of a request that is answered now; 0 if it has none."""
        for place, (number, one) in enumerate(self._open):
            if one is request:  # equal ones may be under way side by side
                del self._open[place]
                return number
        return 0

    def decided(self, event: Event, decision: Decision[Any]) -> None:
        """Take what was decided, and where the things of new containers sit."""
        # What a change led to is told before the change itself.
        self._note_what_is_in_force()
        now, name = time.time_ns(), type(event).__name__
        hints = tuple((one.id, one.hints) for one in _specs(event) if one.hints)
        # Those of requests are in their replies, if there is anything in these.
        is_told = isinstance(event, _UNASKED) or self._dry_run
        updates = decision.updates if is_told else ()
        if decision.reasons or hints or updates:
            self._put(lambda: Decided(now, name, decision.reasons, hints, updates))

    def refused(self, title: str, error: ResmgrError) -> None:
        """Take a refusal: in a dry run no reply tells of it."""
        now, why = time.time_ns(), str(error)
        self._put(lambda: Refused(now, title, why))

    def configured(self, _config: PolicyConfig) -> None:
        """Take the configuration, and the machine where that is another."""
        self._note_what_is_in_force()

    def close(self) -> None:
        """Write what waits, and end."""
        self._waiting.put(None)
        self._thread.join(_FAREWELL)

    def _note_what_is_in_force(self) -> None:
        now, machine, config = time.time_ns(), self._policy.machine, self._policy.config
        if machine is not self._machine:
            self._machine = machine
            self._put(lambda: MachineChanged(now, machine))
        if config is not self._config:
            self._config = config
            text = self._policy.configuration.document.text
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

    def _told(self, body: object) -> Message | None:
        if not isinstance(body, Message):
            return None
        return body if self._has_env else without_secrets(body)

    def _run(self) -> None:
        # The file is this thread's from here on.
        for batch in self._batches():
            if not self._ended:
                self._write("".join(entry_line(write()) for write in batch))
        self._file.close()

    def _write(self, text: str) -> None:
        try:
            self._file.write(text)
        except RecordingFull as full:
            self._stop(str(full))

    def _batches(self) -> Iterator[list[Write]]:
        """Wait for entries, and take along what else is there."""
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


def _specs(event: Event) -> tuple[Any, ...]:
    match event:
        case Created(spec) | Updated(spec):
            return (spec,)
        case Synchronized(specs):
            return specs
    return ()
