"""Values of cgroups that other programs overwrite: noticed, and written again."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection
from time import monotonic
from typing import Final, TypeAlias

from nri_resmgr.app.background.repairs import (
    CONTEST_PAUSE,
    FORGIVEN,
    MOST_ATTEMPTS,
)
from nri_resmgr.app.running.containers import DeliveredContainers
from nri_resmgr.app.running.series import PinWrite
from nri_resmgr.app.running.waiting import WaitingPins
from nri_resmgr.host.cgroups.cpuset_watch import CpusetWatch
from nri_resmgr.host.cgroups.writer import WriteResult
from nri_resmgr.log import Logger

log = Logger(__name__)

OnOverwritten: TypeAlias = Callable[[PinWrite, WriteResult], None]
"""Receives CPUs that were written again: the decided ones, and what was there."""

# As the longest pause of a part that fails. Without any watch, containers are compared
# as often: 500 of them take a few thousandths of a CPU.
_AGAIN: Final = 10.0  # seconds

_MEANWHILE: Final = (
    "what other programs write to cpusets of containers is found within 10 s, or by "
    "the next round of verification"
)


class Overwrites:
    """Has containers compared whose cpusets are written, and limits what follows.

    A container is contested once another program has written its values again and
    again. Its CPUs are still written, since exclusive ones would be shared otherwise,
    but with a pause. Its memory nodes are left to verification: each change may move
    all of its memory.

    Args:
        watch: Notices writes; None to notice none.
        containers: Those whose cgroups are written.
        waiting: Has the comparisons.
        clock: A monotonic time, seconds.

    Attributes:
        on_found: Called with CPUs that nothing known has overwritten.
        on_contested: Called with a container that is contested from now on.
    """

    def __init__(
        self,
        watch: CpusetWatch | None,
        containers: DeliveredContainers,
        waiting: WaitingPins,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.watch = watch
        self.on_found: OnOverwritten = lambda _write, _result: None
        self.on_contested: Callable[[str], None] = lambda _container: None
        self._containers = containers
        self._waiting = waiting
        self._clock = clock
        self._rewritten: dict[str, deque[float]] = {}  # the last times
        self._listens_to = -1
        self._is_reported = False

    # Noticing.

    def listen(self) -> None:
        """Note writes from now on; call it again after files were added."""
        if self.watch is None:
            return
        self._report_problem(self.watch.problem)
        if self.watch.fileno() != self._listens_to:
            self._listens_to = self.watch.fileno()
            loop = asyncio.get_running_loop()
            loop.add_reader(self._listens_to, self._look, self.watch)

    def pause(self) -> None:
        """Leave writes unread until `look`, such as those of a series of our own.

        To be woken by each of them would take longer than to write.
        """
        if self._listens_to >= 0:
            asyncio.get_running_loop().remove_reader(self._listens_to)
            self._listens_to = -1

    def look(self) -> None:
        """Have containers compared whose files were written since the last call."""
        if self.watch is not None and self.watch.fileno() >= 0:
            self._look(self.watch)

    def stop(self) -> None:
        """Note no more writes."""
        self.pause()
        if self.watch is not None:
            self.watch.close()

    def watch_again(self, container: str) -> None:
        """Have a container compared again, which watches it, if it is not watched."""
        if self.watch is not None and container not in self.watch:
            self._waiting.check_soon(container, _AGAIN)

    def keep_only(self, containers: Collection[str]) -> None:
        """Forget all other containers."""
        if self.watch is not None:
            self.watch.keep_only(containers)
        for key in self._rewritten.keys() - set(containers):
            del self._rewritten[key]

    def _look(self, watch: CpusetWatch) -> None:
        try:
            written = watch.written()
        except OSError as error:
            self._report_problem(f"inotify: {error.strerror}")
            self.stop()  # it begins again with the next write
            return
        for key in written:
            one = self._containers.get(key)
            if one is not None and not one.by_runtime:
                self._waiting.check_soon(key, self.pause_of(key))

    def _report_problem(self, why: str) -> None:
        if why and not self._is_reported:
            log.warning("cpusets.not-watched", why=why, meanwhile=_MEANWHILE)
        self._is_reported = bool(why)

    # Writing again.

    def is_contested(self, container: str) -> bool:
        """Return whether another program writes a container's values all the time."""
        times = self._rewritten.get(container)
        if times is None or len(times) < MOST_ATTEMPTS:
            return False
        return self._clock() - times[0] < FORGIVEN

    def pause_of(self, container: str) -> float:
        """Return the seconds before CPUs of a container may be written again."""
        if not self.is_contested(container):
            return 0.0
        last = self._rewritten[container][-1]
        return max(0.0, last + CONTEST_PAUSE - self._clock())

    def note_rewritten(self, container: str) -> None:
        """Note that overwritten values were written again."""
        was_contested = self.is_contested(container)
        new = deque[float](maxlen=MOST_ATTEMPTS)
        self._rewritten.setdefault(container, new).append(self._clock())
        if self.is_contested(container) and not was_contested:
            self.on_contested(container)

    def note_decided(self, container: str) -> None:
        """Note that other values are decided: attempts count anew."""
        self._rewritten.pop(container, None)
