"""Running containers with their classes, for reconcilers and metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from nri_resmgr.app.observers.policy_in_force import PolicyInForce
from nri_resmgr.classes.choice import ClassChoice, Origin
from nri_resmgr.host.cgroups.containers import CgroupReference
from nri_resmgr.policy.events import ContainerSpec


class Member(msgspec.Struct, frozen=True):
    """A running container with its class.

    Attributes:
        pod: UID of its pod in Kubernetes.
        is_monitored: Whether its pod has a monitoring group of RDT.
    """

    reference: CgroupReference
    title: str
    pod: str
    choice: ClassChoice | None
    is_monitored: bool = False

    @property
    def name(self) -> str:
        """Name of its class; empty for none."""
        return self.choice.name if self.choice else ""

    @property
    def is_adjusted(self) -> bool:
        """Whether an adjustment of the cluster names its class."""
        return self.choice is not None and self.choice.origin is Origin.ADJUSTMENT


def members_of(
    subject: PolicyInForce,
    choice_of: Callable[[ContainerSpec], ClassChoice | None],
    is_monitored: Callable[[ContainerSpec], bool] = lambda _: False,
) -> Iterator[Member]:
    """Yield all containers, each with the class that *choice_of* returns."""
    for entry in subject.state.ledger.entries.values():
        spec = entry.spec
        reference = CgroupReference(spec.id, spec.cgroup, spec.pid)
        choice = choice_of(spec)
        yield Member(reference, spec.title, spec.pod_uid, choice, is_monitored(spec))
