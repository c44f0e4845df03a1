"""The supervisor: keeps all parts of the daemon beside requests running.

One rule for all of them: a part that fails is logged once, is shown by `status` and in
metrics, and is started again after a pause that grows. An essential part that fails for
too long by a fault of this process ends the process, so that another one replaces it.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from time import monotonic
from typing import Final

import attrs
import msgspec

from nri_resmgr.app.background.threads import RunningCalls, calls_of_part
from nri_resmgr.log import Logger
from nri_resmgr.values import HostError, ResmgrError

log = Logger(__name__)

# Most faults pass at once: a thread ends, a descriptor is closed.
FIRST_PAUSE: Final = 1.0
"""Seconds between the first failure and the next try; doubled with each other one."""

# With `STEADY` below 30 s: by then a part works again, and is reported as working.
LAST_PAUSE: Final = 10.0
"""Longest pause in seconds."""

# Longer than the interval of a poll, 10 s. All parts do all of their work when they
# start, so one that still fails does so earlier.
STEADY: Final = 12.0
"""Seconds without another failure after which a part works again."""

# Longer than a burst of processes that use up a pids limit, or of files.
LONGEST: Final = 300.0
"""Seconds of failing tries after which the process ends."""

# A disk that wakes up takes some seconds.
HANGING: Final = 10.0
"""Seconds after which a call that has not returned is reported."""

# Of these a new process has a fresh supply, or frees what this one has lost.
_EXHAUSTED: Final = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN)


@dataclass(eq=False)
class PartLost(HostError):
    """An essential part has failed for too long; the process has to be replaced."""

    part: str
    seconds: float
    why: str

    def __str__(self) -> str:
        return (
            f"{self.part} has failed for {self.seconds:.0f} s: {self.why}; the process "
            "ends to be started again"
        )


@attrs.define(eq=False)
class Part:
    """A part of the daemon beside requests.

    Attributes:
        name: In the log, `status` and metrics.
        run: Runs it until it is cancelled. It does all of its work as soon as it is
            called, because it is called again after each failure. It returns if it is
            off.
        meanwhile: What holds while it fails.
        is_essential: Whether the process ends if it cannot be started again.
        patience: Seconds after which a call that has not returned is reported.
        why: The reason of the last failure; empty while it works.
        since: Monotonic time of the first failure.
        next_try: Monotonic time of the next try; 0 while one is in progress.
        tries: Failures since then.
        restarts: Failures since the start of the process.
        calls: Its calls in threads.
    """

    name: str
    run: Callable[[], Awaitable[None]]
    meanwhile: str
    is_essential: bool = True
    patience: float = HANGING
    why: str = attrs.field(default="", init=False)
    since: float = attrs.field(default=0.0, init=False)
    next_try: float = attrs.field(default=0.0, init=False)
    tries: int = attrs.field(default=0, init=False)
    restarts: int = attrs.field(default=0, init=False)
    calls: RunningCalls = attrs.field(factory=RunningCalls, init=False)

    @property
    def hangs(self) -> float:
        """Seconds for which a call has not returned; 0 below `patience`."""
        longest = self.calls.longest
        return longest if longest >= self.patience else 0.0


class Timing(msgspec.Struct, frozen=True):
    """Pauses before failing parts are started again; all in seconds.

    Attributes:
        first_pause: See `FIRST_PAUSE`.
        last_pause: See `LAST_PAUSE`.
        steady: See `STEADY`.
        longest: See `LONGEST`.
    """

    first_pause: float = FIRST_PAUSE
    last_pause: float = LAST_PAUSE
    steady: float = STEADY
    longest: float = LONGEST

    def pause(self, tries: int) -> float:
        """Return the pause after so many failures."""
        doubled = min(tries - 1, 10)  # no overflow after a month
        return min(self.first_pause * 2.0**doubled, self.last_pause)


DEFAULT_TIMING: Final = Timing()


class Supervisor:
    """Runs parts, and starts those that fail again.

    Args:
        may_end: Whether the process may end for an essential part. Not so where the
            runtime launched it: it would not be launched again.
        timing: When parts are started again.

    Attributes:
        parts: All parts.
    """

    def __init__(
        self, *, may_end: bool = True, timing: Timing = DEFAULT_TIMING
    ) -> None:
        self.parts: tuple[Part, ...] = ()
        self._may_end = may_end
        self._timing = timing
        self._lost: dict[str, PartLost] = {}

    def problems(self) -> tuple[str, ...]:
        """Return why the process should be replaced, as sentences; empty if healthy."""
        return tuple(str(one) for one in self._lost.values())

    async def run(self, parts: Iterable[Part]) -> None:
        """Run *parts* until cancelled, or until all of them are off.

        Raises:
            PartLost: An essential part cannot be started again.
        """
        self.parts = tuple(parts)
        tasks = [asyncio.create_task(self._keep(one)) for one in self.parts]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()

    async def _keep(self, part: Part) -> None:
        calls_of_part.set(part.calls)
        loop = asyncio.get_running_loop()
        while True:
            steady = loop.call_later(self._timing.steady, self._recovered, part)
            # A task of its own: on Python 3.11 and 3.12 a task group that fails leaves
            # its task with a cancellation counted, as if the process were ending.
            attempt = asyncio.create_task(_run(part))
            try:
                await asyncio.wait({attempt})
            except asyncio.CancelledError:
                attempt.cancel()
                await asyncio.wait({attempt})
                _note_end(part, attempt)
                raise
            finally:
                steady.cancel()
            if (error := _error_of(attempt)) is None:
                self._recovered(part)  # it is off now
                return
            self._failed(part, error)
            await asyncio.sleep(self._timing.pause(part.tries))
            # Otherwise each try might add a thread that hangs.
            while part.hangs:  # noqa: ASYNC110 - a thread ends it, which sets no event
                await asyncio.sleep(self._timing.first_pause)
            part.next_try = 0.0

    def _failed(self, part: Part, error: BaseException) -> None:
        cause, now, is_new = _leaf_of(error), monotonic(), not part.why
        part.why = _sentence_of(cause)
        if is_new:
            part.since, part.tries = now, 0
        part.tries += 1
        part.restarts += 1
        pause = self._timing.pause(part.tries)
        part.next_try = now + pause
        if is_new:
            log.error(
                "part.failed",
                part=part.name,
                why=part.why,
                meanwhile=part.meanwhile,
                again_in=pause,
                exc_info=None if isinstance(cause, ResmgrError) else cause,
            )
        seconds = now - part.since
        if (
            seconds >= self._timing.longest
            and part.is_essential
            and _is_of_process(cause)
        ):
            self._lose(part, PartLost(part.name, seconds, part.why))

    def _lose(self, part: Part, lost: PartLost) -> None:
        is_new = part.name not in self._lost
        self._lost[part.name] = lost
        if is_new:
            log.error("part.lost", part=part.name, why=str(lost))
        if self._may_end:
            raise lost

    def _recovered(self, part: Part) -> None:
        if not part.why:
            return
        self._lost.pop(part.name, None)
        after, tries = round(monotonic() - part.since, 1), part.tries
        part.why, part.next_try, part.tries = "", 0.0, 0
        log.info("part.recovered", part=part.name, tries=tries, after=after)


async def _run(part: Part) -> None:
    await part.run()


def _error_of(attempt: asyncio.Task[None]) -> BaseException | None:
    # Unless the part is ended, a cancellation is a failure of it as well.
    return asyncio.CancelledError() if attempt.cancelled() else attempt.exception()


def _note_end(part: Part, attempt: asyncio.Task[None]) -> None:
    """Log an error of the cleanup of a part that was ended."""
    if (error := _error_of(attempt)) is None:
        return
    if not isinstance(cause := _leaf_of(error), asyncio.CancelledError):
        log.warning("part.not-cleaned-up", part=part.name, why=_sentence_of(cause))


def _leaf_of(error: BaseException) -> BaseException:
    """Return the first error of a group, as of several tasks of a part."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _sentence_of(error: BaseException) -> str:
    if isinstance(error, ResmgrError):
        return str(error)
    return f"{type(error).__name__}: {error}".removesuffix(": ")


def _is_of_process(error: BaseException) -> bool:
    """Return whether another process may not have this fault.

    A host that refuses, such as a full disk, would refuse it to the next one as well.
    """
    if not isinstance(error, ResmgrError):
        return True
    cause = error.__cause__ or error.__context__
    return isinstance(cause, OSError) and cause.errno in _EXHAUSTED
