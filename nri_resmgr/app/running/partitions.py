"""Partitions of the kernel for containers with exclusive CPUs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache, partial
from typing import Final

import attrs
import msgspec

from nri_resmgr.app.background.threads import in_thread
from nri_resmgr.app.observers.policy_in_force import PolicyInForce
from nri_resmgr.classes.isolation.exclusivity import Exclusivity
from nri_resmgr.classes.isolation.partitions import (
    PartitionKind,
    PartitionWish,
    kind_of,
)
from nri_resmgr.host.cgroups.containers import CgroupReference
from nri_resmgr.host.cgroups.finder import CgroupFinder
from nri_resmgr.host.cgroups.partition_watch import PartitionWatch
from nri_resmgr.host.cgroups.partitions import PartitionResult, PartitionWriter
from nri_resmgr.host.tree import Tree
from nri_resmgr.log import Logger
from nri_resmgr.values import CpuSet, HostError

log = Logger(__name__)

_NO_CGROUP: Final = PartitionResult(is_valid=False, why="its cgroup was not found")


class PartitionRequest(msgspec.Struct, frozen=True):
    """A partition that the policy in force wants for a container."""

    cgroup: CgroupReference
    title: str
    pod: str
    cpus: CpuSet
    kind: PartitionKind


@attrs.define(eq=False, repr=False)
class PartitionCounts:
    """Counts since the start.

    Attributes:
        refused: Partitions that the kernel refused, or that became invalid.
    """

    refused: int = 0


class Partitions:
    """Makes partitions for containers with exclusive CPUs, and ends them.

    Args:
        open_writer: Called once, in a thread.
        why_not: Why this host can have no partitions; empty if it can.

    Attributes:
        results: The last outcome by container.
    """

    def __init__(
        self,
        subject: PolicyInForce,
        tree: Tree,
        open_writer: Callable[[], PartitionWriter],
        why_not: str = "",
    ) -> None:
        self._subject = subject
        self._tree = tree
        self._open_writer = open_writer
        self.why_not = why_not
        self.counts = PartitionCounts()
        self.results: Mapping[str, PartitionResult] = {}
        self._requests: Mapping[str, PartitionRequest] = {}
        self._seen: tuple[object, ...] = ()
        # As applied last.
        self._applied: Mapping[str, PartitionRequest] | None = None
        self._wishes: Mapping[str, PartitionWish] = {}
        # That a thread makes now, or has made last, and how many times some were.
        self._sent: Mapping[str, PartitionRequest] = {}
        self._number = 0
        self._is_due = False
        self._watch: PartitionWatch | None = None
        # One thread at a time; the event loop in `end_overlapping` is another one.
        self._lock = threading.Lock()
        self._writer: PartitionWriter | None = None
        self._reclaim_problem = ""
        self._finder = lru_cache(maxsize=1)(partial(CgroupFinder, tree))

    @property
    def is_wanted(self) -> bool:
        """True if the configuration asks for partitions."""
        return self._subject.config.exclusivity is not Exclusivity.CPUSET

    @property
    def is_active(self) -> bool:
        """True if containers get partitions."""
        return self.is_wanted and not self.why_not

    @property
    def is_unused(self) -> bool:
        """True if there are no partitions, and none are to be made or ended."""
        if self._applied is None or self._is_due:
            return False  # an earlier process may have left some
        return not (self.is_wanted or self._applied or self._wishes)

    def requests(self) -> Mapping[str, PartitionRequest]:
        """Return the partitions that the policy wants now, by container."""
        subject = self._subject
        # By identity: all of these are replaced when they change.
        seen = (subject.state, subject.config, subject.machine)
        if len(self._seen) != len(seen) or any(
            old is not new for old, new in zip(self._seen, seen, strict=True)
        ):
            self._seen = seen
            self._requests = self._requested() if self.is_active else {}
        return self._requests

    def kept_off(self) -> CpuSet:
        """Return the CPUs of valid partitions that are wanted."""
        requests = self.requests().items()
        return CpuSet.union(one.cpus for key, one in requests if self.is_valid(key))

    def expected(self) -> CpuSet:
        """Return CPUs of partitions that the start of their containers will make."""
        requests = self.requests().items()
        return CpuSet.union(
            one.cpus for key, one in requests if key not in self.results
        )

    def is_requested(self, container: str) -> bool:
        """Return whether a container is to have a partition."""
        return container in self.requests()

    def pods_refused(self) -> frozenset[str]:
        """Return the pods of containers whose partition was refused."""
        results = self.results
        return frozenset(
            request.pod
            for key, request in self.requests().items()
            if key in results and not results[key].is_valid
        )

    def is_valid(self, container: str) -> bool:
        """Return whether a container has the partition that is wanted for it."""
        result = self.results.get(container)
        if result is None or not result.is_valid or self._applied is None:
            return False
        return self._applied.get(container) == self.requests().get(container)

    def pods_without(self) -> frozenset[str]:
        """Return the pods of containers whose partition is not in force yet."""
        return frozenset(
            request.pod
            for key, request in self.requests().items()
            if not self.is_valid(key)
        )

    def demand(self) -> None:
        """Have partitions made again, even if no other ones are wanted."""
        self._is_due = True

    def due(
        self, has_started: Callable[[str], bool], *, ends: bool
    ) -> Mapping[str, PartitionRequest] | None:
        """Return the partitions to apply now; None if that is done.

        Args:
            has_started: Whether a container has been started, so that it has a cgroup.
            ends: Whether to end those that are not wanted any more, of containers that
                still run. Other containers have to leave their CPUs before.
        """
        wanted = {k: one for k, one in self.requests().items() if has_started(k)}
        applied = self._applied or {}
        if not ends:
            known = self._subject.state.ledger.entries
            wanted |= {
                key: one
                for key, one in applied.items()
                if key not in wanted and key in known
            }
        return None if wanted == applied and not self._is_due else wanted

    async def apply(self, wanted: Mapping[str, PartitionRequest]) -> None:
        """Make these partitions, and end all others.

        Where `end_overlapping` is called meanwhile, these are out of date.
        """
        self._is_due, number = False, self._begin(wanted)
        try:
            results = await in_thread(partial(self._apply, wanted, number))
        except HostError as error:
            failed = PartitionResult(is_valid=False, why=str(error))
            results = dict.fromkeys(wanted, failed)
        if number == self._number:
            self._note(wanted, results)
        else:
            self.demand()

    def end_overlapping(self, container: str, cpus: CpuSet) -> None:
        """End partitions with CPUs of a new container, before it is created.

        The kernel must never see a cgroup with CPUs of a partition beside it; see
        `PartitionWriter`. This is rare: the container joins another one.
        """
        requests, sent = self.requests(), self._sent
        stale = [
            key
            for key, wish in self._wishes.items()
            if key != container
            and wish.cpus & cpus
            and (key not in requests or requests[key] != sent.get(key))
        ]
        if not stale:
            return
        left = {key: one for key, one in sent.items() if key not in stale}
        try:
            self._note(left, self._apply(left, self._begin(left)))
        except HostError as error:
            log.error("partition.not-ended", containers=stale, why=str(error))

    def watch(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call *wake* when the kernel changes a partition.

        Returns:
            Ends that.
        """
        loop, watch = asyncio.get_running_loop(), PartitionWatch(self._tree)

        def changed() -> None:
            watch.clear()
            self.demand()
            wake()

        def end() -> None:
            loop.remove_reader(watch.fileno())
            watch.close()
            self._watch = None

        try:
            loop.add_reader(watch.fileno(), changed)
        except OSError:
            watch.close()
            raise
        self._watch = watch
        self._watch_valid()
        return end

    def _requested(self) -> dict[str, PartitionRequest]:
        subject = self._subject
        entries = subject.state.ledger.entries
        found = {}
        for key, cpus in subject.policy.exclusive_cpus(subject.state).items():
            spec = entries[key].spec
            asked = spec.preferences.isolation if subject.config.isolation else None
            kind = kind_of(
                subject.config.exclusivity,
                cpus,
                subject.machine.isolated,
                unbalanced=asked is not None and asked.unbalanced,
            )
            if kind is not None:
                cgroup = CgroupReference(spec.id, spec.cgroup, spec.pid)
                found[key] = PartitionRequest(cgroup, spec.title, spec.pod, cpus, kind)
        return found

    def _begin(self, wanted: Mapping[str, PartitionRequest]) -> int:
        self._sent = wanted
        self._number += 1
        return self._number

    def _apply(
        self, wanted: Mapping[str, PartitionRequest], number: int
    ) -> dict[str, PartitionResult]:
        with self._lock:
            if number != self._number:
                return {}  # others were wanted before the thread began
            if self._writer is None:
                if not wanted and self.why_not:
                    return {}
                self._writer = self._open_writer()
            wishes = {}
            for key, one in wanted.items():
                cgroup = one.cgroup
                place = self._finder().find(cgroup.id, cgroup.path, cgroup.pid)
                if place is not None:
                    wishes[key] = PartitionWish(
                        key, place.cpuset, place.top, one.cpus, one.kind
                    )
            self._wishes = wishes
            found = dict(self._writer.apply(wishes.values()))
            return {key: found.get(key, _NO_CGROUP) for key in wanted}

    def _note(
        self,
        wanted: Mapping[str, PartitionRequest],
        results: Mapping[str, PartitionResult],
    ) -> None:
        before, self.results, self._applied = self.results, results, wanted
        for key, result in results.items():
            one, old = wanted[key], before.get(key)
            if result == old:
                continue
            cpus = str(one.cpus)
            if result.is_valid:
                log.info(
                    "partition.in-force",
                    container=key,
                    title=one.title,
                    cpus=cpus,
                    kind=one.kind.value,
                )
            else:
                self.counts.refused += 1
                log.warning(
                    "partition.refused",
                    container=key,
                    title=one.title,
                    cpus=cpus,
                    why=result.why,
                    instead="all other containers leave these CPUs by their cpusets",
                )
        self._report_reclaim()
        self._watch_valid()

    def _report_reclaim(self) -> None:
        before = self._reclaim_problem
        self._reclaim_problem = self._writer.reclaim.problem if self._writer else ""
        if (why := self._reclaim_problem) and why != before:
            log.warning(
                "partition.reclaim-threads",
                why=why,
                meanwhile="kswapd and kcompactd of each node run on all of the machine",
            )

    def _watch_valid(self) -> None:
        if self._watch is not None:
            valid: Collection[str] = [
                self._wishes[key].folder
                for key, result in self.results.items()
                if result.is_valid
            ]
            self._watch.watch(valid)
