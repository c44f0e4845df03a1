"""The spool folder, read at the start and after each change of it."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Coroutine
from typing import Final

import msgspec

from nri_resmgr.app.adjustments.adjustment import Adjustment
from nri_resmgr.app.background.threads import found_by, in_thread
from nri_resmgr.app.configuration.acceptance import ActiveConfiguration
from nri_resmgr.app.configuration.cluster import ClusterStatus
from nri_resmgr.app.configuration.status import Document, WouldChange
from nri_resmgr.app.observers.observer import EventLog
from nri_resmgr.app.plugin.node_policy import NodePolicy
from nri_resmgr.daemon.cluster.adjustments import ClusterAdjustments
from nri_resmgr.daemon.cluster.agent import ABSENT_AFTER, AgentContact
from nri_resmgr.daemon.cluster.configuration import ClusterConfiguration
from nri_resmgr.daemon.cluster.reading import Reading, for_this_node, read_folder
from nri_resmgr.host.folder_watch import FolderWatch
from nri_resmgr.host.spool_folder import SpoolFolder
from nri_resmgr.log import Logger
from nri_resmgr.spool import ADJUSTMENTS, CONFIGURATION
from nri_resmgr.values import ResmgrError

log = Logger(__name__)

# An agent renames files into the folder, which is noticed at once; other changes of it,
# and all where the kernel has no watch left, are found by a look.
POLL_INTERVAL: Final = 1.0  # seconds

# Whatever is written into the folder, it is not read more often.
_BETWEEN: Final = 0.25  # seconds

# A configuration places all containers again: the last of many in a second is enough.
_PAUSE: Final = 1.0  # seconds between the end of a change and the next one

# Of files that could not be read.
_RETRY: Final = 5.0  # seconds


class ClusterDocuments:
    """Reads the spool folder, offers what it has, and keeps the verdicts.

    The last document that was in force stays so while the folder, or a file in it,
    cannot be read, and when the cluster has no document any more.

    Args:
        path: The spool folder.
        ignored: Why its configuration does not count; empty where it does.
        absent_after: Seconds without a report after which the agent counts as absent.
        poll: Seconds between two looks at the folder.
    """

    def __init__(
        self,
        path: str,
        *,
        ignored: str = "",
        absent_after: float = ABSENT_AFTER,
        poll: float = POLL_INTERVAL,
    ) -> None:
        self._folder = SpoolFolder(path, (CONFIGURATION, ADJUSTMENTS))
        self._configuration = ClusterConfiguration(self._folder, ignored)
        self._adjustments = ClusterAdjustments(self._folder.path)
        self._agent = AgentContact(absent_after)
        self._ignored = ignored
        self._poll = poll
        self._problem = ""
        self._first = Reading()
        self._is_adjusting = False  # as soon as the containers are known
        self._next_reading = math.inf  # where a file could not be read
        self._busy = asyncio.Lock()

    @property
    def owner(self) -> int | None:
        """The user that the folder belongs to; None while it cannot be read."""
        return self._folder.owner

    @property
    def status(self) -> ClusterStatus:
        """The folder, the agent, and the verdicts."""
        silence = self._agent.silence
        return ClusterStatus(
            path=self._folder.path,
            problem=self._problem,
            agent=self._agent.report,
            silence=silence,
            absent=self._agent.is_absent(silence),
            configuration=self._configuration.judged,
            adjustments=self._adjustments.judged,
        )

    @property
    def has_configuration(self) -> bool:
        """True if there is a document that counts."""
        return self._configuration.is_known and not self._ignored

    def report_trials(self, events: EventLog) -> None:
        """Have trials of documents noted as events."""
        self._configuration.report_trials(events)

    def begin(self) -> None:
        """Read the folder before the policy is built."""
        self._first = msgspec.structs.replace(self._read(), config=None)
        self._note_folder(self._first)

    def first(self) -> Document | None:
        """Return the configuration that `begin` has read; None without one.

        `judge` takes what became of it.
        """
        return self._configuration.first(self._first.configuration)

    def first_adjustments(self) -> tuple[Adjustment, ...] | None:
        """Return the adjustments that `begin` has read; None if they are not known."""
        found = self._first.adjustments
        if self._first.problem or isinstance(found, ResmgrError):
            return None
        objects = self._first.objects
        return None if objects.errors else for_this_node(objects.read)

    def judge(
        self,
        error: ResmgrError | None,
        would_change: tuple[WouldChange, ...] | None = None,
    ) -> None:
        """Note the verdict on the last document.

        Args:
            error: Why it is rejected; None if it is not.
            would_change: What it would change, if it is tried only.
        """
        self._configuration.judge(error, would_change)

    async def follow(
        self,
        active: ActiveConfiguration,
        policy: NodePolicy,
        is_ready: Callable[[], bool] = lambda: True,
    ) -> None:
        """Offer what the folder has, now and after each change.

        Never returns; call it again after an exception.

        Args:
            active: Accepts configurations.
            policy: The policy in force, whose containers are adjusted.
            is_ready: Returns whether the containers are known, which adjustments need.
        """
        async with asyncio.TaskGroup() as group:
            group.create_task(self._agent.watch())
            group.create_task(self._watch(active, policy, is_ready))

    async def reload(self, active: ActiveConfiguration, *, force: bool) -> None:
        """Read the folder again, and put its configuration in force.

        Raises:
            ResmgrError: It has a mistake, or does not fit; nothing has changed.
        """
        async with self._busy:
            reading = await in_thread(self._read)
            self._take(active, reading)
            self._configuration.take_again(active, reading, force=force)

    def hear(
        self, version: str, node: str, contact: float | None, problem: str = ""
    ) -> None:
        """Note a report of the agent; see `AgentContact.hear`."""
        self._agent.hear(version, node, contact, problem)

    async def _watch(
        self,
        active: ActiveConfiguration,
        policy: NodePolicy,
        is_ready: Callable[[], bool],
    ) -> None:
        def is_due() -> bool | None:
            next_reading = min(self._adjustments.retry_at, self._next_reading)
            return (
                self._folder.has_changed()
                or (self._is_adjusting and is_ready())
                or next_reading < time.monotonic()
                or self._configuration.is_trial_due
                or None
            )

        watch = FolderWatch(self._folder.path)

        def read() -> Reading:
            watch.renew()  # before it is read: what happens meanwhile is noticed, too
            return self._read()

        try:
            while True:
                async with self._busy:
                    reading = await in_thread(read)
                    # No descriptor may have been free: nothing in the folder changes
                    # then.
                    unread = time.monotonic() + _RETRY
                    self._next_reading = unread if reading.is_unread else math.inf
                    has_changed = self._take(active, reading)
                    self._is_adjusting = not is_ready()
                    if not (self._is_adjusting or reading.problem):
                        has_changed |= self._adjustments.take(policy, reading)
                await asyncio.sleep(_PAUSE if has_changed else _BETWEEN)
                await _either(found_by(is_due, self._poll), _noticed(watch))
        finally:
            watch.close()

    def _read(self) -> Reading:
        return read_folder(self._folder, with_config=not self._ignored)

    def _take(self, active: ActiveConfiguration, reading: Reading) -> bool:
        """Offer the configuration if it is new; return whether it was."""
        self._note_folder(reading)
        return not reading.problem and self._configuration.take(active, reading)

    def _note_folder(self, reading: Reading) -> None:
        if reading.problem and reading.problem != self._problem:
            log.warning("cluster.spool-unreadable", why=reading.problem)
        elif self._problem and not reading.problem:
            log.info("cluster.spool-readable", path=self._folder.path)
        self._problem = reading.problem


async def _noticed(watch: FolderWatch) -> None:
    """Wait until something was noticed; for ever where nothing can be."""
    loop = asyncio.get_running_loop()
    happened = asyncio.Event()
    if (fd := watch.fileno()) < 0:
        await happened.wait()
    loop.add_reader(fd, happened.set)
    try:
        await happened.wait()
    finally:
        loop.remove_reader(fd)
    watch.drain()


async def _either(*waits: Coroutine[None, None, object]) -> None:
    """Wait until one of several ends, and end the others."""
    tasks = [asyncio.create_task(one) for one in waits]
    try:
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for one in ended:
            one.result()  # raises what it raised
    finally:
        for one in tasks:
            one.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
