"""Delivery of pins by the containers' cgroups."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from functools import partial
from time import monotonic
from typing import Final

from nri_resmgr.app.background.threads import in_thread
from nri_resmgr.app.observers.policy_in_force import UpdatingPolicy
from nri_resmgr.app.running.container import PinStatus
from nri_resmgr.app.running.containers import DeliveredContainers
from nri_resmgr.app.running.delivery import DeliveryCounts
from nri_resmgr.app.running.left_in_force import read_pins
from nri_resmgr.app.running.memory_nodes import MemoryNodeWrites
from nri_resmgr.app.running.next_series import next_series
from nri_resmgr.app.running.overwrites import Overwrites
from nri_resmgr.app.running.partition_turns import PartitionTurns
from nri_resmgr.app.running.parts import DELIVERY_TIMES, DeliveryParts, DeliveryTimes
from nri_resmgr.app.running.record import RuntimeRecord
from nri_resmgr.app.running.results import WriteResults
from nri_resmgr.app.running.series import PinWrite, write_pins
from nri_resmgr.app.running.waiting import WaitingPins
from nri_resmgr.host.cgroups.containers import CgroupReference
from nri_resmgr.host.cgroups.writer import CgroupWriter
from nri_resmgr.host.knobs.files import WritableTree
from nri_resmgr.policy.decision import PinUpdate
from nri_resmgr.policy.events import NO_PIN, Pin
from nri_resmgr.stub.update import ContainerUpdate
from nri_resmgr.values import CpuSet, NodeSet

# As long as a thousand writes: one that takes so long hangs, on a machine that is not
# merely busy. The start that waits for it is answered by the deadline of its request;
# those after it need not wait as well.
_HANGING: Final = 1.0  # seconds


class ByCgroup:
    """Writes pins to the cgroups of running containers.

    Writes begin right after the reply, those of containers that lose CPUs first; the
    start of a container waits until these have left its CPUs, and for its own write.
    The runtime's own record follows by updates of low urgency, so that a later resize
    does not bring old values back. A container whose cgroup cannot be written is
    updated by the runtime. Where partitions keep others off exclusive CPUs, most need
    no write: see `PartitionTurns`.

    Args:
        subject: The policy.
        tree: The host.
        parts: See `DeliveryParts`.
        times: See `DeliveryTimes`.

    Attributes:
        problem: Why no cgroup is written at present; empty while they are.
        partitions: Partitions for containers with exclusive CPUs.
        memory_nodes: Writes memory nodes, for which no start waits.
        units: Sets the same values in units of systemd; None for none.
        overwrites: Writes again what other programs overwrite.
    """

    def __init__(
        self,
        subject: UpdatingPolicy,
        tree: WritableTree,
        parts: DeliveryParts,
        times: DeliveryTimes = DELIVERY_TIMES,
    ) -> None:
        self.partitions = partitions = parts.partitions
        self.units = parts.units
        self._writer = CgroupWriter(tree)
        self._containers = DeliveredContainers(subject, times.retry_after)
        self._waiting = WaitingPins(times.check_after)
        self._record = RuntimeRecord(
            subject, self._containers, self._waiting, partitions
        )
        self._turns = PartitionTurns(partitions, self._containers, self._waiting)
        self.overwrites = Overwrites(parts.watch, self._containers, self._waiting)
        waiting_nodes = WaitingPins(check_after=0.0)  # CPUs are compared before
        self._results = WriteResults(
            self._containers,
            self._record,
            self._turns,
            self.overwrites,
            self._waiting,
            waiting_nodes,
            parts.units,
        )
        self.memory_nodes = MemoryNodeWrites(
            CgroupWriter(tree),
            waiting_nodes,
            self._nodes_of,
            self._results.note_nodes,
            self._results.hand_over,
        )
        self._tree = tree
        self._left: Mapping[str, Pin] = {}  # by an earlier process
        self._begun = 0.0  # the write in flight
        self.problem = ""

    # Decisions, before their reply.

    def created(self, container: str, pin: Pin) -> None:
        """See `PinDelivery.created`."""
        self._containers.add(container, pin)
        self.partitions.end_overlapping(container, pin.cpus)

    def answered(self, container: str, pin: Pin) -> None:
        """See `PinDelivery.answered`."""
        # A resize may be the first event of a container.
        self._containers.add_running(container)
        self._record.note(container, pin)

    def apply(self, updates: Sequence[PinUpdate]) -> Sequence[PinUpdate]:
        """See `PinDelivery.apply`."""
        self._forget_ended()
        beside = self._turns.beside_partitions(updates)
        by_runtime = []
        for one in updates:
            if self._why_by_runtime(one.container) or one.container in beside:
                by_runtime.append(one)
                self._record.note(one.container, one.pin)
            else:
                self._waiting.add(one.container)
        self._waiting.wake()  # a partition may have to end
        return by_runtime

    def send(self, containers: Iterable[str]) -> None:
        """See `PinDelivery.send`."""
        by_runtime = []
        for key in containers:
            if self._why_by_runtime(key):
                by_runtime.append(key)
            else:
                self._waiting.add(key)
        self._record.send(by_runtime)
        self._waiting.wake()  # as above

    def look(self, cgroups: Iterable[CgroupReference]) -> None:
        """See `PinDelivery.look`."""
        self._left = read_pins(self._tree, cgroups)

    def in_force(self) -> Mapping[str, Pin]:
        """See `PinDelivery.in_force`."""
        return self._left or self._containers.in_force()

    def synchronize(
        self, updates: Sequence[PinUpdate], recorded: Mapping[str, Pin]
    ) -> Sequence[PinUpdate]:
        """See `PinDelivery.synchronize`.

        All containers are compared: an earlier process may have been killed between
        its writes, and before the runtime's record followed.
        """
        self._record.drop()
        self._left = {}
        self._containers.begin_again(recorded)
        self._waiting.clear()
        self.memory_nodes.waiting.clear()
        self._turns.synchronized()
        by_runtime = self.apply(updates)
        for key in self._containers.ids():
            if not self._why_by_runtime(key):
                self._waiting.add(key)
                # The runtime may still write what an earlier process replied.
                self._waiting.check_later(key)
                self.memory_nodes.waiting.check_later(key)
        return by_runtime

    def before_start(self, container: str) -> Awaitable[None] | None:
        """See `PinDelivery.before_start`.

        The container has a cgroup now, with the values of its creation.
        """
        one = self._containers.get(container)
        # One that is left alone may have CPUs of a claim, which others leave meanwhile.
        if one is not None:
            one.note_started()
            # A search for its cgroup that has begun before may not have found it.
            is_sought = container in self._waiting
            if not one.by_runtime and (is_sought or self._record.lacks(container)):
                self._waiting.add(container)
            self._waiting.check_soon(container)  # from then on it is watched
            self._turns.starting(container)
        is_blocked = self._is_blocked(container)
        if not is_blocked and not self._record.is_called:
            return None
        if self.problem or (self._begun and monotonic() - self._begun > _HANGING):
            self.counts.late_starts += is_blocked
            return None
        return self._unblocked(container)

    def taken(self, updates: Mapping[str, ContainerUpdate]) -> None:
        """See `PinDelivery.taken`."""
        self._record.taken(updates)

    # Reports.

    @property
    def counts(self) -> DeliveryCounts:
        """Counts of writes."""
        return self._results.counts

    @property
    def makes_partitions(self) -> bool:
        """See `PinDelivery.makes_partitions`."""
        return self.partitions.is_active

    @property
    def moves_memory(self) -> bool:
        """See `UnitSource.moves_memory`."""
        return bool(self.memory_nodes.waiting.containers)

    @property
    def oldest_seconds(self) -> float:
        """Age of the oldest pin that waits to be written, in seconds; 0 without one."""
        nodes = self.memory_nodes.waiting
        return max(self._waiting.oldest_seconds, nodes.oldest_seconds)

    def pending(self) -> frozenset[str]:
        """See `PinDelivery.pending`."""
        nodes = self.memory_nodes.waiting
        return self._waiting.containers | nodes.containers | self._record.urgent

    def by_runtime(self) -> Mapping[str, str]:
        """Return the reasons of containers whose cgroups are not written."""
        return self._containers.by_runtime()

    def is_by_runtime(self, container: str) -> bool:
        """See `PinDelivery.is_by_runtime`."""
        return bool(self._why_by_runtime(container))

    def status_of(self, container: str) -> PinStatus | None:
        """Return where a container's pin has arrived; None for an unknown one."""
        one = self._containers.get(container)
        if one is None:
            return None
        queues = (self._waiting, self.memory_nodes.waiting, self._record)
        return PinStatus(
            self._containers.wanted(container) or NO_PIN,
            one.in_force,
            one.recorded,
            max(queue.seconds_of(container) for queue in queues),
            one.by_runtime or self.problem,
            one.has_own_weight,
        )

    # The thread that writes.

    async def run(self) -> None:
        """Write what waits, until cancelled; call it again after an exception."""
        why, self.problem = self.problem, ""
        if why:
            self._results.take_back(why)
        end_watch = self.partitions.watch(self._waiting.wake)
        try:
            while True:
                # First those of containers that have ended: others get their CPUs.
                if await self._partition(ends=False):
                    continue
                self._turns.add_uncovered()
                series = next_series(self._waiting, self._containers, self.partitions)
                if series:
                    await self._write(series)
                elif not (
                    await self._partition(ends=True) or self._turns.demand_again()
                ):
                    await self._waiting.wait()
        except Exception as error:
            self.problem = f"{type(error).__name__}: {error}"
            self._results.hand_over(self._waiting.clear(), self.problem)
            raise
        finally:
            end_watch()
            self.overwrites.stop()
            self._begun = 0.0
            self._waiting.be_idle()

    async def _partition(self, *, ends: bool) -> bool:
        self._begun = monotonic()
        is_taken = await self._turns.take(ends=ends)
        self._begun = 0.0
        return is_taken

    async def _write(self, series: Sequence[PinWrite]) -> None:
        begun = monotonic()
        self.overwrites.pause()
        results = await in_thread(
            partial(
                write_pins,
                self._writer,
                self.overwrites.watch,
                series,
                self._begin_one,
            )
        )
        self.counts.seconds = monotonic() - begun
        self._begun = 0.0
        self.overwrites.look()  # before the results: a comparison follows each write
        self._results.note(series, results)
        self._waiting.note_progress()
        self._writer.keep_only(self._containers.ids())
        self.overwrites.keep_only(self._containers.ids())
        self.overwrites.listen()

    def _begin_one(self) -> None:
        self._begun = monotonic()

    # Starts.

    async def _unblocked(self, container: str) -> None:
        try:
            # The answer to a call may have been read together with this request. It
            # is handled first, and writes again what the call has overwritten.
            await asyncio.sleep(0)
            while self._is_blocked(container):
                await self._waiting.progress()
        except asyncio.CancelledError:
            self.counts.late_starts += 1
            raise

    def _is_blocked(self, container: str) -> bool:
        """Return whether a container that starts may share CPUs that it should not."""
        waiting = self._waiting
        if waiting.is_idle:
            return False
        pin = self._containers.wanted(container)
        # Without a pin it may have CPUs of a claim, which others leave. The CPUs that
        # partitions take are not known before they are made.
        if not pin or not pin.cpus or not self.partitions.is_unused:
            return True
        # Of these the pin of an earlier decision is being written.
        if container in waiting or waiting.changed_in_flight:
            return True
        return any(self._may_have(key, pin.cpus) for key in waiting.containers)

    def _may_have(self, container: str, cpus: CpuSet) -> bool:
        """Return whether a container whose pin waits may be on CPUs that it leaves."""
        one, pin = self._containers.get(container), self._containers.wanted(container)
        if not one or not pin:
            return True
        present = one.in_force
        if present is None or not present.cpus:
            return True  # not known
        return bool((present.cpus - pin.cpus) & cpus)

    # Single containers.

    def _nodes_of(self, key: str) -> tuple[CgroupReference, NodeSet] | None:
        cgroup, pin = self._containers.reference(key), self._containers.wanted(key)
        if cgroup is None or not pin or not pin.mems or key not in self._containers:
            return None
        return cgroup, pin.mems

    def _why_by_runtime(self, key: str) -> str:
        return self.problem or self._containers.why_by_runtime(key)

    def _forget_ended(self) -> None:
        if ended := self._containers.forget_ended():
            self._waiting.forget(ended)
            self.memory_nodes.waiting.forget(ended)
