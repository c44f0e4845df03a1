"""Rooms to choose pools in, in the words of the tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs
import msgspec

from nri_resmgr.policy.events import NO_PIN, ContainerSpec
from nri_resmgr.policy.ledger import Ledger
from nri_resmgr.policy.mems import MemoryLedger
from nri_resmgr.policy.topology_aware.demand import CpuKind, Demand, demand_of
from nri_resmgr.policy.topology_aware.memory import offer_memory
from nri_resmgr.policy.topology_aware.pool_ledger import Grant, PoolLedger
from nri_resmgr.policy.topology_aware.pools import PoolTree
from nri_resmgr.policy.topology_aware.settings import TopologyAwareSettings
from nri_resmgr.policy.topology_aware.state import NodeView
from nri_resmgr.topology import Machine
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet, MilliCpus, QosClass, parse_bytes


@attrs.frozen
class Tenant:
    """A container that is there before the choice.

    Attributes:
        pool: The name of its pool.
        shared: Thousandths of the pool's shared CPUs; 0 for a container that asks
            for nothing, None for one that does not share.
        cpus: CPUs of its own, in the kernel's list format.
        memory: How much memory it was promised.
        pod: Its pod.
    """

    pool: str
    shared: int | None = None
    cpus: str = ""
    memory: str = "0"
    pod: str = ""


def view(
    machine: str | Machine = "2s2n4c memory=16Gi",
    tenants: Iterable[Tenant] = (),
    reserved: str = "",
    **options: Any,
) -> NodeView:
    """Build the node with its tenants; *options* are settings."""
    if isinstance(machine, str):
        machine = parse_spec(machine)
    kept = CpuSet.parse(reserved)
    tree = PoolTree.of(machine, machine.online, kept)
    settings = TopologyAwareSettings(available=machine.online, reserved=kept, **options)
    grants: dict[str, Grant] = {}
    ledger, memory = Ledger.of(), MemoryLedger.of(machine)
    for number, tenant in enumerate(tenants):
        pool = tree.named(tenant.pool)
        assert pool is not None, tenant
        spec = ContainerSpec(
            f"tenant-{number}",
            tenant.pod,
            qos=QosClass.BURSTABLE,
            memory_request=parse_bytes(tenant.memory),
        )
        ledger = ledger.put(spec, NO_PIN)
        grants[spec.id] = grant_of(spec.id, pool.id, tenant)
        memory = offer_memory(spec, pool, tree, memory).commit(memory)
    pool_ledger = PoolLedger.of(tree, grants.values())
    return NodeView(tree, settings, ledger, grants, pool_ledger, memory)


def grant_of(container: str, pool: int, tenant: Tenant) -> Grant:
    kinds = {
        (True, False): CpuKind.EXCLUSIVE,
        (True, True): CpuKind.MIXED,
        (False, True): CpuKind.SHARED,
    }
    return Grant(
        container=container,
        kind=kinds[bool(tenant.cpus), tenant.shared is not None],
        pool=pool,
        cpus=CpuSet.parse(tenant.cpus),
        fraction=MilliCpus(tenant.shared or 0),
    )


def guaranteed(milli: int, memory: str = "0", **fields: Any) -> ContainerSpec:
    size = parse_bytes(memory)
    return ContainerSpec(
        "new",
        "new-pod",
        qos=QosClass.GUARANTEED,
        request=MilliCpus(milli),
        limit=MilliCpus(milli),
        memory_request=size,
        memory_limit=size or None,
        **fields,
    )


def burstable(
    milli: int, limit: int | None = None, memory: str = "0", **fields: Any
) -> ContainerSpec:
    return ContainerSpec(
        "new",
        "new-pod",
        qos=QosClass.BURSTABLE,
        request=MilliCpus(milli),
        limit=None if limit is None else MilliCpus(limit),
        memory_request=parse_bytes(memory),
        **fields,
    )


def best_effort(**fields: Any) -> ContainerSpec:
    return ContainerSpec("new", "new-pod", qos=QosClass.BEST_EFFORT, **fields)


def asked(spec: ContainerSpec, node: NodeView, **changes: Any) -> Demand:
    return msgspec.structs.replace(demand_of(spec, node.settings), **changes)


def named(node: NodeView) -> Mapping[int, str]:
    return {pool.id: pool.name for pool in node.tree.pools}
