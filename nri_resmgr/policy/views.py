"""What a policy shows of its state, and the policy that the daemon runs."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Protocol, TypeVar

import msgspec

from nri_resmgr.policy.decision import Policy, Resources
from nri_resmgr.policy.host_use import GivenClasses, HostUse
from nri_resmgr.values import NO_CPUS, NO_NODES, Bytes, CpuSet, MilliCpus, NodeSet

_NO_LABELS: Final[Mapping[str, str]] = MappingProxyType({})


class PoolUse(msgspec.Struct, frozen=True, kw_only=True):
    """One pool, balloon, or other part of the CPUs at one moment.

    Of the available CPUs in `cpus`, each is in just one of `shared`, `isolated`,
    `exclusive` and `reserved`.

    Attributes:
        kind: What it is: ``balloon`` or ``idle``; ``system``, ``package``, ``die``,
            ``numa`` or ``l3cache``; ``shared``, ``exclusive`` or ``reserved``.
        name: Unlike all others of the policy, the same after a restart.
        cpus: What belongs to it.
        within: The name of what it is a part of; empty for what is on its own.
        shared: CPUs that its containers, or those of its parts, share.
        isolated: CPUs that ``isolcpus=`` names and nobody has.
        exclusive: CPUs that one container has to itself.
        reserved: CPUs for the node's own containers.
        idle: CPUs of nobody that its containers use besides, for now.
        capacity: Thousandths of a CPU that can be granted in it in all.
        granted: Thousandths that are, to its containers and those of its parts.
        free: Thousandths that one more container could be granted at most; for a
            balloon, after it grew.
        mems: Its memory nodes.
        memory: What these hold; 0 where the policy does not count memory.
        memory_granted: What is promised to containers that may be nowhere else.
        containers: Ids of who is in it, and in no part of it.
        labels: What else there is to say, in words of its kind.
    """

    kind: str
    name: str
    cpus: CpuSet
    within: str = ""
    shared: CpuSet = NO_CPUS
    isolated: CpuSet = NO_CPUS
    exclusive: CpuSet = NO_CPUS
    reserved: CpuSet = NO_CPUS
    idle: CpuSet = NO_CPUS
    capacity: MilliCpus = MilliCpus(0)
    granted: MilliCpus = MilliCpus(0)
    free: MilliCpus = MilliCpus(0)
    mems: NodeSet = NO_NODES
    memory: Bytes = Bytes(0)
    memory_granted: Bytes = Bytes(0)
    containers: tuple[str, ...] = ()
    labels: Mapping[str, str] = _NO_LABELS


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
