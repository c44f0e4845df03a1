"""Running containers with their classes, for reconcilers and metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import msgspec

from nri_resmgr.classes.choice import ClassChoice
from nri_resmgr.config import PolicyConfig
from nri_resmgr.host.container_cgroups import CgroupReference
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.ledger import KnowsContainers
from nri_resmgr.policy.views import ViewedPolicy


class ActivePolicy(Protocol):
    """Configuration, policy and state in force; a `ResourcePolicy` is one."""

    @property
    def config(self) -> PolicyConfig:
        """The configuration in force."""

    @property
    def policy(self) -> ViewedPolicy[KnowsContainers]:
        """The policy in force."""

    @property
    def state(self) -> KnowsContainers:
        """The containers, and what they have been granted."""


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
    subject: ActivePolicy, choice_of: Callable[[ContainerSpec], ClassChoice | None]
) -> Iterator[Member]:
    """Yield all containers, each with the class that *choice_of* returns."""
    for entry in subject.state.ledger.entries.values():
        spec = entry.spec
        reference = CgroupReference(spec.id, spec.cgroup, spec.pid)
        yield Member(reference, spec.title, spec.pod_uid, choice_of(spec))
