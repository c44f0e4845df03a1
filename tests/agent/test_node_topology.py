"""The published object says of each zone what `status` says of the node."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final

import jsonschema
import pytest
import yaml
from msgspec.structs import replace

from nri_resmgr.agent.node_topology import topology_of
from nri_resmgr.agent.zones import Zones
from nri_resmgr.control.state import state_of
from nri_resmgr.control.zones import zones_of
from nri_resmgr.values import CpuSet, parse_bytes, parse_cpus
from nri_resmgr.values.documents import from_plain
from tests.control.daemon_parts import Parts, make_parts
from tests.control.json_schema import mistakes

DEFINITION: Final = (
    Path(__file__).parents[2]
    / "deploy/kubernetes/options/node-resource-topology/definition.yaml"
)
PUBLISHED: Final = "agent: {nodeResourceTopology: true}"
DOCUMENTS: Final = {
    "TopologyAwarePolicy": PUBLISHED,
    "StaticPolicy": f'{PUBLISHED}, reservedResources: {{cpu: "cpuset:0"}}',
    "BalloonsPolicy": f"{PUBLISHED}, showContainersInNrt: true, "
    "balloonTypes: [{name: web, namespaces: [shop], maxCPUs: 3, "
    "preferNewBalloons: true}]",
}
EVENTS: Final = 1000


def parts_of(kind: str, machine: str = "2s2n4c2t", spec: str = "") -> Parts:
    text = spec or DOCUMENTS[kind]
    document = f"apiVersion: config.nri/v1alpha1\nkind: {kind}\nspec: {{{text}}}"
    return make_parts(machine, document)


def published(parts: Parts) -> dict[str, Any]:
    """Return what would be published; each one fits the definition."""
    answer = zones_of(parts.daemon)
    assert mistakes(answer, "Zones") == []
    found = topology_of(from_plain(Zones, answer))
    validator().validate({"metadata": {"name": "node-a"}, **found})
    return found


@cache
def validator() -> jsonschema.Draft202012Validator:
    (version,) = (
        one
        for one in yaml.safe_load(DEFINITION.read_text())["spec"]["versions"]
        if one["name"] == "v1alpha2"
    )
    schema = version["schema"]["openAPIV3Schema"]
    for one in (schema, schema["properties"]["zones"]["items"]):
        # An API server drops unknown fields without a word.
        one["additionalProperties"] = False
    return jsonschema.Draft202012Validator(schema)


def amounts(zone: dict[str, Any], name: str) -> tuple[int, int, int]:
    (found,) = (one for one in zone["resources"] if one["name"] == name)
    parse: Any = parse_cpus if name == "cpu" else parse_bytes
    capacity, allocatable, available = (
        int(parse(found[key])) for key in ("capacity", "allocatable", "available")
    )
    return capacity, allocatable, available


def zones_by_type(found: dict[str, Any], kind: str) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in found["zones"] if one["type"] == kind}


def happen(parts: Parts, random: Random, running: set[str], number: int) -> None:
    """Have one container come or go."""
    if running and random.random() < 0.5:
        name = random.choice(sorted(running))
        running.remove(name)
        parts.stop(name)
    else:
        name = f"pod-{number}"
        parts.run(name, random.choice((0.2, 0.5, 1, 1.5, 2, 3, 6)))
        running.add(name)


def exclusive_room(cpus: CpuSet, state: Any) -> int:
    """Return what the pools around a node have beyond what has to stay in them.

    Containers that share CPUs make way as far as the root.
    """
    pools = {one["name"]: CpuSet.parse(one["cpus"]) for one in state["pools"]}
    not_free = CpuSet.parse(state["cpus"]["exclusive"])
    not_free |= CpuSet.parse(state["cpus"]["reserved"])

    def room(around: CpuSet) -> int:
        stay: int = sum(
            one["request"]["cpu"] - 1000 * len(CpuSet.parse(one["exclusive"]))
            for one in state["containers"]
            if around == pools["root"]
        )
        return 1000 * len(around - not_free) - stay

    return min(room(one) for one in pools.values() if cpus <= one)


def check_nodes(kind: str, state: Any, found: dict[str, Any]) -> None:
    zones = zones_by_type(found, "Node")
    assert list(zones) == [f"node-{one['id']}" for one in state["nodes"]]
    not_for_pods = CpuSet.parse(state["cpus"]["reserved"])
    taken = CpuSet.parse(state["cpus"]["exclusive"])
    pools = {one["name"]: one for one in state["pools"]}
    for node in state["nodes"]:
        zone = zones[f"node-{node['id']}"]
        cpus = CpuSet.parse(node["cpus"])
        capacity, allocatable, available = amounts(zone, "cpu")
        assert capacity == 1000 * len(cpus)
        if kind == "StaticPolicy":
            assert allocatable == 1000 * len(cpus - not_for_pods)
            assert available == 1000 * len(cpus - not_for_pods - taken)
        if kind == "TopologyAwarePolicy":
            pool = pools[f"NUMA node #{node['id']}"]
            assert allocatable == 1000 * len(cpus - not_for_pods)
            whole = exclusive_room(cpus, state) // 1000 * 1000
            assert available == max(pool["cpu"]["free"], whole)
        if kind == "BalloonsPolicy":
            idle = CpuSet.parse(pools["idle CPUs"]["cpus"]) & cpus
            assert available == 1000 * len(idle)
        memory, memory_free = node["memory"], amounts(zone, "memory")[2]
        assert amounts(zone, "memory")[0] == memory["capacity"]
        if memory["free"] is not None:
            assert memory_free == memory["free"]


def check_pools(state: Any, found: dict[str, Any]) -> None:
    balloons = [one for one in state["pools"] if one["kind"] == "balloon"]
    zones = zones_by_type(found, "balloon")
    assert list(zones) == [one["name"] for one in balloons]
    for one in balloons:
        cpus, free = one["cpu"], amounts(zones[one["name"]], "cpu")
        assert free[1:] == (cpus["granted"] + cpus["free"], cpus["free"])
    containers = zones_by_type(found, "allocation for container")
    assert {name: zone["parent"] for name, zone in containers.items()} == {
        f"{one['namespace']}/{one['pod']}/{one['name']}": one["pool"]
        for one in state["containers"]
        if one["pool"] in zones
    }


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_each_zone_is_as_status_after_random_events(kind: str) -> None:
    parts, random = parts_of(kind), Random(kind)  # noqa: S311 - repeatable
    running: set[str] = set()
    for number in range(EVENTS):
        happen(parts, random, running, number)
        if number % 10 == 0 or number > EVENTS - 20:
            state, found = state_of(parts.daemon), published(parts)
            check_nodes(kind, state, found)
            check_pools(state, found)


def test_zones_have_the_form_that_the_scheduler_plugin_reads() -> None:
    parts = parts_of("StaticPolicy", "1s2n4c1t")
    parts.run("web", 2)

    found = published(parts)

    assert found["attributes"] == [
        {"name": "topologyManagerPolicy", "value": "none"},
        {"name": "topologyManagerScope", "value": "container"},
    ]
    assert [one["type"] for one in found["zones"]] == ["Node", "Node"]
    first, second = found["zones"]
    assert (first["name"], second["name"]) == ("node-0", "node-1")
    assert first["costs"] == [
        {"name": "node-0", "value": 10},
        {"name": "node-1", "value": 12},
    ]
    (cpu,) = (one for one in first["resources"] if one["name"] == "cpu")
    assert cpu == {
        "name": "cpu",
        "capacity": "4",
        "allocatable": "3",
        "available": "1",
    }


@pytest.mark.parametrize(
    ("kind", "machine", "more", "policy"),
    [
        ("TopologyAwarePolicy", "1s1n4c1t", "", "single-numa-node"),
        # A shared pool takes what does not fit.
        ("TopologyAwarePolicy", "1s1n4c1t", ", onFailure: shared", "none"),
        ("StaticPolicy", "1s1n4c1t", "", "none"),
        # Containers may span nodes.
        ("TopologyAwarePolicy", "1s2n4c1t", "", "none"),
    ],
)
def test_single_numa_node_is_published_only_where_it_holds(
    kind: str, machine: str, more: str, policy: str
) -> None:
    found = published(parts_of(kind, machine, PUBLISHED + more))

    assert found["attributes"][0] == {"name": "topologyManagerPolicy", "value": policy}


@pytest.mark.parametrize("kind", ["TopologyAwarePolicy", "StaticPolicy"])
def test_huge_pages_are_resources_of_their_nodes(kind: str) -> None:
    page, aside = 2 << 20, 64 * (2 << 20)
    parts = parts_of(kind, "1s2n4c1t memory=4Gi hugepages=2Mi:64")
    parts.run("web", 2, pages=3)

    zones = zones_by_type(published(parts), "Node").values()

    pages = [amounts(one, "hugepages-2Mi") for one in zones]
    assert [each[:2] for each in pages] == [(aside, aside)] * 2
    assert sorted(each[2] for each in pages) == [aside - 3 * page, aside]
    # No other memory is theirs.
    for one in zones:
        capacity, allocatable, _ = amounts(one, "memory")
        assert (capacity, allocatable) == (4 << 30, (4 << 30) - aside)


def test_machines_without_huge_pages_publish_none() -> None:
    zones = zones_by_type(published(parts_of("StaticPolicy")), "Node").values()

    named = {each["name"] for one in zones for each in one["resources"]}
    assert named == {"cpu", "memory"}


def test_zones_of_pools_have_the_form_of_nri_plugins() -> None:
    text = "agent: {nodeResourceTopology: true, nodeResourceTopologyZones: pools}"
    parts = parts_of("TopologyAwarePolicy", "2s2n4c1t", text)

    found = published(parts)

    assert {one["type"] for one in found["zones"]} == {
        *("Node", "virtual node", "socket", "numa node"),
    }
    (socket,) = (one for one in found["zones"] if one["name"] == "socket #1")
    assert socket["parent"] == "root"
    assert {one["name"]: one["value"] for one in socket["attributes"]} == {
        "memory set": "2-3",
        "shared cpuset": "8-15",
        "reserved cpuset": "",
        "isolated cpuset": "",
    }
    assert {"name": "TopologyPolicy", "value": "TopologyAwarePolicy"} in found[
        "attributes"
    ]


def test_the_fingerprint_is_of_pods_with_containers() -> None:
    text = "agent: {nodeResourceTopology: true, nodeResourceTopologyFingerprint: true}"
    parts = parts_of("StaticPolicy", "1s1n4c1t", text)
    empty = published(parts)["attributes"]
    parts.run("web", 1)
    with_pod = published(parts)["attributes"]
    parts.stop("web")

    assert {"name": "nodeTopologyPodsFingerprintMethod", "value": "all"} in with_pod
    assert empty != with_pod
    assert published(parts)["attributes"] == empty


def test_nothing_is_published_unless_enabled_or_in_a_dry_run() -> None:
    parts = parts_of("StaticPolicy", "1s1n4c1t", "pinCPU: true")
    assert zones_of(parts.daemon)["publish"] is None
    parts = parts_of("StaticPolicy", "1s1n4c1t")
    assert zones_of(parts.daemon)["publish"] is not None
    parts.policy.options = replace(parts.policy.options, dry_run=True)
    assert zones_of(parts.daemon)["publish"] is None
