"""What happens to requests that are already there: growing, resizing, restarts."""

from __future__ import annotations

import msgspec
import pytest

from nri_resmgr.policy.mems import (
    BASE_PAGES,
    MemoryLedger,
    MemoryOffer,
    MemoryPriority,
    MemoryRequest,
    MemoryShort,
    Spill,
    StaleOffer,
    Widening,
    ZoneRule,
    allocate_memory,
    grow_memory,
    replace_memory,
    resize_memory,
    restore_memory,
)
from nri_resmgr.topology import HugePages, MemoryKind
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import NO_NODES, Bytes, NodeSet

nodes = NodeSet.parse
PMEM, HBM = MemoryKind.PMEM, MemoryKind.HBM
MIB = 1 << 20
HUGE = Bytes(2 * MIB)

#  nodes 0-3: DRAM, pairs 0-2 and 1-3     nodes 4-7: PMEM beside 0, 2, 1, 3
EIGHT_NODES = parse_spec(
    "4s1c memory=4 pmem=4x4 distances=10,21,11,21,17,28,28,28;21,10,21,11,28,28,17,28;"
    "11,21,10,21,28,17,28,28;21,11,21,10,28,28,28,17;17,28,28,28,10,28,28,28;"
    "28,28,17,28,28,10,28,28;28,17,28,28,28,28,10,28;28,28,28,17,28,28,28,10"
)
TWO_NODES = parse_spec("2s1c memory=8")
POOLS = parse_spec("2s1c memory=16Mi hugepages=2Mi:4")
EMPTY = MemoryLedger.of(TWO_NODES)


def wish(name: str, near: str, size: int, pages: int = 0) -> MemoryRequest:
    pool = (HugePages(HUGE, pages),) if pages else ()
    return MemoryRequest(
        id=name, affinity=nodes(near), size=Bytes(size), hugepages=pool
    )


def with_all(ledger: MemoryLedger, *requests: MemoryRequest) -> MemoryLedger:
    for request in requests:
        ledger = allocate_memory(request, ledger).commit(ledger)
    return ledger


HELD = with_all(EMPTY, wish("a", "0", 1))


def zones(ledger: MemoryLedger) -> str:
    return " ".join(f"{key}:{grant.zone}" for key, grant in ledger.grants.items())


@pytest.mark.parametrize(
    ("near", "more", "kinds", "after", "rule"),
    [
        pytest.param("0", "1", (), "0-1", "grown", id="a node, and no more than it"),
        pytest.param("0", "", (PMEM,), "0,4", "grown", id="the nearest of a kind"),
        pytest.param("1", "", (PMEM,), "1,6", "grown", id="the nearest, seen from 1"),
        pytest.param("0,2", "", (PMEM,), "0,2,4-5", "grown", id="the nearest to each"),
        pytest.param("0", "1,6", (PMEM,), "0,6", "grown", id="nodes of the kind only"),
        pytest.param("0", "1", (PMEM,), "0,4", "grown", id="a kind that 1 has not"),
        pytest.param("0-1", "1", (), "0-1", "kept", id="what it has already"),
        pytest.param("0", "", (HBM,), "0", "kept", id="a kind that no node has"),
        pytest.param("0", "", (), "0", "kept", id="nothing at all"),
    ],
)
def test_grows_by_the_requested_nodes_and_kinds(
    near: str, more: str, kinds: tuple[MemoryKind, ...], after: str, rule: str
) -> None:
    ledger = with_all(MemoryLedger.of(EIGHT_NODES), wish("a", near, 2))
    offer = grow_memory("a", ledger, nodes=nodes(more), kinds=kinds)

    assert (str(offer.zone), offer.rules) == (after, (ZoneRule(rule),))


def test_a_kind_that_was_added_stays_allowed_where_kinds_are_strict() -> None:
    strict = msgspec.structs.replace(wish("a", "0", 2), strict=True)
    ledger = with_all(MemoryLedger.of(EIGHT_NODES), strict)
    grown = grow_memory("a", ledger, kinds=(PMEM,)).ledger

    offer = resize_memory("a", Bytes(20), (), grown)

    assert str(offer.zone) == "0,2,4-7"


def test_a_strict_request_with_a_node_of_another_kind_gets_no_more_of_it() -> None:
    request = msgspec.structs.replace(
        wish("a", "0", 20), kinds=frozenset({MemoryKind.DRAM}), strict=True
    )
    offer = restore_memory(request, nodes("0,4"), MemoryLedger.of(EIGHT_NODES))

    assert str(offer.zone) == "0-4"


def test_a_larger_size_keeps_the_nodes_and_moves_the_younger() -> None:
    ledger = with_all(EMPTY, wish("a", "0", 4), wish("b", "0", 4))
    offer = resize_memory("a", Bytes(6), (), ledger)
    short = Spill(nodes("0"), BASE_PAGES, Bytes(2))

    assert offer.widened == (Widening("b", nodes("0"), nodes("0-1"), short),)
    assert zones(offer.ledger) == "a:0 b:0-1"
    assert offer.rules == (ZoneRule.KEPT,)


def test_a_smaller_size_narrows_nothing() -> None:
    ledger = with_all(EMPTY, wish("a", "0", 6), wish("b", "0", 6))
    offer = resize_memory("a", Bytes(1), (), ledger)

    assert zones(ledger) == zones(offer.ledger) == "a:0 b:0-1"
    assert offer.ledger.free(nodes("0")) == 7


