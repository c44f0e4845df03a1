"""The runtime's own record of containers' pins, and how it follows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from nri_resmgr.app.observers.policy_in_force import UpdatingPolicy
from nri_resmgr.app.running.containers import DeliveredContainers
from nri_resmgr.app.running.partitions import Partitions
from nri_resmgr.app.running.updates import pin_in, updates_of
from nri_resmgr.app.running.waiting import WaitingPins
from nri_resmgr.policy.decision import PinUpdate
from nri_resmgr.policy.events import NO_PIN, Pin
from nri_resmgr.stub.update import ContainerUpdate


class RuntimeRecord:
    """Notes what the runtime was given, and has it updated with what it lacks.

    What it is given it writes to the container's cgroup, at a time that is not known:
    so the cgroup is compared later.

    Args:
        subject: The policy, whose update sender is used.
        containers: Those whose cgroups are written.
        waiting: Pins that wait to be written there.
        partitions: Those of the kernel.
    """

    def __init__(
        self,
        subject: UpdatingPolicy,
        containers: DeliveredContainers,
        waiting: WaitingPins,
        partitions: Partitions,
    ) -> None:
        self._subject = subject
        self._containers = containers
        self._waiting = waiting
        self._partitions = partitions

    # What it has.

    def note(self, container: str, pin: Pin) -> None:
        """Note a pin that the runtime was given."""
        if (one := self._containers.get(container)) is not None:
            one.note_recorded(pin)
            if not one.by_runtime:
                one.note_given(is_old=bool(self.lacks(container)))
                self._waiting.check_later(container)

    def taken(self, updates: Mapping[str, ContainerUpdate]) -> None:
        """Note updates that the runtime was given, by call or in a reply."""
        for key, update in updates.items():
            linux = update.linux
            if pin := pin_in(linux.resources if linux else None):
                self.note(key, pin)
                # The runtime writes what it is given, but there is a later decision.
                if self.lacks(key) and not self._containers[key].by_runtime:
                    self._waiting.add(key)

    def lacks(self, container: str) -> Pin:
        """Return the part of a container's pin that the record lacks."""
        one, wanted = (
            self._containers.get(container),
            self._containers.wanted(container),
        )
        if not one or not wanted:
            return NO_PIN
        change = wanted.since(one.recorded)
        if change.cpus and one.by_partition:
            # Were the runtime to write its record, partitions would hold all the same.
            in_force = one.recorded.cpus - self._partitions.kept_off()
            if in_force == wanted.cpus:
                return Pin(mems=change.mems, shares=change.shares)
        return change

    # What it gets.

    def send(self, containers: Collection[str]) -> None:
        """Have the runtime update containers now: their cgroups are not written."""
        if containers:
            self._subject.updates.send(self._update_of, containers)

    def follow(self, containers: Iterable[str]) -> None:
        """Have the record get later what is in force in containers' cgroups."""
        self._subject.updates.record(self._record_of, containers)

    def drop(self) -> None:
        """Drop all updates that wait."""
        pending = self._subject.updates.pending
        pending.drop(self._update_of)
        pending.drop(self._record_of)

    @property
    def urgent(self) -> frozenset[str]:
        """The containers that the runtime is still to update, as nothing else does."""
        return self._subject.updates.pending.containers(self._update_of)

    @property
    def is_called(self) -> bool:
        """True if a call with updates is not answered yet."""
        return bool(self._subject.updates.pending.in_flight)

    def seconds_of(self, container: str) -> float:
        """Return the age of a container's urgent update in seconds; 0 without one."""
        return self._subject.updates.pending.seconds_of(container)

    def _update_of(self, container: str) -> ContainerUpdate | None:
        pin = self._containers.wanted(container)
        return updates_of([PinUpdate(container, pin)])[0] if pin else None

    def _record_of(self, container: str) -> ContainerUpdate | None:
        change = self.lacks(container)
        return updates_of([PinUpdate(container, change)])[0] if change else None
