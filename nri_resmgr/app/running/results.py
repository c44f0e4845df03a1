"""Notes the results of writes to containers' cgroups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from nri_resmgr.app.running.container import NO_CGROUP, DeliveredContainer
from nri_resmgr.app.running.containers import DeliveredContainers
from nri_resmgr.app.running.delivery import DeliveryCounts
from nri_resmgr.app.running.memory_nodes import NodeWrite
from nri_resmgr.app.running.overwrites import Overwrites
from nri_resmgr.app.running.partition_turns import PartitionTurns
from nri_resmgr.app.running.record import RuntimeRecord
from nri_resmgr.app.running.series import Enforcement, PinWrite, WrittenPin
from nri_resmgr.app.running.units import UnitProperties
from nri_resmgr.app.running.waiting import WaitingPins
from nri_resmgr.host.cgroups.writer import WriteOutcome, WriteResult
from nri_resmgr.log import Logger
from nri_resmgr.policy.events import NO_PIN, Pin

log = Logger(__name__)


@attrs.define(eq=False, repr=False)
class WriteResults:
    """Notes results: what is in force, compared later, or left to the runtime.

    Attributes:
        containers: Those whose cgroups are written.
        record: Follows what is in force.
        turns: A write may make a partition possible.
        overwrites: Knows how often values may be written again.
        waiting: Pins that wait to be written.
        waiting_nodes: Memory nodes that wait to be written.
        units: Get what is in force, too; None for none.
        counts: Counts of writes.
    """

    containers: DeliveredContainers
    record: RuntimeRecord
    turns: PartitionTurns
    overwrites: Overwrites
    waiting: WaitingPins
    waiting_nodes: WaitingPins
    units: UnitProperties | None
    counts: DeliveryCounts = attrs.field(factory=DeliveryCounts, init=False)

    def note(self, series: Sequence[PinWrite], results: Sequence[WrittenPin]) -> None:
        """Note the results of writing CPUs and weights."""
        in_force = [
            write.cgroup.id
            for write, written in zip(series, results, strict=True)
            if self._note(write, written)
        ]
        # All at once: each call looks at all updates that wait.
        self.record.follow(key for key in in_force if self.record.lacks(key))

    def _note(self, write: PinWrite, written: WrittenPin) -> bool:
        """Note a result; return whether the pin is in force."""
        key, result = write.cgroup.id, written.result
        one = self.containers.get(key)
        if one is not None and written.by is Enforcement.NOTHING_YET:
            self.waiting.hold(key)
            return False
        self.waiting.landed(key)
        if one is None:
            return False  # it has ended meanwhile
        match result.outcome:
            case WriteOutcome.WRITTEN | WriteOutcome.UNCHANGED:
                self._note_in_force(write, written)
                return True
            case WriteOutcome.ABSENT if _is_missing(write, one):
                self._leave_to_runtime(key, NO_CGROUP)
            case WriteOutcome.ABSENT:
                pass  # it has ended, or its start will write it
            case WriteOutcome.FAILED:
                self.counts.failed += 1
                self._leave_to_runtime(key, result.why)
        return False

    def note_nodes(self, write: NodeWrite, result: WriteResult) -> None:
        """Note the result of writing memory nodes."""
        container, mems = write.cgroup.id, write.mems
        if (one := self.containers.get(container)) is None:
            return  # it has ended meanwhile
        match result.outcome:
            case WriteOutcome.WRITTEN | WriteOutcome.UNCHANGED:
                before = one.in_force or NO_PIN
                one.note_nodes(Pin(mems=mems))
                is_written = result.outcome is WriteOutcome.WRITTEN
                self.counts.written += is_written
                if is_written and write.is_check:
                    self.counts.rewritten += 1
                    self.overwrites.note_rewritten(container)
                if is_written or before.mems != mems:
                    self._set_unit(container)
            case WriteOutcome.FAILED:
                self.counts.failed += 1
                self._leave_to_runtime(container, result.why)
            case WriteOutcome.ABSENT:
                pass  # it has ended

    def hand_over(self, containers: Iterable[str], why: str) -> None:
        """Have the runtime update containers: no cgroup can be written now."""
        known = [key for key in containers if key in self.containers]
        for key in known:
            self.containers[key].leave_to_runtime(why)
        self.record.send(known)

    def take_back(self, why: str) -> None:
        """Write again what was handed over for this reason, and all others.

        An update of an older runtime waits for its next request, which may never come.
        """
        for key, one in self.containers.items():
            if one.by_runtime == why:
                one.take_back()
            self.waiting.add(key)

    def _note_in_force(self, write: PinWrite, written: WrittenPin) -> None:
        key = write.cgroup.id
        one = self.containers[key]
        if one.report_success():
            title = self.containers.title_of(key)
            log.info("pin.by-cgroup", container=key, title=title)
        nodes = (one.in_force or one.recorded).mems
        one.note_in_force(
            Pin(cpus=write.pin.cpus, shares=write.pin.shares),
            by_partition=written.by is Enforcement.PARTITION,
        )
        # The nodes follow: see `memory_nodes`.
        if write.pin.mems != nodes:
            self.waiting_nodes.add(key)
        elif write.is_check and not self.overwrites.is_contested(key):
            self.waiting_nodes.check_later(key)
        if write.has_started:
            self.overwrites.watch_again(key)
        is_written = written.result.outcome is WriteOutcome.WRITTEN
        if is_written:
            self._note_written(write, written.result)
        # Of a value that was there an earlier process may not have set the unit.
        if is_written or (not write.is_check and self.record.lacks(key)):
            self._set_unit(key)

    def _note_written(self, write: PinWrite, result: WriteResult) -> None:
        key = write.cgroup.id
        self.counts.written += 1
        self.turns.note_written()
        if result.before is not None and result.before.shares != write.change.shares:
            self.containers[key].note_weight()
        if write.is_check:
            self.counts.rewritten += 1
            self.overwrites.note_rewritten(key)
            if write.is_unexpected:
                self.overwrites.on_found(write, result)
        else:
            self.overwrites.note_decided(key)
        self.waiting.check_later(key, self.overwrites.pause_of(key))

    def _set_unit(self, key: str) -> None:
        if self.units is not None and (cgroup := self.containers.reference(key)):
            self.units.queue(cgroup)

    def _leave_to_runtime(self, key: str, why: str) -> None:
        if self.containers[key].report():  # once, not with each attempt
            title = self.containers.title_of(key)
            log.warning("pin.by-runtime", container=key, title=title, why=why)
        self.containers.leave_to_runtime(key, why)
        self.waiting.drop_check(key)
        self.record.send([key])


def _is_missing(write: PinWrite, one: DeliveredContainer) -> bool:
    # A comparison has nothing to write that the runtime would have to.
    return write.has_started and not one.was_found and not write.is_check