def test_a_release_leaves_the_older_ledger_as_it_was() -> None:
    ledger = with_all(EMPTY, wish("a", "0", 6), wish("b", "1", 8))
    after = ledger.release("a", "b", "missing")

    assert [zones(one) for one in (ledger, after)] == ["a:0 b:1", ""]
    assert [one.available(nodes("0-1")) for one in (ledger, after)] == [2, 16]


def test_replacing_narrows_the_zone_of_its_own_request() -> None:
    ledger = with_all(EMPTY, wish("a", "0", 6), wish("b", "0", 6)).release("a")
    offer = replace_memory(ledger.grants["b"].request, ledger)

    assert (zones(ledger), zones(offer.ledger)) == ("b:0-1", "b:0")


def test_replacing_keeps_the_age() -> None:
    ledger = with_all(EMPTY, wish("a", "0", 4), wish("b", "0", 4))
    again = replace_memory(wish("a", "0", 4), ledger).ledger

    assert again == ledger


def test_a_restart_gives_back_the_zones_in_any_order() -> None:
    before = with_all(EMPTY, wish("a", "0", 6), wish("b", "0", 6))
    after = EMPTY
    for name in ("b", "a"):
        offer = restore_memory(before.grants[name].request, before.zone_of(name), after)
        assert (offer.rules, offer.widened) == ((ZoneRule.KEPT,), ())
        after = offer.commit(after)

    assert zones(after) == "b:0-1 a:0"


def test_a_refused_change_leaves_the_old_grant() -> None:
    ledger = with_all(EMPTY, wish("a", "0", 6), wish("b", "0", 6))
    before = zones(ledger)

    with pytest.raises(MemoryShort):
        resize_memory("a", Bytes(11), (), ledger)
    assert zones(ledger) == before


def offers() -> tuple[MemoryLedger, MemoryOffer, MemoryOffer]:
    first, second = (allocate_memory(wish(name, "0", 2), EMPTY) for name in "ab")
    return EMPTY, first, second


def test_the_second_of_two_offers_is_stale_once_the_first_holds() -> None:
    ledger, first, second = offers()
    changed = first.commit(ledger)

    with pytest.raises(StaleOffer, match="the ledger changed since b was offered"):
        second.commit(changed)


def test_an_offer_holds_again_once_its_ledger_is_back() -> None:
    ledger, first, second = offers()
    back = first.commit(ledger).release("a")

    assert zones(second.commit(back)) == "b:0"


def test_a_reservation_takes_room_and_never_moves() -> None:
    reserve = msgspec.structs.replace(
        wish("system", "0", 6), priority=MemoryPriority.RESERVATION
    )
    important = msgspec.structs.replace(
        wish("a", "0", 4), priority=MemoryPriority.PRESERVED
    )

    assert zones(with_all(EMPTY, reserve, important)) == "system:0 a:0-1"


def test_huge_pages_are_counted_by_size_and_no_ordinary_memory() -> None:
    ledger = with_all(MemoryLedger.of(POOLS), wish("a", "0", 3 * MIB, pages=3))
    zone = nodes("0")
    amounts = {
        page: (
            ledger.capacity(zone, page),
            ledger.usage(zone, page),
            ledger.free(zone, page),
            ledger.available(zone, page),
        )
        for page in (BASE_PAGES, HUGE, Bytes(1 << 30))
    }

    assert amounts == {
        BASE_PAGES: (8 * MIB, 3 * MIB, 5 * MIB, 5 * MIB),
        HUGE: (8 * MIB, 6 * MIB, 2 * MIB, 2 * MIB),
        Bytes(1 << 30): (0, 0, 0, 0),
    }


def test_a_zone_is_widened_for_the_huge_pages_alone() -> None:
    ledger = with_all(MemoryLedger.of(POOLS), wish("a", "0", 0, pages=3))
    offer = allocate_memory(wish("b", "0", MIB, pages=2), ledger)
    short = Spill(nodes("0"), HUGE, Bytes(2 * MIB))

    assert offer.widened == (Widening("b", nodes("0"), nodes("0-1"), short),)


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda one: allocate_memory(one("a", "0"), HELD), id="twice"),
        pytest.param(
            lambda one: allocate_memory(one("b", "7"), HELD), id="no such node"
        ),
        pytest.param(lambda one: allocate_memory(one("b", ""), HELD), id="nowhere"),
        pytest.param(
            lambda one: restore_memory(one("a", "0"), nodes("0"), HELD),
            id="restored twice",
        ),
        pytest.param(
            lambda one: restore_memory(one("b", "0"), NO_NODES, HELD),
            id="restored nowhere",
        ),
        pytest.param(
            lambda one: restore_memory(one("b", "0"), nodes("0,7"), HELD),
            id="restored on a node that is gone",
        ),
        pytest.param(lambda one: one("b", "0", -1), id="less than nothing"),
        pytest.param(lambda one: one("b", "0", 1, -1), id="fewer pages than none"),
    ],
)
def test_a_bug_of_the_caller_is_a_value_error(call: object) -> None:
    def one(name: str, near: str, size: int = 1, pages: int = 0) -> MemoryRequest:
        return wish(name, near, size, pages)

    assert callable(call)
    with pytest.raises(ValueError):  # noqa: PT011 - the sentences are for developers
        call(one)
