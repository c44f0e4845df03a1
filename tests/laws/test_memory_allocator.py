"""Laws of the memory allocator, held against every assignment there could be."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import attrs
import msgspec
from hypothesis import assume, event, given

from nri_resmgr.policy.mems import (
    MemoryGrant,
    MemoryLedger,
    MemoryOffer,
    MemoryPriority,
    MemoryShort,
    allocate_memory,
)
from nri_resmgr.topology import Machine
from nri_resmgr.values import NO_NODES, Bytes, NodeSet
from tests.policy.mems.stories import (
    Situation,
    Zones,
    fits,
    offered,
    requests_of,
    situations,
    subsets,
    zones_of,
)

RESERVATION = MemoryPriority.RESERVATION


def start(case: Situation) -> MemoryGrant:
    """Return what the newcomer would have if it needed no memory."""
    weightless = msgspec.structs.replace(case.request, size=Bytes(0), hugepages=())
    return allocate_memory(weightless, case.ledger).grant


def choices(grant: MemoryGrant, machine: Machine) -> Iterator[NodeSet]:
    """Yield all zones that a request may have from now on."""
    if grant.request.priority is RESERVATION:
        reach = grant.zone
    elif grant.request.strict:
        kinds = grant.request.kinds or grant.kinds
        reach = NodeSet.union(machine.nodes_of_kind(kind) for kind in kinds)
    else:
        reach = machine.memory_nodes
    for more in subsets(reach - grant.zone):
        yield grant.zone | more


def assignments(case: Situation, below: int = RESERVATION) -> Iterator[Zones]:
    """Yield all assignments that only widen requests of a priority below *below*."""
    first = start(case)
    grants = {**case.ledger.grants, case.request.id: first}
    rows = [
        choices(grant, case.machine) if grant.request.priority < below else [grant.zone]
        for grant in grants.values()
    ]
    for zones in itertools.product(*map(list, rows)):
        yield dict(zip(grants, zones, strict=True))


def can_be_done(case: Situation, below: int = RESERVATION) -> bool:
    asking = (*requests_of(case.ledger), case.request)
    return any(fits(zones, asking, case.machine) for zones in assignments(case, below))


def accepted(case: Situation) -> MemoryOffer:
    offer = offered(case.request, case.ledger)
    assume(isinstance(offer, MemoryOffer))
    assert isinstance(offer, MemoryOffer)
    event(f"{len(offer.widened)} widened")
    return offer


@given(situations())
def test_no_nodes_are_overcommitted(case: Situation) -> None:
    ledger = accepted(case).ledger

    assert fits(zones_of(ledger), requests_of(ledger), case.machine)


@given(situations(most=3))
def test_grants_whatever_some_assignment_could_grant(case: Situation) -> None:
    answer = offered(case.request, case.ledger)
    event(type(answer).__name__)

    if isinstance(answer, MemoryOffer | MemoryShort):
        assert isinstance(answer, MemoryOffer) == can_be_done(case)


@given(situations(most=3))
def test_a_refusal_names_the_most_that_would_fit(case: Situation) -> None:
    def asking(size: int) -> Situation:
        request = msgspec.structs.replace(case.request, size=Bytes(size), hugepages=())
        return attrs.evolve(case, request=request)

    refusal = offered(asking(case.request.size).request, case.ledger)
    event(type(refusal).__name__)

    if isinstance(refusal, MemoryShort):
        assert can_be_done(asking(refusal.most))
        assert not can_be_done(asking(refusal.most + 1))


@given(situations(most=3))
def test_spares_all_where_widening_lower_ones_would_do(case: Situation) -> None:
    offer = offered(case.request, case.ledger)
    if not isinstance(offer, MemoryOffer):
        event("0 widened")
        return
    event(f"{len(offer.widened)} widened")

    for one in offer.widened:
        priority = offer.ledger.grants[one.id].request.priority
        assert not can_be_done(case, below=priority)


@given(situations())
def test_nothing_is_widened_without_need(case: Situation) -> None:
    offer = accepted(case)
    asking = requests_of(offer.ledger)
    zones = zones_of(offer.ledger)

    for one in offer.widened:
        assert not fits({**zones, one.id: one.before}, asking, case.machine)


@given(situations())
def test_zones_only_grow_and_reservations_not_even_that(case: Situation) -> None:
    offer = accepted(case)
    before = {**zones_of(case.ledger), case.request.id: start(case).zone}
    after = zones_of(offer.ledger)
    grown = {key for key, zone in after.items() if zone != before[key]}

    assert all(before[key] <= zone for key, zone in after.items())
    assert grown == {one.id for one in offer.widened}
    assert all(
        offer.ledger.grants[key].request.priority is not RESERVATION for key in grown
    )
    assert all(
        (one.before, one.after) == (before[one.id], after[one.id])
        for one in offer.widened
    )


@given(situations())
def test_strict_requests_stay_among_their_kinds(case: Situation) -> None:
    for grant in accepted(case).ledger.grants.values():
        kinds = {case.machine.node(node).kind for node in grant.zone}
        if grant.request.strict:
            assert kinds <= (grant.request.kinds or grant.kinds)


@given(situations())
def test_every_zone_has_memory_that_the_kernel_can_use(case: Situation) -> None:
    for grant in accepted(case).ledger.grants.values():
        assert grant.zone <= case.machine.memory_nodes
        assert grant.zone & case.machine.normal_nodes != NO_NODES


@given(situations())
def test_an_offer_is_what_its_commit_makes_of_the_ledger(case: Situation) -> None:
    offer = accepted(case)
    before = zones_of(case.ledger)
    ledger = offer.commit(case.ledger)

    assert zones_of(ledger) == {
        **before,
        **{one.id: one.after for one in offer.moved},
        case.request.id: offer.zone,
    }
    assert zones_of(case.ledger) == before


@given(situations())
def test_equal_ledgers_answer_the_same(case: Situation) -> None:
    twin = MemoryLedger.counted(
        MemoryLedger.of(case.machine).layout, dict(case.ledger.grants)
    )
    answers = [offered(case.request, one) for one in (case.ledger, twin)]

    assert twin == case.ledger
    assert answers[0] == answers[1] or (str(answers[0]) == str(answers[1]))


@given(situations())
def test_a_release_restores_what_was_before(case: Situation) -> None:
    offer = accepted(case)
    after = offer.ledger.release(case.request.id)
    moved = {one.id: one.after for one in offer.moved}

    assert zones_of(after) == {**zones_of(case.ledger), **moved}
    assert moved or after == case.ledger
