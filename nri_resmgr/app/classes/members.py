"""Running containers with their classes, for reconcilers and metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from nri_resmgr.app.observers.policy_in_force import PolicyInForce
from nri_resmgr.classes.choice import ClassChoice
from nri_resmgr.host.cgroups.containers import CgroupReference
from nri_resmgr.policy.events import ContainerSpec


class Member(msgspec.Struct, frozen=True):
    """A running container with its class.

    Attributes:
        reference: Its cgroup.
        title: Its name, for messages.
        pod: UID of its pod in Kubernetes.
        choice: Its class; None for none.
    """

    reference: CgroupReference
    title: str
    pod: str
    choice: ClassChoice | None

    @property
    def name(self) -> str:
        """Name of its class; empty for none."""
        return self.choice.name if self.choice else ""


def members_of(
    subject: PolicyInForce, choice_of: Callable[[ContainerSpec], ClassChoice | None]
) -> Iterator[Member]:
    """Yield all containers, each with the class that *choice_of* returns."""
    for entry in subject.state.ledger.entries.values():
        spec = entry.spec
        reference = CgroupReference(spec.id, spec.cgroup, spec.pid)
        yield Member(reference, spec.title, spec.pod_uid, choice_of(spec))
