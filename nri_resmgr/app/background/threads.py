"""Calls that may hang, in threads for which nothing waits.

A file of the host may not answer: a disk fails, a FUSE process stops, a driver waits
for its device. Such a thread can neither be cancelled nor killed. So each call has a
thread of its own, never one of a pool that others wait for, and the process ends
without it. The calls of a part of the daemon are noted, so that one that hangs is
reported.
"""

from __future__ import annotations

import _thread
import asyncio
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from importlib import import_module
from time import monotonic, sleep
from types import ModuleType
from typing import Any, Final, Generic, TypeVar

from nri_resmgr.app.background.periodic import until_tick

T = TypeVar("T")

NO_MEMORY: Final = (MemoryError, SystemError)
"""Errors without memory: CPython 3.11 has the second one for a call without a frame."""

# Without memory for the outcome: the caller waits for it, so it must not be lost.
_AGAIN: Final = 1.0  # seconds

# A thread that has not begun by then never will: it got no memory for its first step.
_FIRST_STEP: Final = 5.0  # seconds

# As long as the end waits for a thread that restores the host.
_LONGEST_HERE: Final = 5.0  # seconds


class RunningCalls:
    """The calls of one part of the daemon that run in threads now."""

    def __init__(self) -> None:
        self._begun: dict[object, float] = {}  # several threads add and remove

    @property
    def longest(self) -> float:
        """Seconds since the oldest one began; 0 without any."""
        begun = tuple(self._begun.values())
        return monotonic() - min(begun) if begun else 0.0

    def run(self, call: Callable[[], T]) -> T:
        """Call, and note it until it returns; for a thread."""
        key = object()
        self._begun[key] = monotonic()
        try:
            return call()
        finally:
            del self._begun[key]


_UNNOTED: Final = RunningCalls()

calls_of_part: ContextVar[RunningCalls] = ContextVar("calls", default=_UNNOTED)
"""The calls of the part that runs; tasks inherit it from the part that starts them."""


async def in_thread(call: Callable[[], T]) -> T:
    """Call in a thread of its own, and return the result.

    Raises:
        Exception: Raised by *call*.
        RuntimeError: No thread can be started.
    """
    return await _answer(lambda calls, _: calls.run(call))


async def imported(name: str) -> ModuleType:
    """Import a module in a thread: an import takes as long as fifty requests.

    Requests go first meanwhile. Call it where few nodes need the module, or no request.

    Raises:
        ImportError: It, or an optional dependency, is not installed.
    """
    return await in_thread(partial(import_module, name))


async def found_by(poll: Callable[[], T | None], interval: float) -> T:
    """Poll at each tick until the result is not None, and return it.

    One thread does all polls, and the event loop sleeps until then: a pool of threads
    would wake it twice for every poll, and cost five times as much.

    Args:
        poll: Called in the thread.
        interval: Seconds between ticks.

    Raises:
        Exception: Raised by *poll*.
        RuntimeError: No thread can be started.
    """

    def poll_until_found(calls: RunningCalls, is_over: threading.Event) -> T | None:
        found = None
        while found is None and not is_over.wait(until_tick(interval)):
            found = calls.run(poll)
        return found

    found = await _answer(poll_until_found)
    if found is None:
        raise asyncio.CancelledError  # `is_over` is only set once nothing waits
    return found


class OneCall(Generic[T]):
    """A call that runs in one thread at a time, for any number of clients.

    Each client that waits for a read that hangs would add another thread otherwise.

    Args:
        patience: Seconds that a client waits.
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._running: asyncio.Task[T] | None = None

    async def result(self, call: Callable[[], T]) -> T:
        """Call, or wait for the call in progress; return its result.

        Raises:
            TimeoutError: It takes too long.
            Exception: Raised by *call*.
        """
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(in_thread(call))
        async with asyncio.timeout(self._patience):
            return await asyncio.shield(self._running)


class BackgroundThread:
    """A thread for which the process does not wait at its end.

    `threading.Thread.start` waits for the first step of its thread: for ever, and with
    it the event loop, if there is no memory for that step. This does not wait.

    Args:
        call: Called in the thread.

    Raises:
        RuntimeError: No thread can be started.
    """

    def __init__(self, call: Callable[[], object]) -> None:
        self._call = call
        self._turn = threading.Lock()  # taken by the thread, or by `withdraw`
        self._begun, self._ended = threading.Event(), threading.Event()
        _thread.start_new_thread(self._run, ())

    def withdraw(self) -> bool:
        """Prevent the call; return False if it has begun."""
        return self._turn.acquire(blocking=False)

    def has_begun(self, within: float) -> bool:
        """Wait for the first step."""
        return self._begun.wait(within)

    def join(self, within: float) -> None:
        """Wait for the end."""
        self._ended.wait(within)

    def is_alive(self) -> bool:
        """Return whether it has not ended."""
        return not self._ended.is_set()

    def _run(self) -> None:
        if self._turn.acquire(blocking=False):
            self._begun.set()
            try:
                self._call()
            finally:
                self._ended.set()


def start_last_thread(call: Callable[[], object]) -> BackgroundThread | None:
    """Start a thread at the end of the process; without one, call here.

    Otherwise the call would not be made at all. If it hangs then, the process is ended
    by SIGALRM: nothing else can end it but SIGKILL, later.
    """
    try:
        thread = BackgroundThread(call)
    except (RuntimeError, *NO_MEMORY):
        _call_here(call)
        return None
    if not thread.has_begun(_FIRST_STEP) and thread.withdraw():
        _call_here(call)
        return None
    return thread


def _call_here(call: Callable[[], object]) -> None:
    # Python has no handler for the signal. One could not run during the call, either.
    before = signal.setitimer(signal.ITIMER_REAL, _LONGEST_HERE)
    try:
        call()
    finally:
        signal.setitimer(signal.ITIMER_REAL, *before)


async def _answer(call: Callable[[RunningCalls, threading.Event], T]) -> T:
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()
    calls, is_over = calls_of_part.get(), threading.Event()

    def work() -> None:
        found = error = None
        try:
            found = call(calls, is_over)
        except Exception as raised:  # noqa: BLE001 - logged nowhere: the caller awaits it
            error = raised
        _deliver(loop, answer, found, error)

    thread = BackgroundThread(work)
    check = loop.call_later(_FIRST_STEP, _expect_begun, thread, answer)
    try:
        return await answer
    finally:
        check.cancel()
        is_over.set()


def _expect_begun(thread: BackgroundThread, answer: asyncio.Future[Any]) -> None:
    if thread.withdraw() and not answer.done():
        answer.set_exception(MemoryError("no memory for a new thread"))


def _deliver(
    loop: asyncio.AbstractEventLoop,
    answer: asyncio.Future[Any],
    found: object,
    error: Exception | None,
) -> None:
    while not answer.done():
        with suppress(*NO_MEMORY):
            with suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(_settle, answer, found, error)
            return
        sleep(_AGAIN)


def _settle(
    answer: asyncio.Future[Any], found: object, error: Exception | None
) -> None:
    if answer.done():  # cancelled
        return
    if error is not None:
        answer.set_exception(error)
    else:
        answer.set_result(found)
