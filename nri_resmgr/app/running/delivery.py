"""The ways by which pins reach running containers: the interface, and the runtime's."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import Protocol

import attrs
import msgspec

from nri_resmgr.app.observers.policy_in_force import UpdatingPolicy
from nri_resmgr.app.running.container import PinStatus
from nri_resmgr.app.running.updates import updates_of
from nri_resmgr.host.cgroups.containers import CgroupReference
from nri_resmgr.policy.decision import PinUpdate
from nri_resmgr.policy.events import NO_PIN, Pin
from nri_resmgr.stub.update import ContainerUpdate
from nri_resmgr.stub.update_sender import UpdateSender


@attrs.define(eq=False, repr=False)
class DeliveryCounts:
    """Counts of writes to cgroups since the start.

    Attributes:
        written: Writes, including those that compared and rewrote.
        rewritten: Values that something else had overwritten since.
        failed: Failed writes.
        late_starts: Starts that did not wait until others had left their CPUs.
        seconds: Duration of the last series of writes.
    """

    written: int = 0
    rewritten: int = 0
    failed: int = 0
    late_starts: int = 0
    seconds: float = 0.0


class PinDelivery(Protocol):
    """Delivers pins to running containers.

    All methods are called in the event loop, between a decision and its reply; those
    of reports at any time.
    """

    @property
    def counts(self) -> DeliveryCounts | None:
        """Counts of writes; None if no cgroups are written."""

    @property
    def problem(self) -> str:
        """The reason for which no cgroup is written at present; empty for none."""

    @property
    def oldest_seconds(self) -> float:
        """Age of the oldest pin that waits to be written, in seconds; 0 without one."""

    def by_runtime(self) -> Mapping[str, str]:
        """Return the reasons of single containers whose cgroups are not written."""

    def is_by_runtime(self, container: str) -> bool:
        """Return whether a container is updated by the runtime, not by its cgroup."""

    def status_of(self, container: str) -> PinStatus | None:
        """Return where a container's pin has arrived; None for an unknown one."""

    def created(self, container: str, pin: Pin) -> None:
        """Note a container whose creation is answered with *pin*."""

    def answered(self, container: str, pin: Pin) -> None:
        """Note that a reply has *pin* for the container that the request is about."""

    def apply(self, updates: Sequence[PinUpdate]) -> Sequence[PinUpdate]:
        """Deliver changed pins; return those that the reply has to carry."""

    def send(self, containers: Iterable[str]) -> None:
        """Deliver the present pins of containers; no request asked for them."""

    def look(self, cgroups: Iterable[CgroupReference]) -> None:
        """Read what an earlier process has left in force, before the loop runs."""

    def in_force(self) -> Mapping[str, Pin]:
        """Return what the kernel has in containers' cgroups, as far as it is known."""

    def synchronize(
        self, updates: Sequence[PinUpdate], recorded: Mapping[str, Pin]
    ) -> Sequence[PinUpdate]:
        """Begin with the containers that the policy knows now; see `apply`.

        Args:
            updates: Changed pins.
            recorded: What the runtime has reported of each container.
        """

    def taken(self, updates: Mapping[str, ContainerUpdate]) -> None:
        """Note updates that the runtime was given, by call or in a reply."""

    def before_start(self, container: str) -> Awaitable[None] | None:
        """Return what the start of a container has to wait for; None for nothing."""

    def pending(self) -> frozenset[str]:
        """Return the containers whose pins are not in force yet."""

    @property
    def makes_partitions(self) -> bool:
        """True if containers with exclusive CPUs get partitions of the kernel."""


class PendingPins(msgspec.Struct, frozen=True):
    """Containers whose decided values are not in force yet.

    Attributes:
        count: Their number.
        oldest_seconds: Age of the oldest of these decisions; 0 if there is none.
    """

    count: int
    oldest_seconds: float


def pending_pins(delivery: PinDelivery, updates: UpdateSender) -> PendingPins:
    """Count what is not in force yet, by a cgroup or by the runtime."""
    pending = updates.pending
    return PendingPins(
        len(delivery.pending() | pending.urgent()),
        max(delivery.oldest_seconds, pending.oldest_seconds),
    )


class ByRuntime:
    """Has the runtime update containers: in the reply, or by a call where none asked.

    Args:
        subject: The policy.
        problem: Why cgroups are not written, a sentence.
    """

    counts = None
    oldest_seconds = 0.0

    def __init__(self, subject: UpdatingPolicy, problem: str = "") -> None:
        self._subject = subject
        self.problem = problem

    def created(self, container: str, pin: Pin) -> None:
        """Do nothing: the runtime knows."""

    def answered(self, container: str, pin: Pin) -> None:
        """Do nothing: the runtime knows."""

    def apply(self, updates: Sequence[PinUpdate]) -> Sequence[PinUpdate]:
        """Return all: the reply carries them."""
        return updates

    def send(self, containers: Iterable[str]) -> None:
        """See `PinDelivery.send`."""
        self._subject.updates.send(self.update_of, containers)

    def look(self, cgroups: Iterable[CgroupReference]) -> None:
        """Do nothing: the runtime's record is what it has written."""

    def in_force(self) -> Mapping[str, Pin]:
        """Return none: see `look`."""
        return {}

    def synchronize(
        self,
        updates: Sequence[PinUpdate],
        recorded: Mapping[str, Pin],  # noqa: ARG002 - the interface
    ) -> Sequence[PinUpdate]:
        """Return all, which are the pins of all containers: nothing waits any more."""
        self._subject.updates.pending.drop(self.update_of)
        return updates

    def taken(self, updates: Mapping[str, ContainerUpdate]) -> None:
        """Do nothing: they are what the runtime knows."""

    def before_start(self, container: str) -> Awaitable[None] | None:  # noqa: ARG002 - the interface
        """Return None: the reply to the creation had all updates."""
        return None

    def pending(self) -> frozenset[str]:
        """See `PinDelivery.pending`."""
        return self._subject.updates.pending.containers(self.update_of)

    def by_runtime(self) -> Mapping[str, str]:
        """Return none: `problem` is the reason of all containers."""
        return {}

    def is_by_runtime(self, container: str) -> bool:  # noqa: ARG002 - the interface
        """Return True."""
        return True

    def status_of(self, container: str) -> PinStatus | None:
        """See `PinDelivery.status_of`.

        What is in force is not known: see `nri_resmgr.app.verification`.
        """
        entry = self._subject.state.ledger.entries.get(container)
        if entry is None:
            return None
        waits = self._subject.updates.pending.seconds_of(container)
        return PinStatus(
            self._subject.wanted(container) or NO_PIN,
            in_force=None,
            # A pending update counts as sent there.
            recorded=None if waits else entry.last_sent,
            waiting_seconds=waits,
            by_runtime=self.problem,
        )

    @property
    def makes_partitions(self) -> bool:
        """Return False: their cgroups are not written."""
        return False

    def update_of(self, container: str) -> ContainerUpdate | None:
        """Make an update with the pin that a container should have now."""
        pin = self._subject.wanted(container)
        return updates_of([PinUpdate(container, pin)])[0] if pin else None
