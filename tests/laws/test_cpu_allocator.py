"""Laws of the CPU allocator, held against brute force on small machines."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.policy.cpus import (
    CoreUse,
    CpuPreferences,
    CpuPriority,
    CpuRequest,
    CpusExhausted,
    PrioritySets,
    allocate_cpus,
    release_cpus,
)
from nri_resmgr.topology import Cache, CoreKind, Machine
from nri_resmgr.values import NO_CPUS, CpuSet
from tests.examples import examples
from tests.policy.cpus.drawn_requests import (
    Case,
    machine_of,
    preferring_requests,
    requests,
)

ANY = CpuPriority.ANY


def levels(machine: Machine) -> Iterator[tuple[bool, list[CpuSet]]]:
    """Yield the groups of every level in order, and whether it is a wide one."""
    caches: dict[int, Cache] = {}
    for cache in machine.caches:
        for cpu in cache.cpus:
            if caches.setdefault(cpu, cache).level < cache.level:
                caches[cpu] = cache
    rows = [
        (True, [package.cpus for package in machine.packages]),
        (True, [die.cpus for die in machine.dies]),
        (True, [node.cpus for node in machine.nodes]),
        (False, list({cache.cpus for cache in caches.values()})),
        (False, [cluster.cpus for cluster in machine.clusters]),
    ]
    yield from sorted((row for row in rows if row[1]), key=lambda row: len(row[1]))
    yield False, [core.cpus for core in machine.cores]


def places(machine: Machine) -> Iterator[dict[int, tuple[int, ...]]]:
    """Yield, level by level, the group of every CPU.

    A group is known by the levels around it too, so that a level that crosses
    another one is cut along it.
    """
    around: dict[int, tuple[int, ...]] = dict.fromkeys(machine.online, ())
    for _, groups in levels(machine):
        around = {
            cpu: (*above, next(n for n, group in enumerate(groups) if cpu in group))
            for cpu, above in around.items()
        }
        yield around


def touched(cpus: CpuSet, machine: Machine, beside: CpuSet = NO_CPUS) -> list[int]:
    """Count the groups that a pick touches, level by level."""
    return [
        len({group[cpu] for cpu in cpus} - {group[cpu] for cpu in beside})
        for group in places(machine)
    ]


def room(cpus: CpuSet, free: CpuSet, machine: Machine) -> list[int]:
    """Count the free CPUs in the groups that a pick touches, level by level."""
    return [
        sum(group[cpu] in {group[one] for one in cpus} for cpu in free)
        for group in places(machine)
    ]


def paid_for_classes(cpus: CpuSet, request: CpuRequest, machine: Machine) -> list[int]:
    """Count the CPUs that are not of the preferred class, and the farthest ones."""
    low = machine.cpus_of_kind(CoreKind.EFFICIENT)
    classes = request.classes or PrioritySets(low=low)
    high, low = classes.high, classes.low
    normal = machine.online - high - low
    first, last = {
        CpuPriority.HIGH: (high, low),
        CpuPriority.NORMAL: (normal, high),
        CpuPriority.LOW: (low, high),
        CpuPriority.ANY: (machine.online, NO_CPUS),
    }[request.priority]
    return [len(cpus - first), len(cpus & last)]


def paid_for_threads(cpus: CpuSet, request: CpuRequest, machine: Machine) -> int:
    """Count second threads or broken idle cores, whichever the request minds."""
    cores = [core.cpus for core in machine.cores if core.cpus & cpus]
    if request.cores is CoreUse.ONE_THREAD:
        return sum(len(core & cpus) - (not core & request.held) for core in cores)
    if request.cores is CoreUse.FRAGMENTS:
        return sum(core <= request.free and not core & request.held for core in cores)
    return 0


def price(cpus: CpuSet, request: CpuRequest, machine: Machine) -> list[int]:
    """Return the costs in the documented order of comparison."""
    counts = touched(cpus, machine, request.held)
    wide = [n for n, (is_wide, _) in enumerate(levels(machine), 1) if is_wide][-1]
    return [
        -len(cpus & request.near),
        len(cpus & request.far),
        *counts[:wide],
        *paid_for_classes(cpus, request, machine),
        paid_for_threads(cpus, request, machine),
        *counts[wide:],
    ]


def picks(cpus: CpuSet, count: int) -> Iterator[CpuSet]:
    return map(CpuSet.from_iterable, itertools.combinations(cpus, count))


@given(preferring_requests())
def test_takes_the_wanted_number_of_free_cpus(case: Case) -> None:
    request, machine = case[0], machine_of(case[1])
    pick = allocate_cpus(request, machine)

    assert len(pick.cpus) == request.count
    assert pick.cpus <= request.free


@given(requests())
def test_touches_the_fewest_groups_that_can_hold_the_request(case: Case) -> None:
    request, machine = case[0], machine_of(case[1])
    pick = allocate_cpus(request, machine)
    fewest = min(
        touched(other, machine) for other in picks(request.free, request.count)
    )

    assert touched(pick.cpus, machine) == fewest


# CpuPreferences meet in many ways, most of them rare.
@examples(4)
@given(preferring_requests())
def test_no_other_pick_is_better(case: Case) -> None:
    request, machine = case[0], machine_of(case[1])
    pick = allocate_cpus(request, machine)
    least = min(
        price(other, request, machine) for other in picks(request.free, request.count)
    )

    assert price(pick.cpus, request, machine) == least


@given(requests(), st.sampled_from((1, -1)))
def test_of_groups_as_good_the_tightest_or_the_roomiest_wins(
    case: Case, sign: int
) -> None:
    request, machine = (
        msgspec.structs.replace(case[0], spread=sign < 0),
        machine_of(case[1]),
    )
    pick = allocate_cpus(request, machine)

    def rank(cpus: CpuSet) -> tuple[list[int], list[int]]:
        rooms = [sign * size for size in room(cpus, request.free, machine)]
        return touched(cpus, machine), rooms

    assert rank(pick.cpus) == min(map(rank, picks(request.free, request.count)))


@given(requests())
def test_refuses_only_impossible_requests(case: Case) -> None:
    request, machine = case[0], machine_of(case[1])
    with pytest.raises(CpusExhausted) as refusal:
        allocate_cpus(CpuRequest(len(request.free) + 1, request.free), machine)

    assert refusal.value.wanted == len(request.free) + 1
    assert refusal.value.free == request.free


@given(preferring_requests())
def test_asking_again_after_release_gives_the_same(case: Case) -> None:
    request, machine = case[0], machine_of(case[1])
    first = allocate_cpus(request, machine)
    # Another model of the same machine is as good as the first.
    again = msgspec.structs.replace(machine)
    rest = request.free - first.cpus
    given_back = release_cpus(first.cpus, request.count, machine)

    assert given_back.cpus == first.cpus
    assert rest | given_back.cpus == request.free
    assert allocate_cpus(request, again) == first


@given(requests())
def test_the_rest_after_a_release_is_as_compact_as_possible(case: Case) -> None:
    request, machine = case[0], machine_of(case[1])
    gone = release_cpus(
        request.free, request.count, machine, CpuPreferences(priority=ANY)
    )
    stay = request.free - gone.cpus
    fewest = min(touched(other, machine) for other in picks(request.free, len(stay)))

    assert len(gone.cpus) == request.count
    assert gone.cpus <= request.free
    assert touched(stay, machine) == fewest


@given(requests())
def test_the_level_is_the_narrowest_one_that_holds_the_pick(case: Case) -> None:
    request, machine = case[0], machine_of(case[1])
    pick = allocate_cpus(request, machine)
    holding = touched(pick.cpus, machine).count(1)

    assert (pick.level == "machine") == (holding == 0 and request.count > 1)
    assert (pick.level == "thread") == (request.count <= 1)
