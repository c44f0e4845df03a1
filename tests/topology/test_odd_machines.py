"""The generator of odd machines draws each oddity that people's machines have."""

from __future__ import annotations

import functools
from collections.abc import Callable
from itertools import chain, pairwise
from typing import Final

import pytest
from hypothesis import Phase, given, settings

from nri_resmgr.topology import Machine
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet
from tests.examples import examples
from tests.topology.odd_machines import MOST_CPUS, Oddities, odd_series


def cpus_of_packages(machine: Machine) -> list[CpuSet]:
    return [package.cpus for package in machine.packages]


def has_nodes_in_sockets(machine: Machine) -> bool:
    pairs = ((a, b) for a in machine.node_cpus for b in cpus_of_packages(machine))
    return any(node < package for node, package in pairs)


def has_sockets_in_nodes(machine: Machine) -> bool:
    pairs = ((a, b) for a in machine.node_cpus for b in cpus_of_packages(machine))
    return any(package < node for node, package in pairs)


def has_one_core_sockets(machine: Machine) -> bool:
    cores = {core.cpus for core in machine.cores}
    return len(cores) > 3 and all(one in cores for one in cpus_of_packages(machine))


def has_overlapping_nodes(machine: Machine) -> bool:
    there = [node.cpus for node in machine.nodes if node.cpus]
    return len(there) > len(set(there)) and len(set(there)) > 1


def has_sparse_ids(machine: Machine) -> bool:
    return any(b.id - a.id > 1 for a, b in pairwise(machine.nodes))


def has_offline_sibling(machine: Machine) -> bool:
    return bool(machine.offline) and len({len(one.cpus) for one in machine.cores}) > 1


def has_node_with_offline_cpus(machine: Machine) -> bool:
    # Nodes that never have CPUs come last.
    last = max(machine.cpu_nodes)
    return any(not node.cpus and node.id < last for node in machine.nodes)


def is_hybrid(machine: Machine) -> bool:
    return len(machine.kinds) > 1


def has_asymmetric_caches(machine: Machine) -> bool:
    return not machine.offline and len({len(c.cpus) for c in machine.caches_at(3)}) > 1


def is_asymmetric(machine: Machine) -> bool:
    rows = machine.distances
    return any(
        rows[a][b] != rows[b][a] for a in range(len(rows)) for b in range(len(rows))
    )


def all_are_near(machine: Machine) -> bool:
    return len(machine.nodes) > 1 and {d for row in machine.distances for d in row} == {
        10
    }


ODDITIES: Final[dict[str, Callable[[Machine], bool]]] = {
    "nodes in sockets": has_nodes_in_sockets,
    "sockets in nodes": has_sockets_in_nodes,
    "sockets of one core": has_one_core_sockets,
    "overlapping nodes": has_overlapping_nodes,
    "sparse node ids": has_sparse_ids,
    "sparse CPUs": lambda one: one.online != CpuSet.parse(f"0-{len(one.online) - 1}"),
    "an offline sibling": has_offline_sibling,
    "hybrid cores": is_hybrid,
    "a node without CPUs": lambda one: any(n.memory and not n.cpus for n in one.nodes),
    "a node whose CPUs are all offline": has_node_with_offline_cpus,
    "a node without memory": lambda one: any(
        n.cpus and not n.memory for n in one.nodes
    ),
    "a node with neither": lambda one: any(not (n.cpus or n.memory) for n in one.nodes),
    "CPUs without memory": lambda one: all(
        not (n.cpus and n.memory) for n in one.nodes
    ),
    "movable memory": lambda one: any(n.movable for n in one.nodes),
    "asymmetric caches": has_asymmetric_caches,
    "asymmetric distances": is_asymmetric,
    "no distances": all_are_near,
    "few ordinary CPUs": lambda one: 2 * len(one.isolated) > len(one.online) > 4,
    "16 CPUs": lambda one: len(one.online) == MOST_CPUS,
    "one CPU": lambda one: len(one.present) == 1,
}


@functools.cache
def drawn() -> list[tuple[Machine, ...]]:
    """Draw some machines, with what becomes of them."""
    found: list[tuple[Machine, ...]] = []

    @settings(max_examples=250, phases=[Phase.generate], derandomize=True)
    @given(odd_series())
    def draw(specs: tuple[str, ...]) -> None:
        found.append(tuple(map(parse_spec, specs)))

    draw()
    return found


@pytest.mark.parametrize("oddity", ODDITIES)
def test_each_oddity_is_drawn(oddity: str) -> None:
    assert any(ODDITIES[oddity](machines[0]) for machines in drawn())


CHANGES: Final[dict[str, Callable[[Machine, Machine], bool]]] = {
    "CPUs go": lambda a, b: b.online < a.online,
    "CPUs come back": lambda a, b: a.online < b.online,
    "isolated CPUs go": lambda a, b: b.isolated < a.isolated,
    "memory goes": lambda a, b: b.memory_nodes < a.memory_nodes,
    "nodes go": lambda a, b: b.node_ids < a.node_ids,
}


@pytest.mark.parametrize("change", CHANGES)
def test_each_change_is_drawn(change: str) -> None:
    assert any(CHANGES[change](*machines[:2]) for machines in drawn())


NEEDS: Final = Oddities(9, ordinary=CpuSet.parse("1,3-5"), first=CpuSet.parse("0,2"))


@examples(0.3)
@given(odd_series(NEEDS))
def test_machines_meet_the_needs_of_a_law(specs: tuple[str, ...]) -> None:
    for machine in map(parse_spec, specs):
        assert NEEDS.least <= len(machine.present) <= MOST_CPUS
        assert machine.online - machine.isolated >= NEEDS.ordinary
    first = parse_spec(specs[0])
    assert first.online - first.isolated >= NEEDS.first


def test_all_can_exist() -> None:
    for machine in chain.from_iterable(drawn()):
        assert machine.online > machine.isolated
        assert machine.normal_nodes
