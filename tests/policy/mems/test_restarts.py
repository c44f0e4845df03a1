"""What runs when we start: it is counted where it is, whatever became of the node."""

from __future__ import annotations

import pytest

from nri_resmgr.policy.mems import (
    MemoryLedger,
    MemoryPriority,
    MemoryRequest,
    adopt_memory,
    allocate_memory,
)
from nri_resmgr.topology import HugePages, MemoryKind
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import Bytes, NodeSet

nodes = NodeSet.parse
MIB = 1 << 20
HUGE = Bytes(2 * MIB)
HBM, PMEM = MemoryKind.HBM, MemoryKind.PMEM

#  nodes 0-1: 8 Mi of DRAM and 4 huge pages each     node 2: 8 Mi of movable PMEM
MACHINE = parse_spec("2s1c memory=16Mi pmem=1x8Mi:movable hugepages=2Mi:4")
EMPTY = MemoryLedger.of(MACHINE)


def running(
    size: int, pages: int = 0, kind: MemoryKind | None = None, *, strict: bool = False
) -> MemoryRequest:
    return MemoryRequest(
        id="a",
        affinity=nodes("0"),
        size=Bytes(size * MIB),
        hugepages=(HugePages(HUGE, pages),) if pages else (),
        kinds=frozenset({kind} if kind else ()),
        strict=strict,
    )


@pytest.mark.parametrize(
    ("request_", "zone", "granted", "demand"),
    [
        pytest.param(running(5), "1", "1", {0: 5 * MIB}, id="where it runs"),
        pytest.param(running(5), "1,7", "1", {0: 5 * MIB}, id="without a node gone"),
        pytest.param(running(5), "", "0-2", {0: 5 * MIB}, id="anywhere if not pinned"),
        pytest.param(
            running(5),
            "7",
            "0-2",
            {0: 5 * MIB},
            id="anywhere if all its nodes are gone",
        ),
        pytest.param(running(9), "1", "0-1", {0: 9 * MIB}, id="wider if it must"),
        pytest.param(
            running(99), "1", "0-2", {0: 24 * MIB}, id="as much as the machine has"
        ),
        pytest.param(
            running(5, 9),
            "1",
            "0-1",
            {0: 5 * MIB, HUGE: 16 * MIB},
            id="huge pages, too",
        ),
        pytest.param(
            running(99, 9), "1", "0-2", {0: 24 * MIB, HUGE: 16 * MIB}, id="both cut"
        ),
        pytest.param(
            running(5, kind=PMEM, strict=True), "2", "2", {0: 5 * MIB}, id="all movable"
        ),
        pytest.param(
            running(9, kind=HBM, strict=True),
            "0",
            "0-1",
            {0: 9 * MIB},
            id="strict about a kind that is gone: wider among those it has",
        ),
        pytest.param(
            running(9, kind=HBM, strict=True),
            "2",
            "2",
            {0: 8 * MIB},
            id="strict about a kind that is gone: among those it has",
        ),
    ],
)
def test_running_containers_are_counted(
    request_: MemoryRequest, zone: str, granted: str, demand: dict[int, int]
) -> None:
    offer = adopt_memory(request_, nodes(zone), EMPTY)

    assert (str(offer.zone), dict(offer.grant.request.demand)) == (granted, demand)


def test_others_are_reported_of_by_id() -> None:
    ledger = EMPTY
    for name, priority in (("b", 0), ("c", 16384)):
        wish = MemoryRequest(
            id=name,
            affinity=nodes("0"),
            size=Bytes(4 * MIB),
            priority=MemoryPriority(priority),
        )
        ledger = allocate_memory(wish, ledger).commit(ledger)
    offer = adopt_memory(running(4), nodes("0"), ledger)

    assert offer.updates == {"b": nodes("0-1")}
    assert str(offer.zone) == "0"


def test_a_container_cannot_be_counted_twice() -> None:
    ledger = adopt_memory(running(1), nodes("0"), EMPTY).commit(EMPTY)

    with pytest.raises(ValueError, match="a has memory already"):
        adopt_memory(running(1), nodes("0"), ledger)
