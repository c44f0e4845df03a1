"""Which grants are widened, how far and why, where nodes stand in a row."""

from __future__ import annotations

import msgspec
import pytest

from nri_resmgr.policy.mems import (
    BASE_PAGES,
    MemoryLedger,
    MemoryPriority,
    MemoryRequest,
    Spill,
    Widening,
    allocate_memory,
    restore_memory,
)
from nri_resmgr.topology import MemoryKind
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import Bytes, NodeSet

#  0 - 1 - 2 - 3, 12 bytes each
ROW = parse_spec(
    "4s1c memory=12 distances=10,11,21,31;11,10,11,21;21,11,10,11;31,21,11,10"
)
CXL, DRAM, HBM, PMEM = sorted(MemoryKind)
BURSTABLE, GUARANTEED = MemoryPriority.BURSTABLE, MemoryPriority.GUARANTEED


def plain(name: str, near: str, size: int) -> MemoryRequest:
    return MemoryRequest(
        id=name, affinity=NodeSet.parse(near), size=Bytes(size), priority=BURSTABLE
    )


def vital(name: str, near: str, size: int) -> MemoryRequest:
    return MemoryRequest(
        id=name, affinity=NodeSet.parse(near), size=Bytes(size), priority=GUARANTEED
    )


def kept(name: str, near: str, size: int) -> MemoryRequest:
    return msgspec.structs.replace(
        plain(name, near, size), priority=MemoryPriority.RESERVATION
    )


def went(name: str, before: str, after: str, nodes: str, over: int) -> Widening:
    why = Spill(NodeSet.parse(nodes), BASE_PAGES, Bytes(over))
    return Widening(name, NodeSet.parse(before), NodeSet.parse(after), why)


@pytest.mark.parametrize(
    ("earlier", "last", "widened"),
    [
        pytest.param(
            [plain("a", "0", 6)],
            vital("b", "0", 6),
            [],
            id="none while there is room",
        ),
        pytest.param(
            [plain("a", "0", 6), plain("b", "0", 6)],
            vital("c", "0", 1),
            [went("b", "0", "0-1", "0", 1)],
            id="the younger of two alike",
        ),
        pytest.param(
            [plain("a", "0", 6), plain("b", "0", 2), plain("c", "0", 4)],
            vital("d", "0", 3),
            [went("c", "0", "0-1", "0", 3)],
            id="the smallest that is enough alone",
        ),
        pytest.param(
            [
                plain("a", "0", 2),
                plain("b", "0", 3),
                plain("c", "0", 2),
                plain("d", "0", 4),
            ],
            vital("e", "0", 8),
            [went("b", "0", "0-1", "0", 7), went("d", "0", "0-1", "0", 7)],
            id="few large ones rather than many small ones, ties broken by age",
        ),
        pytest.param(
            [plain("a", "0", 3), plain("b", "0", 3), plain("c", "0", 2)],
            vital("d", "0", 9),
            [
                went("b", "0", "0-1", "0", 5),
                went("c", "0", "0-1", "0", 5),
            ],
            id="the youngest of the largest, then the smallest that is enough",
        ),
        pytest.param(
            [vital("a", "0", 3), plain("b", "0", 4)],
            vital("c", "0", 8),
            [went("b", "0", "0-1", "0", 3)],
            id="a large unimportant one before a small important one",
        ),
        pytest.param(
            [plain("a", "0", 2), vital("b", "0", 4), plain("c", "0", 2)],
            vital("d", "0", 8),
            [went("a", "0", "0-1", "0", 4), went("c", "0", "0-1", "0", 4)],
            id="all the unimportant ones before an important one",
        ),
        pytest.param(
            [plain("a", "0-1", 4), plain("b", "0", 2), plain("c", "1", 12)],
            vital("d", "0", 8),
            [went("a", "0-1", "0-2", "0-1", 2)],
            id="the wide one, though a narrow one is enough and younger",
        ),
        pytest.param(
            [kept("a", "0", 6), plain("b", "0", 1)],
            vital("c", "0", 12),
            [went("c", "0", "0-1", "0", 7)],
            id="the new one where the others have too little to give",
        ),
        pytest.param(
            [plain("a", "1", 12)],
            vital("b", "1", 24),
            [went("b", "1", "0-2", "1", 24)],
            id="none that just fits beside the new one",
        ),
        pytest.param(
            [plain("a", "2", 4), plain("b", "1-2", 8), vital("c", "1-2", 12)],
            kept("d", "1-2", 14),
            [went("b", "1-2", "0-3", "1-2", 14), went("c", "1-2", "0-3", "1-2", 14)],
            id="the narrow one goes back where one of two may",
        ),
        pytest.param(
            [kept("a", "0", 12), kept("b", "1", 12), plain("c", "2", 6)],
            vital("d", "0", 18),
            [went("d", "0", "0-3", "0-2", 12)],
            id="ring by ring past what is reserved",
        ),
        pytest.param(
            [plain("a", "0", 12)],
            vital("b", "0", 15),
            [went("a", "0", "0-2", "0-1", 3), went("b", "0", "0-1", "0", 15)],
            id="the important one no farther than it must",
        ),
        pytest.param(
            [vital("a", "2-3", 15), plain("b", "3", 3)],
            vital("c", "3", 12),
            [went("a", "2-3", "1-3", "2-3", 6), went("b", "3", "2-3", "3", 3)],
            id="one step back where a later one made two needless",
        ),
        pytest.param(
            [vital("a", "2-3", 15)],
            plain("b", "3", 15),
            [went("b", "3", "1-3", "2-3", 6)],
            id="the last of several shortages is reported",
        ),
        pytest.param(
            [vital("a", "0", 15)],
            plain("b", "1", 15),
            [went("b", "1", "0-2", "1", 3)],
            id="the tightest of two shortages is reported",
        ),
    ],
)
def test_which_how_far_and_why(
    earlier: list[MemoryRequest], last: MemoryRequest, widened: list[Widening]
) -> None:
    ledger = MemoryLedger.of(ROW)
    for request in earlier:
        ledger = allocate_memory(request, ledger).commit(ledger)

    assert list(allocate_memory(last, ledger).widened) == widened


def test_a_grant_with_memory_of_another_kind_is_widened_by_that_kind() -> None:
    machine = parse_spec("2s1c memory=4 pmem=2x4")  # PMEM nodes 2 and 3
    offer = restore_memory(
        plain("a", "0", 9), NodeSet.of(0, 2), MemoryLedger.of(machine)
    )

    assert str(offer.zone) == "0-3"


def test_other_kinds_come_one_after_the_other() -> None:
    machine = parse_spec("1s1c memory=4 hbm=1x4 pmem=1x4 cxl=1x4")
    kinds = [
        [machine.node(node).kind for node in allocate_memory(request, ledger).zone]
        for ledger in [MemoryLedger.of(machine)]
        for request in (plain("a", "0", size) for size in (4, 8, 12, 16))
    ]

    assert [sorted(row) for row in kinds] == [
        [DRAM],
        [CXL, DRAM],
        [CXL, DRAM, PMEM],
        [CXL, DRAM, HBM, PMEM],
    ]
