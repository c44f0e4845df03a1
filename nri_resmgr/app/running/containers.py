"""The containers whose pins are delivered by their cgroups."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from time import monotonic
from typing import Final

from nri_resmgr.app.observers.policy_in_force import UpdatingPolicy
from nri_resmgr.app.running.container import DeliveredContainer
from nri_resmgr.host.cgroups.containers import CgroupReference
from nri_resmgr.policy.events import NO_PIN, Pin
from nri_resmgr.policy.ledger import Entry

_NO_PATH: Final = "the runtime reports no cgroup of it"


class DeliveredContainers:
    """The known state of each container, beside that of the policy.

    Args:
        subject: The policy.
        retry_after: Seconds after a failed write until a container's cgroup is tried
            again.
    """

    def __init__(self, subject: UpdatingPolicy, retry_after: float) -> None:
        self._subject = subject
        self._retry_after = retry_after
        self._known: dict[str, DeliveredContainer] = {}

    def __contains__(self, container: str) -> bool:
        return container in self._known

    def __getitem__(self, container: str) -> DeliveredContainer:
        return self._known[container]

    def get(self, container: str) -> DeliveredContainer | None:
        """Return what is known of a container; None for an unknown one."""
        return self._known.get(container)

    def items(self) -> Collection[tuple[str, DeliveredContainer]]:
        """Return all containers with their ids."""
        return self._known.items()

    def ids(self) -> Collection[str]:
        """Return the ids of all containers."""
        return self._known.keys()

    def entries(self) -> Mapping[str, Entry]:
        """Return all containers of the policy."""
        return self._subject.state.ledger.entries

    def wanted(self, container: str) -> Pin | None:
        """Return the pin that a container should have now; None if it has ended."""
        return self._subject.wanted(container)

    def reference(self, container: str) -> CgroupReference | None:
        """Return the cgroup of a container; None if it has ended."""
        entry = self.entries().get(container)
        return reference_of(entry) if entry else None

    def title_of(self, container: str) -> str:
        """Return ``namespace/pod/container``; empty if it has ended."""
        entry = self.entries().get(container)
        return entry.spec.title if entry else ""

    def has_started(self, container: str) -> bool:
        """Return whether a container was started, so that it may have a cgroup."""
        one = self._known.get(container)
        return one is not None and one.has_started

    def in_force(self) -> Mapping[str, Pin]:
        """Return what is in the cgroups of containers, where that is known."""
        return {
            key: one.in_force
            for key, one in self._known.items()
            if one.in_force is not None and not one.by_runtime
        }

    # Which there are.

    def add(self, container: str, pin: Pin) -> None:
        """Add a container that is being created with a pin."""
        self._known[container] = DeliveredContainer(pin)

    def add_running(self, container: str) -> None:
        """Add a container that runs, unless it is known."""
        self._known.setdefault(container, DeliveredContainer(has_started=True))

    def begin_again(self, recorded: Mapping[str, Pin]) -> None:
        """Begin with the containers that the policy knows now, as after a start.

        Args:
            recorded: What the runtime has reported of each.
        """
        # The runtime lists those that have not started as well; without a cgroup they
        # are updated by the runtime, which is right for them, too.
        self._known = {
            key: DeliveredContainer(recorded.get(key, NO_PIN), has_started=True)
            for key in self.entries()
        }

    def forget_ended(self) -> Collection[str]:
        """Forget containers that the policy does not know any more; return them."""
        entries = self.entries()
        if len(self._known) <= len(entries):
            return ()
        ended = self._known.keys() - entries.keys()
        for key in ended:
            del self._known[key]
        return ended

    # Which way they get their pins.

    def why_by_runtime(self, container: str) -> str:
        """Return why the runtime updates a container; empty if its cgroup is written.

        Some time after a failure it is written again.
        """
        entry, one = self.entries().get(container), self._known.get(container)
        if entry is None or one is None:
            return ""
        if not (entry.spec.cgroup or entry.spec.pid):
            one.leave_to_runtime(_NO_PATH)
        elif one.by_runtime and monotonic() >= one.retry:
            one.take_back()
        return one.by_runtime

    def by_runtime(self) -> Mapping[str, str]:
        """Return the reasons of containers whose cgroups are not written."""
        return {
            key: one.by_runtime for key, one in self._known.items() if one.by_runtime
        }

    def leave_to_runtime(self, container: str, why: str) -> None:
        """Have the runtime update a container for a time."""
        self._known[container].leave_to_runtime(why, monotonic() + self._retry_after)


def reference_of(entry: Entry) -> CgroupReference:
    """Return the cgroup of a container of the policy."""
    spec = entry.spec
    return CgroupReference(spec.id, spec.cgroup, spec.pid)
