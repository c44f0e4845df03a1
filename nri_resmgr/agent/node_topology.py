"""The `NodeResourceTopology` of a node: pure, from what the daemon can grant.

Zones of the type ``Node`` are what the scheduler plugin `NodeResourceTopologyMatch`
reads: by exactly these names, `available` and the costs. Zones of pools are for people,
in the form of nri-plugins.

Source:
    ``topology.node.k8s.io/v1alpha2``; scheduler-plugins, ``noderesourcetopology``;
    nri-plugins, ``GetTopologyZones`` of its policies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from nri_resmgr.agent.api import Resource
from nri_resmgr.agent.fingerprint import fingerprint_of
from nri_resmgr.agent.zones import Amounts, NumaNode, Pool, PooledContainer, Zones
from nri_resmgr.values import ONE_CPU
from nri_resmgr.values.documents import JsonObject

NODE_TOPOLOGIES: Final = Resource(
    "topology.node.k8s.io",
    "v1alpha2",
    "noderesourcetopologies",
    "NodeResourceTopology",
    False,
)

_NODE_ZONE: Final = "Node"
_BALLOON: Final = "balloon"
_CONTAINER: Final = "allocation for container"
_TYPES: Final[Mapping[str, str]] = {
    "system": "virtual node",
    "package": "socket",
    "die": "die",
    "numa": "numa node",
    "l3cache": "L3 cache",
}
"""nri-plugins' words for levels of pools."""

_NO_ZONES: Final = ("idle", "reserved")
"""Kinds of sets of CPUs that are none of the policy's pools."""


def topology_of(zones: Zones) -> JsonObject:
    """Return the fields of the object, but for its metadata."""
    # One node, and a policy that refuses what does not fit it: then a scheduler that
    # refuses the node does no harm. No policy keeps containers within one of several.
    policy = "single-numa-node" if zones.single_node else "none"
    level = "SingleNUMANodeContainerLevel" if zones.single_node else "None"
    attributes = {
        "topologyManagerPolicy": policy,
        "topologyManagerScope": "container",
    }
    if zones.pools:
        attributes["TopologyPolicy"] = zones.policy
    if zones.publish is not None and zones.publish.fingerprint:
        pods = ((one.namespace, one.name) for one in zones.pods)
        attributes["nodeTopologyPodsFingerprint"] = fingerprint_of(pods)
        attributes["nodeTopologyPodsFingerprintMethod"] = "all"
    return {
        # Deprecated, and required by the first definitions of this version.
        "topologyPolicies": [level],
        "attributes": _attributes(attributes),
        "zones": [*map(_node_zone, zones.nodes), *_pool_zones(zones)],
    }


def _node_zone(node: NumaNode) -> JsonObject:
    amounts = {"cpu": node.cpu, "memory": node.memory}
    amounts |= {f"hugepages-{_binary(one.size)}": one for one in node.huge_pages}
    return {
        "name": f"node-{node.id}",
        "type": _NODE_ZONE,
        "costs": [
            {"name": f"node-{other}", "value": distance}
            for other, distance in node.distances.items()
        ],
        "resources": [
            _resource(name, found) for name, found in amounts.items() if found.capacity
        ],
    }


def _pool_zones(zones: Zones) -> Iterator[JsonObject]:
    machine = sum(one.cpu.capacity for one in zones.nodes)
    for pool in zones.pools:
        if pool.kind == _BALLOON:
            yield _balloon_zone(pool, machine)
        elif pool.kind not in _NO_ZONES:
            yield _pool_zone(pool)
    yield from map(_container_zone, zones.containers)


def _pool_zone(pool: Pool) -> JsonObject:
    size = pool.cpu.capacity + ONE_CPU * len(pool.reserved)
    cpu = Amounts(size, size, pool.cpu.free)
    memory = pool.memory
    free = max(memory.capacity - memory.granted, 0)
    resources = [_resource("cpu", cpu)]
    if memory.capacity:
        amounts = Amounts(memory.capacity, memory.capacity, free)
        resources.append(_resource("memory", amounts))
    return {
        "name": pool.name,
        "type": _TYPES.get(pool.kind, pool.kind),
        **({"parent": pool.within} if pool.within else {}),
        "attributes": _attributes(
            {
                "memory set": str(pool.mems),
                "shared cpuset": str(pool.shared),
                "reserved cpuset": str(pool.reserved),
                "isolated cpuset": str(pool.isolated),
            }
        ),
        "resources": resources,
    }


def _balloon_zone(balloon: Pool, machine: int) -> JsonObject:
    cpu, parts = balloon.cpu, balloon.labels.get("components", "")
    attributes = {
        "cpuset": str(balloon.cpus),
        "shared cpuset": str(balloon.idle),
        "excess cpus": f"{max(cpu.capacity - cpu.granted, 0)}m",
    }
    if parts:
        attributes["component cpusets"] = parts
    amounts = Amounts(machine, cpu.granted + cpu.free, cpu.free)
    return {
        "name": balloon.name,
        "type": _BALLOON,
        **({"parent": balloon.within} if balloon.within else {}),
        "attributes": _attributes(attributes),
        "resources": [_resource("cpu", amounts)],
    }


def _container_zone(container: PooledContainer) -> JsonObject:
    cpu = container.cpu
    return {
        "name": container.title,
        "type": _CONTAINER,
        "parent": container.pool,
        "attributes": _attributes(
            {"cpuset": str(container.cpus), "memory set": str(container.mems)}
        ),
        "resources": [_resource("cpu", Amounts(cpu.limit or 0, cpu.request, 0))],
    }


def _resource(name: str, amounts: Amounts) -> JsonObject:
    text = _cpus if name == "cpu" else str
    return {
        "name": name,
        "capacity": text(amounts.capacity),
        "allocatable": text(amounts.allocatable),
        "available": text(amounts.available),
    }


def _cpus(milli: int) -> str:
    return f"{milli}m" if milli % ONE_CPU else str(milli // ONE_CPU)


def _binary(size: int) -> str:
    """Return a size of pages as Kubernetes names it: ``2Mi``, ``1Gi``."""
    for unit, factor in (("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)):
        if size % factor == 0:
            return f"{size // factor}{unit}"
    return str(size)


def _attributes(found: Mapping[str, str]) -> list[JsonObject]:
    return [{"name": name, "value": value} for name, value in found.items()]
