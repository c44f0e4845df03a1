"""Turns of making and ending partitions with writes to cgroups."""

from __future__ import annotations

from collections.abc import Iterable

from nri_resmgr.app.running.containers import DeliveredContainers
from nri_resmgr.app.running.partitions import Partitions
from nri_resmgr.app.running.waiting import WaitingPins
from nri_resmgr.policy.decision import PinUpdate
from nri_resmgr.values import NO_CPUS


class PartitionTurns:
    """Makes and ends partitions between the series of writes.

    Where partitions keep others off exclusive CPUs, nothing is written for containers
    that lose just these: they wait until the start of the exclusive container makes its
    partition. If the kernel refuses that, they are written before the start goes on.

    Args:
        partitions: Those of the kernel.
        containers: Those whose cgroups are written.
        waiting: Pins that wait to be written there.
    """

    def __init__(
        self,
        partitions: Partitions,
        containers: DeliveredContainers,
        waiting: WaitingPins,
    ) -> None:
        self._partitions = partitions
        self._containers = containers
        self._waiting = waiting
        self._is_in_sync = False
        self._kept_off = NO_CPUS  # by partitions, as of the last series
        # What was in the way of a refused partition may have been written since.
        self._tries_again = False

    # Between a decision and its reply.

    def synchronized(self) -> None:
        """Note that the containers are known; an earlier process may have left some."""
        self._is_in_sync = True
        self._partitions.demand()

    def starting(self, container: str) -> None:
        """Have the partition of a container made, if it is to have one."""
        if self._partitions.is_requested(container):
            self._partitions.demand()
            self._waiting.wake()

    def beside_partitions(self, updates: Iterable[PinUpdate]) -> frozenset[str]:
        """Return the containers that may be beside a partition, and have to leave.

        The kernel refuses a partition whose CPUs are in a cpuset beside it. The runtime
        has to know, too: were it to write an old value later, the partition would end.
        """
        pods = self._partitions.pods_without()
        if not pods:
            return frozenset()
        return frozenset(one.container for one in updates if self._loses_in(pods, one))

    # Between two series of writes.

    async def take(self, *, ends: bool) -> bool:
        """Make partitions, and with *ends* end others; return False if that is done.

        Without *ends* only those of containers that have ended are: others get their
        CPUs by the next series.
        """
        partitions = self._partitions
        if not self._is_in_sync:
            return False
        wanted = partitions.due(self._containers.has_started, ends=ends)
        if wanted is None:
            return False
        await partitions.apply(wanted)
        for key in self._waiting.held:
            self._waiting.add(key)
        # Containers beside a refused partition may be in its way.
        if pods := partitions.pods_refused():
            for key, entry in self._containers.entries().items():
                if entry.spec.pod in pods and not self._containers.why_by_runtime(key):
                    self._waiting.add(key)
        return True

    def add_uncovered(self) -> None:
        """Have containers written that a partition kept off CPUs until now."""
        before, self._kept_off = self._kept_off, self._partitions.kept_off()
        if before - self._kept_off:
            for key, one in self._containers.items():
                if one.by_partition:
                    self._waiting.add(key)

    def note_written(self) -> None:
        """Note that a cgroup was written: a refused partition may be possible now."""
        if self._partitions.pods_refused():
            self._tries_again = True

    def demand_again(self) -> bool:
        """Have refused partitions tried again if that may help; return whether."""
        if not self._tries_again:
            return False
        self._tries_again = False
        self._partitions.demand()
        return True

    def _loses_in(self, pods: frozenset[str], update: PinUpdate) -> bool:
        entry = self._containers.entries().get(update.container)
        one = self._containers.get(update.container)
        if entry is None or one is None or entry.spec.pod not in pods:
            return False
        return one.loses(update.pin)
