"""Containers as those see them who give classes to what runs already."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import msgspec

from nri_resmgr.classes.choice import ClassChoice
from nri_resmgr.config import PolicyConfig
from nri_resmgr.host.container_cgroups import CgroupReference
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.views import ViewedPolicy


class ActivePolicy(Protocol):
    """Whose containers they are; a `ResourcePolicy` is one."""

    @property
    def config(self) -> PolicyConfig:
        """The configuration in force."""

    @property
    def policy(self) -> ViewedPolicy[Any]:
        """The policy in force."""

    @property
    def state(self) -> Any:
        """What it knows and has granted."""


class Member(msgspec.Struct, frozen=True):
    """A container that is here.

    Attributes:
        reference: Where its cgroup is.
        title: For people.
        pod: Kubernetes' id of its pod.
        choice: Its class; None for none.
    """

    reference: CgroupReference
    title: str
    pod: str
    choice: ClassChoice | None

    @property
    def name(self) -> str:
        """The name of its class; empty for none."""
        return self.choice.name if self.choice else ""


def members_of(
    subject: ActivePolicy, choice_of: Callable[[ContainerSpec], ClassChoice | None]
) -> Iterator[Member]:
    """Yield all containers, with the classes that they are to have."""
    for entry in subject.state.ledger.entries.values():
        spec = entry.spec
        reference = CgroupReference(spec.id, spec.cgroup, spec.pid)
        yield Member(reference, spec.title, spec.pod_uid, choice_of(spec))
