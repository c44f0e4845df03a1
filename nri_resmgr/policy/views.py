"""What a policy shows of its state, and the policy that the daemon runs."""

from __future__ import annotations

from typing import Protocol, TypeVar

import msgspec

from nri_resmgr.policy.capacity import PoolUse
from nri_resmgr.policy.decision import Policy, Resources
from nri_resmgr.policy.host_use import GivenClasses, HostUse

StateT = TypeVar("StateT")
_StateT_contra = TypeVar("_StateT_contra", contravariant=True)


class Candidate(msgspec.Struct, frozen=True):
    """A pool with the capacity for a container.

    Attributes:
        pool: Its name.
        decided: The criterion that ranks it before the pools after it.
        merits: Its scores by criterion, the weightiest first; more is better.
    """

    pool: str
    decided: str
    merits: tuple[tuple[str, int], ...]


class PolicyViews(Protocol[_StateT_contra]):
    """Shows a state to containers, to the host's settings and to operators.

    `nri_resmgr.policy.base.PolicyBase` has a default for each.
    """

    def publishes(self, state: _StateT_contra, container: str) -> bool:
        """Say whether a container's resources are published to it.

        Returns:
            False also for a container that is not here.
        """

    def resources_of(self, state: _StateT_contra, container: str) -> Resources | None:
        """Return the resources that are published to a container.

        Returns:
            None where nothing is published.
        """

    def host_use(self, state: _StateT_contra) -> HostUse:
        """Return what the host's own settings follow: classes of CPUs, interrupts."""

    def classes_of(self, state: _StateT_contra, container: str) -> GivenClasses:
        """Return the classes that a container has by where it is."""

    def pools(self, state: _StateT_contra) -> tuple[PoolUse, ...]:
        """Return what every pool has, and how much of it is granted.

        A container that the policy leaves alone is in no pool.

        Returns:
            In the same order for the same state; parts come after their whole.
        """

    def candidates(
        self, state: _StateT_contra, container: str
    ) -> tuple[Candidate, ...]:
        """Rank the pools that could take a container if it came now, best first.

        Returns:
            Nothing where pools are not ranked.
        """


class ViewedPolicy(Policy[StateT], PolicyViews[StateT], Protocol[StateT]):
    """A policy that decides and shows: the one that the daemon runs."""
