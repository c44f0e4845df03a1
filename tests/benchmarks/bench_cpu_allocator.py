"""Duration of one CPU allocation; every round has another state of the machine.

Run ``pytest tests/benchmarks/bench_cpu_allocator.py --benchmark-columns=median,max``;
the median is the figure that counts.
"""

from __future__ import annotations

import itertools
import random
from functools import lru_cache

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from nri_resmgr.policy.cpus import CpuRequest, allocate_cpus, release_cpus
from nri_resmgr.topology import Machine
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet

MACHINES = {256: "2s2n32c2t l3=8", 2048: "8s4n32c2t l3=8"}
# What containers ask for, small ones more often.
SIZES = (1, 1, 1, 2, 2, 2, 4, 4, 8, 16, 32)
FILLS = (0, 0.25, 0.5, 0.75, 0.9)
ROUNDS = 200

AIMS = {256: "p50 ≤ 100 µs", 2048: "p50 ≤ 1000 µs"}

machine_of = lru_cache(parse_spec)


@pytest.fixture(autouse=True)
def aim(benchmark: BenchmarkFixture, cpus: int) -> None:
    """Put the aim into the table."""
    benchmark.extra_info["aim"] = AIMS[cpus]


def used_for_a_while(machine: Machine, fill: float, seed: int) -> CpuSet:
    """Return what is free after containers came and went, *fill* of it taken."""
    chance = random.Random(seed)  # noqa: S311 - a repeatable state, no secret
    free, held = machine.online, []
    while len(free) > len(machine.online) * (1 - fill):
        count = min(chance.choice(SIZES), len(free))
        held.append(allocate_cpus(CpuRequest(count, free), machine).cpus)
        free -= held[-1]
        if chance.random() < 1 / 3:
            free |= held.pop(chance.randrange(len(held)))
    return free


def shredded(machine: Machine, fill: float, seed: int) -> CpuSet:
    """Return what is free when any thread may be taken: the worst case."""
    chance = random.Random(seed)  # noqa: S311 - a repeatable state, no secret
    taken = chance.sample(tuple(machine.online), int(len(machine.online) * fill))
    return machine.online - CpuSet.from_iterable(taken)


@pytest.mark.parametrize("cpus", MACHINES)
def test_one_allocation_in_any_state(benchmark: BenchmarkFixture, cpus: int) -> None:
    """The states of the two tests below, mixed: the figure for one allocation."""
    machine = machine_of(MACHINES[cpus])
    states = [used_for_a_while(machine, fill, 1) for fill in FILLS]
    states += [shredded(machine, 0.5, seed) for seed in range(3)]
    requests = [
        CpuRequest(min(count, len(free)), free) for free in states for count in SIZES
    ]
    random.Random(1).shuffle(requests)  # noqa: S311 - a repeatable order, no secret
    mixed = itertools.cycle(requests)

    benchmark.pedantic(
        lambda request: allocate_cpus(request, machine),
        setup=lambda: ((next(mixed),), {}),
        rounds=2 * ROUNDS,
    )


@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("cpus", MACHINES)
def test_a_container_on_a_used_machine(
    benchmark: BenchmarkFixture, cpus: int, fill: float
) -> None:
    machine = machine_of(MACHINES[cpus])
    states = [used_for_a_while(machine, fill, seed) for seed in range(10)]
    requests = itertools.cycle(
        CpuRequest(min(count, len(free)), free) for free in states for count in SIZES
    )

    benchmark.pedantic(
        lambda request: allocate_cpus(request, machine),
        setup=lambda: ((next(requests),), {}),
        rounds=ROUNDS,
    )


@pytest.mark.parametrize("count", [1, 8, 32])
@pytest.mark.parametrize("cpus", MACHINES)
def test_a_container_on_a_shredded_machine(
    benchmark: BenchmarkFixture, cpus: int, count: int
) -> None:
    machine = machine_of(MACHINES[cpus])
    states = [shredded(machine, 0.5, seed) for seed in range(20)]
    requests = itertools.cycle(CpuRequest(count, free) for free in states)

    benchmark.pedantic(
        lambda request: allocate_cpus(request, machine),
        setup=lambda: ((next(requests),), {}),
        rounds=ROUNDS,
    )


@pytest.mark.parametrize("cpus", MACHINES)
def test_half_of_the_machine(benchmark: BenchmarkFixture, cpus: int) -> None:
    machine = machine_of(MACHINES[cpus])
    free = used_for_a_while(machine, 0.25, seed=1)

    benchmark(allocate_cpus, CpuRequest(cpus // 2, free), machine)


@pytest.mark.parametrize("cpus", MACHINES)
def test_giving_two_of_sixteen_back(benchmark: BenchmarkFixture, cpus: int) -> None:
    machine = machine_of(MACHINES[cpus])
    free = used_for_a_while(machine, 0.5, seed=1)
    held = allocate_cpus(CpuRequest(16, free), machine).cpus

    benchmark(release_cpus, held, 2, machine)


@pytest.mark.parametrize("cpus", MACHINES)
def test_two_more_beside_sixteen(benchmark: BenchmarkFixture, cpus: int) -> None:
    machine = machine_of(MACHINES[cpus])
    free = used_for_a_while(machine, 0.5, seed=1)
    held = allocate_cpus(CpuRequest(16, free), machine).cpus

    benchmark(allocate_cpus, CpuRequest(2, free - held, held=held), machine)
