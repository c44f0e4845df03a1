"""Duration of one memory decision with 500 requests on 8 nodes.

Run ``pytest tests/benchmarks/bench_memory_allocator.py
--benchmark-columns=median,max``; the median is the figure that counts.
"""

from __future__ import annotations

import itertools
import random
from functools import lru_cache

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from nri_resmgr.policy.mems import (
    MemoryLedger,
    MemoryPriority,
    MemoryRequest,
    allocate_memory,
    fit_memory,
)
from nri_resmgr.topology import MemoryKind
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import Bytes, NodeSet, PolicyError

MIB = 1 << 20
REQUESTS = 500
ROUNDS = 400
AIM = "p50 ≤ 500 µs"
SCORED = 30  # pools that one decision of a policy looks at, at most
SCORE_AIM = f"p50 ≤ {15 * SCORED} µs"

MACHINES = {
    "8 DRAM": "2s4n4c2t memory=64Gi",
    "4 DRAM 4 PMEM": "4s1n4c2t memory=64Gi pmem=4x64Gi",
}
KINDS = frozenset({MemoryKind.DRAM, MemoryKind.PMEM})
# What pods are: most can be pushed about a bit.
PRIORITIES = (MemoryPriority.BURSTABLE,) * 3 + (MemoryPriority.GUARANTEED,)


def request(name: str, nodes: tuple[int, ...], size: int, draw: int) -> MemoryRequest:
    return MemoryRequest(
        id=name,
        affinity=NodeSet.from_iterable(nodes),
        size=Bytes(size),
        kinds=KINDS if draw % 3 else frozenset(),
        priority=PRIORITIES[draw % len(PRIORITIES)],
    )


def affinities(ledger: MemoryLedger) -> list[tuple[int, ...]]:
    """Return single nodes, more often, and pairs and halves of the machine."""
    nodes = tuple(NodeSet(ledger.layout.nodes))
    pairs = list(itertools.pairwise(nodes))[::2]
    return [*[(node,) for node in nodes] * 3, *pairs, nodes[:4], nodes[4:], nodes]


@lru_cache
def used(machine: str, fill: float) -> MemoryLedger:
    """Return a ledger with 500 requests for *fill* of all the memory."""
    chance = random.Random(1)  # noqa: S311 - a repeatable state, no secret
    ledger = MemoryLedger.of(parse_spec(MACHINES[machine]))
    each = int(ledger.capacity(NodeSet(ledger.layout.nodes)) * fill / REQUESTS)
    number = 0
    while len(ledger) < REQUESTS:
        number += 1
        size = chance.randrange(each // 2, each * 3 // 2)
        near = chance.choice(affinities(ledger))
        try:
            wish = request(f"r{number}", near, size, chance.randrange(12))
            ledger = allocate_memory(wish, ledger).ledger
        except PolicyError:
            continue
    return ledger


@pytest.mark.parametrize("fill", [0.25, 0.5, 0.75, 0.9])
@pytest.mark.parametrize("machine", MACHINES)
def test_one_more_request(
    benchmark: BenchmarkFixture, machine: str, fill: float
) -> None:
    ledger = used(machine, fill)
    chance = random.Random(2)  # noqa: S311 - a repeatable state, no secret
    sizes = [64 * MIB, 512 * MIB, 2048 * MIB]
    wishes = itertools.cycle(
        request("new", near, chance.choice(sizes), chance.randrange(12))
        for near in affinities(ledger)
    )
    benchmark.extra_info["aim"] = AIM

    benchmark.pedantic(
        lambda wish: allocate_memory(wish, ledger),
        setup=lambda: ((next(wishes),), {}),
        rounds=ROUNDS,
    )


@pytest.mark.parametrize("gib", [1, 8, 16])
@pytest.mark.parametrize("machine", MACHINES)
def test_a_request_that_is_widened(
    benchmark: BenchmarkFixture, machine: str, gib: int
) -> None:
    ledger = used(machine, 0.75)
    node = NodeSet.of(0)
    wish = MemoryRequest(
        id="new",
        affinity=node,
        size=Bytes(ledger.available(node) + gib * 1024 * MIB),
        priority=MemoryPriority.GUARANTEED,
    )
    benchmark.extra_info["moved"] = len(allocate_memory(wish, ledger).moved)
    benchmark.extra_info["aim"] = AIM

    assert benchmark(allocate_memory, wish, ledger).widened != ()


@pytest.mark.parametrize("gib", [1, 16])
@pytest.mark.parametrize("fill", [0.5, 0.9])
@pytest.mark.parametrize("machine", MACHINES)
def test_thirty_pools_scored(
    benchmark: BenchmarkFixture, machine: str, fill: float, gib: int
) -> None:
    ledger = used(machine, fill)
    wish = request("new", (0,), gib * 1024 * MIB, 1)
    nodes = map(NodeSet.from_iterable, itertools.cycle(affinities(ledger)))
    pools = list(itertools.islice(nodes, SCORED))
    benchmark.extra_info["aim"] = SCORE_AIM

    benchmark(lambda: [fit_memory(wish, ledger, pool) for pool in pools])


@pytest.mark.parametrize("machine", MACHINES)
def test_committing_one(benchmark: BenchmarkFixture, machine: str) -> None:
    ledger = used(machine, 0.5)
    wish = request("new", (0,), 64 * MIB, 1)

    benchmark(lambda: allocate_memory(wish, ledger).commit(ledger))


@pytest.mark.parametrize("machine", MACHINES)
def test_releasing_one(benchmark: BenchmarkFixture, machine: str) -> None:
    ledger = used(machine, 0.5)

    benchmark(ledger.release, next(iter(ledger.grants)))
