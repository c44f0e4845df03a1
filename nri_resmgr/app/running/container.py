"""The known state of the pin of one running container."""

from __future__ import annotations

from typing import Final

import attrs
import msgspec

from nri_resmgr.policy.events import NO_PIN, Pin

NO_CGROUP: Final = (
    "its cgroup was not found: the runtime may run it in a virtual machine, or this "
    "process does not see the host's cgroups"
)
"""The reason for leaving a container without a cgroup to the runtime."""


@attrs.define(eq=False, repr=False)
class DeliveredContainer:
    """The pins of one container, apart from the decided one.

    Only its methods change it.

    Attributes:
        recorded: In the runtime's own record.
        in_force: As last written to its cgroup, or compared with it; None before, and
            while the runtime may write something else.
        has_started: Whether it was started. Before that it may have no cgroup.
        was_found: Whether it had a cgroup.
        by_runtime: Why its cgroup is not written; empty if it is.
        by_partition: Whether partitions of other containers keep it off CPUs that are
            in its cgroup.
        has_own_weight: Whether its weight was written here. Otherwise it is the one
            that the runtime computes from its shares, and runtimes differ in that.
        is_in_doubt: Whether the runtime has another pin than the decided one since the
            last write began, which it may write at the same time.
        retry: Monotonic time at which its cgroup is tried again.
        is_reported: Whether a failed write was logged, and none succeeded since.
    """

    recorded: Pin = NO_PIN
    in_force: Pin | None = None
    has_started: bool = False
    was_found: bool = False
    by_runtime: str = ""
    by_partition: bool = False
    has_own_weight: bool = False
    is_in_doubt: bool = False
    retry: float = 0.0
    is_reported: bool = False

    def loses(self, wanted: Pin) -> bool:
        """Return whether it has CPUs that it should not have."""
        # Its memory nodes may have been noted before its CPUs.
        present = (self.in_force or NO_PIN).cpus or self.recorded.cpus
        # Without a pin it may use all CPUs.
        return not present.bits or bool(present.bits & ~wanted.cpus.bits)

    def note_started(self) -> None:
        """Note that it is being started: from now on it has a cgroup."""
        self.has_started = True
        if self.by_runtime == NO_CGROUP:
            self.by_runtime = ""

    def note_recorded(self, pin: Pin) -> None:
        """Note a pin that the runtime was given."""
        self.recorded = pin.over(self.recorded)
        if self.by_runtime:
            self.in_force = self.recorded
        # The runtime writes it to the cgroup, at a time that is not known.
        elif self.in_force is not None and pin.since(self.in_force):
            self.in_force = None

    def note_given(self, *, is_old: bool) -> None:
        """Note whether the last pin that the runtime was given is not the decided one.

        It may write it after a write that has begun.
        """
        self.is_in_doubt = is_old

    def begin_write(self) -> None:
        """Note that its cgroup is about to be written, or compared."""
        self.is_in_doubt = False

    def note_in_force(self, cpus: Pin, *, by_partition: bool) -> None:
        """Note the CPUs and shares of its cgroup; memory nodes stay as they are."""
        self.was_found, self.by_runtime = True, ""
        self.by_partition = by_partition
        # At first they are those of its creation.
        self.in_force = cpus.over(self.in_force or self.recorded)
        if self.is_in_doubt:
            self.in_force = None

    def note_weight(self) -> None:
        """Note that its weight was written here."""
        self.has_own_weight = True

    def note_nodes(self, nodes: Pin) -> None:
        """Note the memory nodes of its cgroup.

        As long as its CPUs are not known they say nothing: they are compared again when
        its CPUs are written.
        """
        if self.in_force is not None:
            self.in_force = nodes.over(self.in_force)

    def leave_to_runtime(self, why: str, retry: float = 0.0) -> None:
        """Have the runtime update it, until a monotonic time."""
        self.by_runtime, self.retry = why, retry

    def take_back(self) -> None:
        """Have its cgroup written again."""
        self.by_runtime = ""

    def report(self) -> bool:
        """Return whether it is left to the runtime unreported; it is reported now."""
        is_new, self.is_reported = not self.is_reported, True
        return is_new

    def report_success(self) -> bool:
        """Return whether a failure was reported; it has ended now."""
        was_reported, self.is_reported = self.is_reported, False
        return was_reported


class PinStatus(msgspec.Struct, frozen=True):
    """The places to which the pin of a container has come.

    Attributes:
        decided: By the policy; empty if it is not pinned.
        in_force: In its cgroup; None if that is not known.
        recorded: In the runtime's own record; None if that is not known.
        waiting_seconds: How long the decided pin has been waiting; 0 if it is in force.
        by_runtime: Why its cgroup is not written; empty if it is.
        has_own_weight: See `DeliveredContainer`.
    """

    decided: Pin
    in_force: Pin | None
    recorded: Pin | None
    waiting_seconds: float = 0.0
    by_runtime: str = ""
    has_own_weight: bool = False
