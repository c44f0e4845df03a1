"""``GET /v1/zones``: what the node can still grant, for the cluster's schedulers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nri_resmgr.app.observers.policy_in_force import PolicySnapshot, snapshot_of
from nri_resmgr.config.policy_config import NodeTopologyUse
from nri_resmgr.control.daemon_view import API_VERSION, DaemonView
from nri_resmgr.control.pools import pool_of
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.mems import BASE_PAGES
from nri_resmgr.policy.views import CpuRoom
from nri_resmgr.topology import HugePages, Machine, Node
from nri_resmgr.values import NO_CPUS, ONE_CPU, Bytes, CpuSet, NodeSet
from nri_resmgr.values.documents import JsonObject

_BALLOON: Final = "balloon"
_TYPE: Final = "type"


def zones_of(daemon: DaemonView) -> JsonObject:
    """Describe the NUMA nodes, and pools and pods where the configuration wants them.

    A dry run publishes nothing: containers are not where the policy has them.
    """
    subject, snapshot = daemon.policy, snapshot_of(daemon.policy)
    use = None if daemon.policy.options.dry_run else subject.config.node_topology
    machine = snapshot.machine
    single = len(machine.cpu_nodes) == 1 and subject.policy.keeps_to_room
    return {
        "apiVersion": API_VERSION,
        "kind": "Zones",
        "policy": subject.policy.kind,
        "synchronized": daemon.sessions.is_synchronized,
        "publish": use and {"fingerprint": use.fingerprint, "force": use.force},
        "singleNode": single,
        "nodes": [
            _node(node, cpus, subject.policy.cpu_room(subject.state, cpus), snapshot)
            for node, cpus in _counted_cpus(machine)
        ],
        "pools": [pool_of(one) for one in snapshot.pools] if use and use.pools else [],
        "containers": list(_containers(use, snapshot)) if use and use.pools else [],
        "pods": _pods(snapshot) if use and use.fingerprint else [],
    }


def _counted_cpus(machine: Machine) -> Iterator[tuple[Node, CpuSet]]:
    """Yield the nodes, each with the CPUs that are counted in it.

    Nodes of emulated NUMA list the same CPUs. Schedulers add up zones, and the kubelet
    has each CPU in one node: here it is the first one.
    """
    seen = NO_CPUS
    for node in machine.nodes:
        yield node, node.cpus - seen
        seen |= node.cpus


def _node(
    node: Node, cpus: CpuSet, room: CpuRoom, snapshot: PolicySnapshot
) -> JsonObject:
    machine = snapshot.machine
    capacity = ONE_CPU * len(cpus)
    return {
        "id": node.id,
        "distances": {
            str(one.id): machine.distance(node.id, one.id) for one in machine.nodes
        },
        "cpu": _amounts(capacity, room.allocatable, room.available),
        "memory": _memory(node, snapshot),
        "hugePages": [_huge_pages(node, one, snapshot) for one in node.hugepages],
    }


def _memory(node: Node, snapshot: PolicySnapshot) -> JsonObject:
    # Memory that is set aside for huge pages is nothing else to containers.
    aside = sum(one.size * one.count for one in node.hugepages)
    allocatable = max(node.memory - aside, 0)
    available = _available(node, allocatable, BASE_PAGES, snapshot)
    return _amounts(node.memory, allocatable, available)


def _huge_pages(node: Node, pages: HugePages, snapshot: PolicySnapshot) -> JsonObject:
    capacity = pages.size * pages.count
    available = _available(node, capacity, pages.size, snapshot)
    return {"size": pages.size, **_amounts(capacity, capacity, available)}


def _available(
    node: Node, capacity: int, page_size: Bytes, snapshot: PolicySnapshot
) -> int:
    here, memory = NodeSet.of(node.id), snapshot.memory
    if memory is not None:
        free: int = memory.available(here, page_size)
    else:
        # Where memory is not accounted for, that of containers confined to the node.
        free = capacity - sum(
            _requested(spec, page_size)
            for key, spec in snapshot.specs.items()
            if _confined(snapshot, key) == here
        )
    return min(max(free, 0), capacity)


def _confined(snapshot: PolicySnapshot, container: str) -> NodeSet:
    every = snapshot.machine.memory_nodes
    return snapshot.pins[container].mems & every or every


def _requested(spec: ContainerSpec, page_size: Bytes) -> int:
    if page_size == BASE_PAGES:
        return spec.memory_request
    return sum(one.size * one.count for one in spec.hugepages if one.size == page_size)


def _amounts(capacity: int, allocatable: int, available: int) -> JsonObject:
    return {
        "capacity": capacity,
        "allocatable": allocatable,
        "available": available,
    }


def _containers(use: NodeTopologyUse, snapshot: PolicySnapshot) -> Iterator[JsonObject]:
    """Describe the containers that are published, in their balloons."""
    for pool in snapshot.pools:
        if pool.kind != _BALLOON:
            continue
        if use.containers or pool.labels[_TYPE] in use.container_types:
            for key in pool.containers:
                spec, pin = snapshot.specs[key], snapshot.pins[key]
                yield {
                    "title": spec.title,
                    "pool": pool.name,
                    "cpus": str(pin.cpus),
                    "mems": str(pin.mems),
                    "cpu": {"request": spec.request, "limit": spec.limit},
                }


def _pods(snapshot: PolicySnapshot) -> list[JsonObject]:
    found = {(one.namespace, one.pod_name) for one in snapshot.specs.values()}
    return [{"namespace": where, "name": name} for where, name in sorted(found)]
