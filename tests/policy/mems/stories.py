"""Drawn machines and what was asked of them, small enough for brute force."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

import attrs
import msgspec
from hypothesis import strategies as st

from nri_resmgr.policy.mems import (
    BASE_PAGES,
    MemoryLedger,
    MemoryOffer,
    MemoryPriority,
    MemoryRequest,
    allocate_memory,
)
from nri_resmgr.topology import HugePages, Machine, MemoryKind, Node
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import Bytes, NodeSet, PolicyError

PAGE = Bytes(2)
PAGES = (BASE_PAGES, PAGE)

# Small enough that all zones of four requests can be tried; ids may have gaps.
SPECS = (
    "2s1c memory=6 ids=0,3",
    "3s1c memory=6,2,4",
    "2s1c memory=5,0 cxl=1x6 ids=1,2,5",
    "1s1c memory=6 pmem=1x6:movable hbm=1x3",
    "2s1c memory=4 pmem=1x8 distances=10,21,17;21,10,28;17,28,10",
    "3s1c memory=4 distances=10,11,21;11,10,11;21,30,10",
    "2s1c memory=5 hbm=2x2 ids=0,1,8,9",
)


@attrs.frozen(eq=False)
class Situation:
    """A ledger with a history, and a request without an answer yet."""

    machine: Machine
    ledger: MemoryLedger
    request: MemoryRequest


@lru_cache
def machine_of(spec: str, pools: tuple[int, ...]) -> Machine:
    """Build the machine of a spec, with *pools* of huge pages."""
    machine = parse_spec(spec)
    nodes = zip(machine.nodes, pools, strict=False)
    return msgspec.structs.replace(
        machine, nodes=tuple(_with_pool(*pair) for pair in nodes)
    )


def _with_pool(node: Node, count: int) -> Node:
    count = min(count, node.memory // PAGE)
    pool = (HugePages(PAGE, count),) if count else ()
    return msgspec.structs.replace(node, hugepages=pool)


machines = st.builds(
    machine_of,
    st.sampled_from(SPECS),
    st.just((0,) * 4) | st.tuples(*[st.integers(0, 2)] * 4),
)


KINDS = ((), (), (), *((kind,) for kind in MemoryKind), tuple(MemoryKind)[::2])
PRIORITIES = (*MemoryPriority, *[MemoryPriority.BURSTABLE, MemoryPriority.GUARANTEED])


@st.composite
def requests(draw: st.DrawFn, name: str, ledger: MemoryLedger) -> MemoryRequest:
    """Draw a request; many want a little more or less than there is room for."""
    ids = tuple(NodeSet(ledger.layout.known))
    near = draw(st.just(ids[:1]) | st.sets(st.sampled_from(ids), min_size=1))
    room = ledger.available(NodeSet.from_iterable(near))
    size = draw(st.integers(0, 3) | st.integers(max(0, room - 1), room + 6))
    return MemoryRequest(
        id=name,
        affinity=NodeSet.from_iterable(near),
        size=Bytes(size),
        hugepages=draw(st.sampled_from(((), (), (HugePages(PAGE, 1),)))),
        kinds=frozenset(draw(st.sampled_from(KINDS))),
        strict=draw(st.sampled_from((False, False, True))),
        priority=draw(st.sampled_from(PRIORITIES)),
    )


def neighbours(
    name: str, size: int, ledger: MemoryLedger
) -> st.SearchStrategy[MemoryRequest]:
    """Draw a request of some size for the first node, beside any others."""
    first = NodeSet.of(NodeSet(ledger.layout.nodes).first)
    return st.builds(
        MemoryRequest,
        id=st.just(name),
        affinity=st.just(first),
        size=st.integers(size, 2 * size).map(Bytes),
        hugepages=st.sampled_from(((), (HugePages(PAGE, 1),))),
        priority=st.sampled_from(MemoryPriority),
    )


@st.composite
def situations(draw: st.DrawFn, most: int = 5) -> Situation:
    """Draw a machine, a ledger with up to *most* requests, and another request.

    In half of the situations all crowd on one node and the last one is big, so
    that it takes several to make room.
    """
    machine = draw(machines)
    ledger = MemoryLedger.of(machine)
    crowded = draw(st.booleans())
    for number in range(draw(st.integers(most // 2, most))):
        if number and draw(st.integers(0, 4)) == 0:
            ledger = ledger.release(draw(st.sampled_from("rstuv"[:number])))
        name = "rstuv"[number]
        request = neighbours(name, 1, ledger) if crowded else requests(name, ledger)
        ledger = granted(ledger, draw(request))
    last = neighbours("x", 3, ledger) if crowded else requests("x", ledger)
    return Situation(machine, ledger, draw(last))


def offered(request: MemoryRequest, ledger: MemoryLedger) -> MemoryOffer | PolicyError:
    try:
        return allocate_memory(request, ledger)
    except PolicyError as refusal:
        return refusal


def granted(ledger: MemoryLedger, request: MemoryRequest) -> MemoryLedger:
    """Return the ledger after a request, granted or not."""
    offer = offered(request, ledger)
    return offer.ledger if isinstance(offer, MemoryOffer) else ledger


Zones = Mapping[str, NodeSet]


def subsets(nodes: NodeSet) -> Iterator[NodeSet]:
    for count in range(len(nodes) + 1):
        yield from map(NodeSet.from_iterable, itertools.combinations(nodes, count))


def held_by(nodes: NodeSet, page: Bytes, machine: Machine) -> int:
    """Recount what nodes hold, from the machine itself."""
    pools = {
        node.id: {pool.size: pool.size * pool.count for pool in node.hugepages}
        for node in machine.nodes
        if node.id in nodes
    }
    if page == BASE_PAGES:
        total = sum(node.memory for node in machine.nodes if node.id in nodes)
        return total - sum(sum(sizes.values()) for sizes in pools.values())
    return sum(sizes.get(page, 0) for sizes in pools.values())


def asked(request: MemoryRequest, page: Bytes) -> int:
    if page == BASE_PAGES:
        return request.size
    return sum(p.size * p.count for p in request.hugepages if p.size == page)


@lru_cache
def shelves(machine: Machine) -> tuple[tuple[int, Bytes, int], ...]:
    """Return every set of nodes, as bits, with what it holds of each page size."""
    return tuple(
        (nodes.bits, page, held_by(nodes, page, machine))
        for nodes in subsets(machine.memory_nodes)
        for page in PAGES
    )


def fits(zones: Zones, asking: Iterable[MemoryRequest], machine: Machine) -> bool:
    """Return by Hall's theorem whether all find room: look at every set of nodes."""
    needs = [(zones[r.id].bits, page, asked(r, page)) for r in asking for page in PAGES]
    return all(
        sum(n for zone, of, n in needs if of == page and not zone & ~nodes) <= held
        for nodes, page, held in shelves(machine)
    )


def zones_of(ledger: MemoryLedger) -> dict[str, NodeSet]:
    return {key: grant.zone for key, grant in ledger.grants.items()}


def requests_of(ledger: MemoryLedger) -> tuple[MemoryRequest, ...]:
    return tuple(grant.request for grant in ledger.grants.values())
