"""Laws of memory offers: whether a request fits, and the smallest zone that fits."""

from __future__ import annotations

import msgspec
from hypothesis import event, given
from hypothesis import strategies as st

from nri_resmgr.policy.mems import (
    MemoryFit,
    MemoryOffer,
    MemoryRequest,
    ZoneRule,
    adopt_memory,
    fit_memory,
)
from nri_resmgr.values import Bytes, NodeSet, PolicyError
from tests.policy.mems.stories import (
    PAGES,
    Situation,
    asked,
    fits,
    offered,
    requests_of,
    situations,
    subsets,
    zones_of,
)


def asked_of(near: NodeSet, case: Situation) -> MemoryFit | PolicyError:
    try:
        return fit_memory(case.request, case.ledger, near)
    except PolicyError as refusal:
        return refusal


@given(situations())
def test_a_request_fits_where_the_offer_widens_nothing(case: Situation) -> None:
    for near in subsets(case.machine.node_ids):
        if not near:
            continue
        offer = offered(
            msgspec.structs.replace(case.request, affinity=near), case.ledger
        )
        fit = asked_of(near, case)
        if isinstance(fit, PolicyError):
            assert str(fit) == str(offer)
            continue
        event(f"fits: {fit.fits}")
        assert fit.fits == (isinstance(offer, MemoryOffer) and not offer.widened)
        if fit.fits and isinstance(offer, MemoryOffer):
            assert (fit.zone, fit.rules) == (offer.zone, offer.rules)


@given(situations())
def test_without_nodes_of_its_own_the_affinity_counts(case: Situation) -> None:
    fit = asked_of(case.request.affinity, case)
    if isinstance(fit, MemoryFit):
        assert fit_memory(case.request, case.ledger) == fit


def reach(request: MemoryRequest, zone: NodeSet, case: Situation) -> NodeSet:
    """Return where a container that runs in *zone* may be widened to."""
    if request.priority.name == "RESERVATION":
        return zone
    if not request.strict:
        return case.machine.memory_nodes
    there = {node.kind for node in case.machine.nodes if node.memory}
    kinds = request.kinds & there or {case.machine.node(node).kind for node in zone}
    return zone | NodeSet.union(map(case.machine.nodes_of_kind, kinds))


@given(situations(), st.sets(st.integers(0, 9)))
def test_running_containers_are_counted_on_their_nodes_as_far_as_they_fit(
    case: Situation, ids: set[int]
) -> None:
    offer = adopt_memory(case.request, NodeSet.from_iterable(ids), case.ledger)
    memory = case.machine.memory_nodes
    zone = NodeSet.from_iterable(ids) & memory or memory
    counted, zones = offer.grant.request, zones_of(offer.ledger)
    event(f"all of it: {counted.demand == case.request.demand}")

    assert offer.rules == (ZoneRule.KEPT,)
    assert zone <= offer.zone <= reach(case.request, zone, case)
    assert fits(zones, requests_of(offer.ledger), case.machine)
    assert all(asked(counted, page) <= asked(case.request, page) for page in PAGES)
    assert msgspec.structs.replace(
        counted, size=case.request.size, hugepages=case.request.hugepages
    ) == (case.request)


@given(situations(most=3))
def test_running_containers_are_counted_as_far_as_possible(case: Situation) -> None:
    request = msgspec.structs.replace(case.request, hugepages=())
    zone = case.machine.memory_nodes.lowest(1)
    offer = adopt_memory(request, zone, case.ledger)
    counted = offer.grant.request
    event(f"all of it: {counted.size == request.size}")
    if counted.size == request.size:
        return
    widest = {
        key: reach(grant.request, grant.zone, case)
        for key, grant in case.ledger.grants.items()
    }
    more = msgspec.structs.replace(counted, size=Bytes(counted.size + 1))

    assert not fits(
        {**widest, request.id: reach(request, zone, case)},
        (*requests_of(case.ledger), more),
        case.machine,
    )
