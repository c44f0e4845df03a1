"""Laws of the memory ledger's amounts, compared with a recount."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.policy.mems import (
    BASE_PAGES,
    MemoryLedger,
    MemoryOffer,
    MemoryRequest,
    replace_memory,
    resize_memory,
)
from nri_resmgr.topology import HugePages
from nri_resmgr.values import Bytes, NodeSet, PolicyError
from tests.policy.mems.stories import (
    PAGE,
    PAGES,
    Situation,
    asked,
    fits,
    held_by,
    offered,
    requests_of,
    situations,
    subsets,
    zones_of,
)


def most_that_fits(case: Situation, nodes: NodeSet, page: Bytes) -> int:
    """Count up until a request in just these nodes does not fit."""
    zones = {**zones_of(case.ledger), "more": nodes}
    for amount in range(100):
        size = amount + 1 if page == BASE_PAGES else 0
        pools = (HugePages(PAGE, amount + 1),) if page == PAGE else ()
        more = MemoryRequest(
            id="more", affinity=nodes, size=Bytes(size), hugepages=pools
        )
        if not fits(zones, (*requests_of(case.ledger), more), case.machine):
            return amount * (page or 1)
    raise AssertionError(nodes)


@given(situations())
def test_amounts_are_those_of_a_recount(case: Situation) -> None:
    zones = zones_of(case.ledger)

    for nodes in subsets(case.machine.node_ids):
        for page in PAGES:
            held = held_by(nodes & case.machine.memory_nodes, page, case.machine)
            used = sum(
                asked(one, page)
                for one in requests_of(case.ledger)
                if zones[one.id] <= nodes
            )
            ledger = case.ledger
            shown = ledger.capacity(nodes, page), ledger.usage(nodes, page)
            assert (*shown, ledger.free(nodes, page)) == (held, used, held - used)


@given(situations())
def test_what_is_available_is_the_most_that_fits(case: Situation) -> None:
    for nodes in subsets(case.machine.memory_nodes):
        for page in PAGES:
            most = most_that_fits(case, nodes, page) if nodes else 0
            available = case.ledger.available(nodes, page)
            assert available // (page or 1) * (page or 1) == most


@given(case=situations(), size=st.integers(0, 9), resize=st.booleans())
def test_amounts_kept_are_amounts_counted(
    *, case: Situation, size: int, resize: bool
) -> None:
    offer = offered(case.request, case.ledger)
    ledger = offer.ledger if isinstance(offer, MemoryOffer) else case.ledger
    for name in tuple(ledger.grants):
        request = msgspec.structs.replace(ledger.grants[name].request, size=Bytes(size))
        try:
            ledger = (
                resize_memory(name, Bytes(size), request.hugepages, ledger)
                if resize
                else replace_memory(request, ledger)
            ).commit(ledger)
        except PolicyError:
            ledger = ledger.release(name)

    again = MemoryLedger.counted(ledger.layout, ledger.grants)
    assert {page: zones for page, zones in ledger.accounts.sums.items() if zones} == {
        page: zones for page, zones in again.accounts.sums.items() if zones
    }
    assert fits(zones_of(ledger), requests_of(ledger), case.machine)
