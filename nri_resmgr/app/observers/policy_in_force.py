"""The policy in force, as observers, appliers and verification see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from nri_resmgr.config import PolicyConfig
from nri_resmgr.policy.events import ContainerSpec, Pin
from nri_resmgr.policy.ledger import KnowsContainers
from nri_resmgr.policy.mems import MemoryLedger
from nri_resmgr.policy.views import PoolUse, Reservation, ViewedPolicy
from nri_resmgr.stub.update_sender import UpdateSender
from nri_resmgr.topology import Machine
from nri_resmgr.values import CpuSet


class PolicyInForce(Protocol):
    """The configuration, machine, policy and state now."""

    @property
    def config(self) -> PolicyConfig:
        """The configuration in force."""

    @property
    def machine(self) -> Machine:
        """The present machine."""

    @property
    def policy(self) -> ViewedPolicy[KnowsContainers]:
        """The policy in force."""

    @property
    def state(self) -> KnowsContainers:
        """The policy's containers and grants."""

    def wanted(self, container: str) -> Pin | None:
        """Return the pin that a container should have now; None if it has ended."""


class UpdatingPolicy(PolicyInForce, Protocol):
    """The policy in force, and the sender of its updates."""

    @property
    def updates(self) -> UpdateSender:
        """Sends updates that no request asked for."""


class PolicySnapshot(msgspec.Struct, frozen=True):
    """The policy's state at one moment.

    Attributes:
        specs: The present containers, by id.
        pins: The pinning that each should have.
        pool_of: The name of each container's pool.
        exclusive: Exclusive CPUs of all containers.
        memory: The memory ledger; None where the policy has none.
        reservations: Places for containers that do not exist yet.
    """

    machine: Machine
    specs: Mapping[str, ContainerSpec]
    pins: Mapping[str, Pin]
    pools: Sequence[PoolUse]
    pool_of: Mapping[str, str]
    exclusive: CpuSet
    memory: MemoryLedger | None
    reservations: Sequence[Reservation]


def snapshot_of(subject: PolicyInForce) -> PolicySnapshot:
    """Take a snapshot of the policy in force."""
    policy, state = subject.policy, subject.state
    pools = policy.pools(state)
    memory = getattr(state, "memory", None)  # not every policy accounts for memory
    return PolicySnapshot(
        machine=subject.machine,
        specs={key: entry.spec for key, entry in state.ledger.entries.items()},
        pins=policy.pins(state),
        pools=pools,
        pool_of={one: pool.name for pool in pools for one in pool.containers},
        exclusive=CpuSet.union(pool.exclusive for pool in pools),
        memory=memory if isinstance(memory, MemoryLedger) else None,
        reservations=policy.reservations(state),
    )
