"""Containers as those see them who give classes to what runs already."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from nri_resmgr.app.observers.policy_in_force import PolicyInForce
from nri_resmgr.classes.choice import Choice
from nri_resmgr.host.cgroups.containers import CgroupReference
from nri_resmgr.policy.events import ContainerSpec


class Member(msgspec.Struct, frozen=True):
    """A container that is here.

    Attributes:
        whom: Where its cgroup is.
        title: For people.
        pod: Kubernetes' id of its pod.
        choice: Its class; None for none.
    """

    whom: CgroupReference
    title: str
    pod: str
    choice: Choice | None

    @property
    def name(self) -> str:
        """The name of its class; empty for none."""
        return self.choice.name if self.choice else ""


def members_of(
    subject: PolicyInForce, choice_of: Callable[[ContainerSpec], Choice | None]
) -> Iterator[Member]:
    """Yield all containers, with the classes that they are to have."""
    for entry in subject.state.ledger.entries.values():
        spec = entry.spec
        whom = CgroupReference(spec.id, spec.cgroup, spec.pid)
        yield Member(whom, spec.title, spec.pod_uid, choice_of(spec))
