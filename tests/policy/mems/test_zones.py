"""Where requests land and what is widened, on the machine of the reference."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

import pytest

from nri_resmgr.policy.mems import (
    MemoryLedger,
    MemoryPriority,
    MemoryRequest,
    ZoneRule,
    allocate_memory,
)
from nri_resmgr.topology import Machine, MemoryKind
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import Bytes, NodeSet

nodes = NodeSet.parse
DRAM, PMEM = MemoryKind.DRAM, MemoryKind.PMEM
GUARANTEED, PRESERVED = MemoryPriority.GUARANTEED, MemoryPriority.PRESERVED

DISTANCES = (
    "10,21,11,21,17,28,28,28;21,10,21,11,28,28,17,28;11,21,10,21,28,17,28,28;"
    "21,11,21,10,28,28,28,17;17,28,28,28,10,28,28,28;28,28,17,28,28,10,28,28;"
    "28,17,28,28,28,28,10,28;28,28,28,17,28,28,28,10"
)
FOUR = "10,21,17,28;21,10,28,13;17,28,10,28;28,13,28,10"
FAR = "10,21,30,30;21,10,30,30;20,28,10,12;28,28,12,10"
UNEVEN = "10,21,28,30;21,10,30,17;28,30,10,28;30,17,28,10"
AT, AT_KIND = ZoneRule.AFFINITY, ZoneRule.NEAREST_KIND
AT_NORMAL = ZoneRule.NORMAL_MEMORY


def machine_with(pmem: str) -> Machine:
    return parse_spec(f"4s1c memory=4 pmem={pmem} distances={DISTANCES}")


#  nodes 0-3: DRAM, pairs 0-2 and 1-3     nodes 4-7: PMEM beside 0, 2, 1, 3
EIGHT_NODES = machine_with("4x4")
MOVABLE_PMEM = machine_with("4x4:movable")


def wish(
    name: str, near: str, size: int, *more: MemoryPriority | MemoryKind, strict: int = 0
) -> MemoryRequest:
    chosen = [word for word in more if isinstance(word, MemoryPriority)]
    kinds = frozenset(word for word in more if isinstance(word, MemoryKind)) or {DRAM}
    return MemoryRequest(
        id=name,
        affinity=nodes(near),
        size=Bytes(size),
        kinds=frozenset(kinds),
        strict=bool(strict),
        priority=chosen[0] if chosen else MemoryPriority.BURSTABLE,
    )


def granted(ledger: MemoryLedger, request: MemoryRequest) -> MemoryLedger:
    return allocate_memory(request, ledger).commit(ledger)


def after(requests: Iterable[MemoryRequest], machine: Machine) -> MemoryLedger:
    return reduce(granted, requests, MemoryLedger.of(machine))


LONG_STORY = [
    (wish("1", "0", 2), "1:0"),
    (wish("2", "2", 2), "2:2"),
    (wish("3", "0", 2), "3:0"),
    (wish("4", "2", 2), "4:2"),
    (wish("5", "0", 2, GUARANTEED), "5:0 3:0-3"),
    (wish("6", "2", 2, GUARANTEED), "6:2 4:0-3"),
    (wish("7", "0", 2, GUARANTEED), "7:0 1:0-3"),
    (wish("8", "2", 2, GUARANTEED), "8:2 2:0-3"),
    (wish("9", "1", 2), "9:1 4:0-7"),
    (wish("10", "3", 2), "10:3 3:0-7"),
    (wish("11", "1", 2), "11:1 2:0-7"),
    (wish("12", "3", 2), "12:3 1:0-7"),
    (wish("13", "1", 2), "13:0-7"),
]


def sentence(request: MemoryRequest, ledger: MemoryLedger) -> str:
    offer = allocate_memory(request, ledger)
    moves = (f"{one.id}:{one.after}" for one in offer.moved)
    return " ".join([f"{request.id}:{offer.zone}", *moves])


@pytest.mark.parametrize("step", range(len(LONG_STORY)), ids=lambda step: f"{step + 1}")
def test_the_long_story_of_the_reference(step: int) -> None:
    request, answer = LONG_STORY[step]
    ledger = after((earlier for earlier, _ in LONG_STORY[:step]), EIGHT_NODES)

    assert sentence(request, ledger) == answer


@pytest.mark.parametrize(
    ("earlier", "request_", "answer"),
    [
        pytest.param([], wish("a", "0,2", 6), "a:0,2", id="two nodes hold six"),
        pytest.param(
            [wish("a", "0,2", 6)],
            wish("b", "0", 3),
            "b:0 a:0-3",
            id="a wide grant is widened first",
        ),
        pytest.param(
            [wish("a", "0,2", 4, PRESERVED), wish("b", "0,2", 4)],
            wish("c", "0", 1),
            "c:0 b:0-3",
            id="a preserved one stays",
        ),
        pytest.param(
            [wish("a", "0-3", 8, strict=1), wish("b", "0-3", 8)],
            wish("c", "0", 1),
            "c:0 b:0-7",
            id="a strict one stays among its kind",
        ),
        pytest.param(
            [wish("a", "0", 4, PRESERVED), wish("b", "0,2", 4)],
            wish("c", "0,2", 1),
            "c:0-3",
            id="a small newcomer gives way itself",
        ),
    ],
)
def test_which_one_gives_way(
    earlier: list[MemoryRequest], request_: MemoryRequest, answer: str
) -> None:
    assert sentence(request_, after(earlier, EIGHT_NODES)) == answer


@pytest.mark.parametrize(
    ("machine", "request_", "zone", "rules"),
    [
        pytest.param(EIGHT_NODES, wish("a", "0,2", 1), "0,2", [AT], id="where asked"),
        pytest.param(
            EIGHT_NODES,
            wish("a", "0", 1, PMEM, strict=1),
            "4",
            [AT_KIND],
            id="the nearest node of the kind instead",
        ),
        pytest.param(
            EIGHT_NODES,
            wish("a", "0-1", 1, DRAM, PMEM),
            "0-1,4,6",
            [AT_KIND],
            id="the nearest nodes of the missing kind on top",
        ),
        pytest.param(
            parse_spec("2s1c memory=4 pmem=2x4 distances=" + UNEVEN),
            wish("a", "0-1", 1, DRAM, PMEM),
            "0-1,3",
            [AT_KIND],
            id="the nearest to any, not also what a lower id finds farther away",
        ),
        pytest.param(
            EIGHT_NODES,
            wish("a", "1", 1, MemoryKind.HBM, DRAM),
            "1",
            [AT],
            id="a kind that no node has is not missed",
        ),
        pytest.param(
            EIGHT_NODES,
            wish("a", "5", 1, MemoryKind.HBM),
            "5",
            [AT],
            id="what is there, if nothing that was asked for is",
        ),
        pytest.param(
            MOVABLE_PMEM,
            wish("a", "4", 1, PMEM),
            "0,4",
            [AT, AT_NORMAL],
            id="normal memory besides movable memory",
        ),
        pytest.param(
            MOVABLE_PMEM,
            wish("a", "0", 1, PMEM),
            "0,4",
            [AT_KIND, AT_NORMAL],
            id="normal memory again after the kind ruled it out",
        ),
        pytest.param(
            parse_spec("2s1c memory=4 dram=2x4:movable distances=" + FAR),
            wish("a", "2", 1),
            "0,2-3",
            [AT, AT_NORMAL],
            id="normal memory behind more movable memory of the same kind",
        ),
        pytest.param(
            parse_spec("2s1c memory=4,0 hbm=2x4 distances=" + FOUR),
            wish("a", "1", 1, MemoryKind.CXL),
            "0",
            [AT_KIND],
            id="DRAM, not HBM, for a node without memory",
        ),
    ],
)
def test_where_a_request_starts(
    machine: Machine, request_: MemoryRequest, zone: str, rules: list[ZoneRule]
) -> None:
    offer = allocate_memory(request_, MemoryLedger.of(machine))

    assert (str(offer.zone), offer.rules, offer.widened) == (zone, tuple(rules), ())


def test_the_kind_of_the_normal_memory_is_one_of_the_grants() -> None:
    ledger = granted(MemoryLedger.of(MOVABLE_PMEM), wish("a", "4", 1, PMEM))

    assert ledger.grants["a"].kinds == {DRAM, PMEM}
