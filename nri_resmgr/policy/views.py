"""Views of a policy's state: pools, published resources, host settings, rankings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, Protocol, TypeVar

import msgspec

from nri_resmgr.policy.claims import ClaimDevice, PreparedClaim
from nri_resmgr.policy.decision import Policy, Resources
from nri_resmgr.policy.events import ContainerSpec, Pin
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
        within: The name of the pool that it is a part of, if any.
        shared: CPUs that its containers, or those of its parts, share.
        isolated: Free CPUs that ``isolcpus=`` names.
        reserved: CPUs for the node's system containers.
        idle: Idle CPUs that its containers may use besides, for now.
        capacity: Total thousandths of a CPU that can be granted.
        granted: Thousandths granted to its containers and those of its parts.
        free: Thousandths that can be granted to one more container; for a balloon,
            after it was inflated.
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


class CpuRoom(msgspec.Struct, frozen=True):
    """What one more container can be granted of some CPUs.

    Attributes:
        allocatable: Thousandths of a CPU, on a node without containers.
        available: Thousandths, now. The whole CPUs among these can be exclusive, where
            the policy grants any.
    """

    allocatable: MilliCpus = MilliCpus(0)
    available: MilliCpus = MilliCpus(0)

    @classmethod
    def of(cls, allocatable: int, available: int) -> CpuRoom:
        """Return the room; less than nothing is nothing."""
        return cls(MilliCpus(max(allocatable, 0)), MilliCpus(max(available, 0)))


StateT = TypeVar("StateT")


class Candidate(msgspec.Struct, frozen=True):
    """A pool with the capacity for a container.

    *decided* is the criterion that ranks it before the pools after it. Its scores are
    by criterion, the most important first; more is better.
    """

    pool: str
    decided: str
    scores: tuple[tuple[str, int], ...]


class Reservation(msgspec.Struct, frozen=True):
    """A place that is reserved for a container of a pod until it is created.

    Attributes:
        spec: The expected container.
        pool: The name of the pool that grants its CPUs.
        cpus: Its exclusive CPUs; of shared ones, its request is reserved.
        mems: The memory nodes that its memory is reserved on, if any.
        pin: The pin that it would have now; None where only some of it is reserved.
    """

    spec: ContainerSpec
    pool: str
    cpus: CpuSet = NO_CPUS
    mems: NodeSet = NO_NODES
    pin: Pin | None = None


class ViewedPolicy(Policy[StateT], Protocol[StateT]):
    """A policy that also shows a state to containers, the host and operators.

    It is what the daemon runs; `nri_resmgr.policy.base.PolicyBase` has a default for
    each view.
    """

    def publishes(self, state: StateT, container: str) -> bool:
        """Return whether a known container's resources are published to it."""

    def resources_of(self, state: StateT, container: str) -> Resources | None:
        """Return the resources that are published to a container, if any."""

    def republishes(self, before: StateT, after: StateT) -> Iterable[str]:
        """Return containers whose published resources may differ with equal pins.

        Such as one that shared its CPUs with another which is gone. Containers with
        updates, and those of a decision's reasons, need not be among these.
        """

    def host_use(self, state: StateT) -> HostUse:
        """Return what host settings depend on: CPU classes, interrupts, isolation."""

    def exclusive_cpus(self, state: StateT) -> Mapping[str, CpuSet]:
        """Return the CPUs of containers that share none of theirs, by id.

        They are those of their pins. A container that is to run where others may come
        at any time, such as in a default balloon, is not among these.
        """

    def exclusive_parts(self, state: StateT) -> Mapping[str, CpuSet]:
        """Return the CPUs that only one container has, by its id.

        It may share others besides. No configuration takes them away unnoticed.
        """

    def fixed_places(self, state: StateT) -> Mapping[str, str]:
        """Return the places that containers know from their creation, by id, as text.

        No configuration of the same kind changes them unnoticed.
        """

    def environment_of(self, state: StateT, container: str) -> Mapping[str, str]:
        """Return the environment variables that a new container gets besides its own.

        Only called where `sets_environment` says that there are any.
        """

    def classes_of(self, state: StateT, container: str) -> GivenClasses:
        """Return the classes that a container's place gives it."""

    def pools(self, state: StateT) -> tuple[PoolUse, ...]:
        """Return the capacity and the use of every pool; parts come after their whole.

        Containers without pinning belong to no pool. Equal states give the same order.
        """

    def cpu_room(self, state: StateT, cpus: CpuSet) -> CpuRoom:
        """Return what one more container can be granted of some CPUs.

        Such as those of a NUMA node. Reserved CPUs are not for it.
        """

    @property
    def keeps_to_room(self) -> bool:
        """Whether it refuses each Guaranteed container that exceeds the room.

        That is said of `cpu_room` with all CPUs; reserved namespaces aside.
        """

    def reservations(self, state: StateT) -> tuple[Reservation, ...]:
        """Return the places that are reserved for containers of present pods."""

    def claims(self, state: StateT) -> Mapping[str, PreparedClaim]:
        """Return the prepared claims by UID."""

    def claim_devices(self, state: StateT) -> tuple[ClaimDevice, ...]:
        """Return the parts of the node that claims can have CPUs of.

        None where the policy prepares no claims.
        """

    def candidates(self, state: StateT, container: str) -> tuple[Candidate, ...]:
        """Rank the pools that could take a container now, best first, if at all."""
