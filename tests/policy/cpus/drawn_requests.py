"""Machines and requests to draw from, for the laws of the CPU allocator."""

from __future__ import annotations

import itertools
from functools import lru_cache

from hypothesis import strategies as st

from nri_resmgr.policy.cpus import CoreUse, CpuPriority, CpuRequest, PrioritySets
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import NO_CPUS, CpuSet

MOST_CPUS = 10  # that brute force can do

SHAPES = [
    f"{s}s{d}d{n}n{c}c{t}t{e}e{words}"
    for s, d, n, c, t, e in itertools.product(
        (1, 2, 3), (1, 2), (1, 2), range(1, 9), (1, 2, 4), (0, 2, 4)
    )
    for words in ("", " l3=2", " l3=3", " cluster=2", " cluster=2 l3=4")
    if 2 < s * d * n * (c * t + e) <= MOST_CPUS
]
OFFLINE = ("", "", " offline=1", " offline=2")
SMALL = st.tuples(st.sampled_from(SHAPES), st.sampled_from(OFFLINE)).map("".join)

LARGE = st.sampled_from(
    (
        "2s8c2t",
        "2s2n6c2t",
        "2s2n8c2t l3=4",
        "1s24c2t l3=4",
        "1s2d2n6c1t l3=3",
        "4s4c4t",
        "2s3c8t",
        "1s32c1t cluster=4 l3=8",
        "3s2n4c2t offline=3,5,9",
        "2s2n2c2t",
        "8c1t l3=3",
        "4c2t8e",
    )
)

RARELY = st.sampled_from((False, False, True))

Case = tuple[CpuRequest, str]

machine_of = lru_cache(parse_spec)


def subsets(cpus: CpuSet) -> st.SearchStrategy[CpuSet]:
    if not cpus:
        return st.just(NO_CPUS)
    return st.sets(st.sampled_from(tuple(cpus))).map(CpuSet.from_iterable)


@st.composite
def requests(draw: st.DrawFn) -> Case:
    """Draw a small machine and a request that only asks for a number of CPUs."""
    spec = draw(SMALL)
    free = draw(subsets(machine_of(spec).online))
    count = draw(st.integers(0, len(free)))
    return CpuRequest(count, free, priority=CpuPriority.ANY), spec


@st.composite
def preferring_requests(draw: st.DrawFn, specs: st.SearchStrategy[str] = SMALL) -> Case:
    """Draw a machine and a request with all kinds of preferences."""
    spec = draw(specs)
    machine = machine_of(spec)
    free = draw(subsets(machine.online))
    high = draw(subsets(machine.online))
    low = draw(subsets(machine.online)) - high
    some = st.one_of(st.just(NO_CPUS), subsets(machine.online))
    request = CpuRequest(
        draw(st.integers(0, len(free))),
        free,
        near=draw(some),
        far=draw(some),
        held=draw(some) - free,
        priority=draw(st.sampled_from(CpuPriority)),
        classes=draw(st.sampled_from((None, PrioritySets(high, low)))),
        spread=draw(st.booleans()),
        cores=draw(st.sampled_from(CoreUse)),
    )
    return request, spec


@st.composite
def uniform_requests(draw: st.DrawFn, specs: st.SearchStrategy[str] = LARGE) -> Case:
    """Draw a machine, whole cores and threads taken, and a request without classes."""
    spec = draw(specs)
    machine = machine_of(spec)
    cores = [core.cpus & machine.online for core in machine.cores]
    taken = CpuSet.union(draw(st.sets(st.sampled_from(cores))))
    free = machine.online - taken
    free -= draw(st.one_of(st.just(NO_CPUS), subsets(machine.online)))
    # Small numbers are where groups of several levels compete.
    most = draw(st.sampled_from((min(8, len(free)), len(free))))
    request = CpuRequest(
        draw(st.integers(0, most)),
        free,
        near=draw(subsets(machine.online)) if draw(RARELY) else NO_CPUS,
        held=draw(subsets(taken)) if draw(RARELY) else NO_CPUS,
        priority=CpuPriority.ANY,
        spread=draw(st.booleans()),
    )
    return request, spec
