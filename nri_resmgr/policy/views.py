"""Views of a policy's state: pools, published resources, host settings, rankings."""

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
    """The capacity and the use of one pool, balloon, or other set of CPUs.

    Each available CPU in `cpus` is in exactly one of `shared`, `isolated`,
    `exclusive` and `reserved`.

    Attributes:
        kind: Its kind: ``balloon`` or ``idle``; ``system``, ``package``, ``die``,
            ``numa`` or ``l3cache``; ``shared``, ``exclusive`` or ``reserved``.
        name: Unique in the policy, and stable over restarts.
        cpus: All of its CPUs.
        within: The name of the pool that it is a part of, if any.
        shared: CPUs that its containers, or those of its parts, share.
        isolated: Free CPUs that ``isolcpus=`` names.
        exclusive: Exclusive CPUs of containers.
        reserved: CPUs for the node's system containers.
        idle: Idle CPUs that its containers may use besides, for now.
        capacity: Total thousandths of a CPU that can be granted.
        granted: Thousandths granted to its containers and those of its parts.
        free: Thousandths that can be granted to one more container; for a balloon,
            after it was inflated.
        mems: Its memory nodes.
        memory: Their capacity; 0 if the policy does not account for memory.
        memory_granted: Granted to containers that are confined to these nodes.
        containers: Ids of containers in it, without those of its parts.
        labels: Further labels, by kind.
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
        scores: Its scores by criterion, the most important first; more is better.
    """

    pool: str
    decided: str
    scores: tuple[tuple[str, int], ...]


class PolicyViews(Protocol[_StateT_contra]):
    """Shows a state to containers, to the host's settings and to operators.

    `nri_resmgr.policy.base.PolicyBase` has a default for each.
    """

    def publishes(self, state: _StateT_contra, container: str) -> bool:
        """Return whether a container's resources are published to it.

        Returns:
            False also for an unknown container.
        """

    def resources_of(self, state: _StateT_contra, container: str) -> Resources | None:
        """Return the resources that are published to a container.

        Returns:
            None if nothing is published.
        """

    def host_use(self, state: _StateT_contra) -> HostUse:
        """Return what host settings depend on: CPU classes, interrupts, isolation."""

    def classes_of(self, state: _StateT_contra, container: str) -> GivenClasses:
        """Return the classes that a container's place gives it."""

    def pools(self, state: _StateT_contra) -> tuple[PoolUse, ...]:
        """Return the capacity and the use of every pool.

        Containers without pinning belong to no pool.

        Returns:
            In the same order for the same state; parts come after their whole.
        """

    def candidates(
        self, state: _StateT_contra, container: str
    ) -> tuple[Candidate, ...]:
        """Rank the pools that could take a container now, best first.

        Returns:
            Empty if pools are not ranked.
        """


class ViewedPolicy(Policy[StateT], PolicyViews[StateT], Protocol[StateT]):
    """A policy that decides and shows: the one that the daemon runs."""
