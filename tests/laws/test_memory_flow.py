"""Laws of laying amounts into nodes, held against Hall's theorem at every step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from operator import and_

from hypothesis import event, given
from hypothesis import strategies as st

from nri_resmgr.policy.mems import (
    MemoryGrant,
    MemoryLayout,
    MemoryPriority,
    MemoryRequest,
)
from nri_resmgr.policy.mems.accounts import Accounts
from nri_resmgr.policy.mems.fill import Fill, filled
from nri_resmgr.topology import HugePages
from nri_resmgr.values import Bytes, NodeSet
from tests.laws.memory_recount import content_of
from tests.policy.mems.stories import PAGE, PAGES, asked, held_by, machine_of

Laid = tuple[int, int]  # a zone and an amount

CAPACITY = (4, 3, 5, 2)
EVERYWHERE = (1 << len(CAPACITY)) - 1
zones = st.integers(1, EVERYWHERE)
laid = st.lists(st.tuples(zones, st.integers(1, 4)), max_size=7)


def around(zone: int) -> Iterator[int]:
    """Yield all sets of nodes that *zone* lies in."""
    return (nodes for nodes in range(EVERYWHERE + 1) if not zone & ~nodes)


def left(nodes: int, amounts: Iterable[Laid]) -> int:
    """Return what is left of some nodes beside grants that fit nowhere else."""
    held = sum(size for node, size in enumerate(CAPACITY) if nodes >> node & 1)
    return held - sum(amount for zone, amount in amounts if not zone & ~nodes)


def most(zone: int, amounts: list[Laid]) -> int:
    return min(left(nodes, amounts) for nodes in around(zone))


def filled_with(amounts: Iterable[Laid]) -> tuple[Fill, list[Laid]]:
    """Lay amounts as far as they fit; return what was laid, too."""
    fill, there = Fill(CAPACITY), list[Laid]()
    for zone, amount in amounts:
        there.append((zone, amount - fill.lay(zone, amount)))
    return fill, there


@given(laid, zones, st.integers(1, 9))
def test_lays_all_that_there_is_room_for(
    amounts: list[Laid], zone: int, amount: int
) -> None:
    fill, there = filled_with(amounts)
    room = most(zone, there)
    event(f"all of it: {amount <= room}")

    assert fill.free(zone) <= room
    assert fill.lay(zone, amount) == max(0, amount - room)
    if amount > room:
        there.append((zone, room))
        full = [nodes for nodes in around(zone) if left(nodes, there) == 0]
        assert fill.reached == reduce(and_, full)


@given(laid, st.data())
def test_lifted_amounts_free_their_memory(
    amounts: list[Laid], data: st.DataObject
) -> None:
    fill, there = filled_with(amounts)
    for index in data.draw(st.sets(st.sampled_from(range(7)))):
        if index < len(there):
            zone, amount = there[index]
            fill.lift(zone, amount)
            there[index] = zone, 0

    for zone in around(0):
        assert fill.copy().lay(zone, 99) == 99 - most(zone, there)


@given(laid, zones, st.integers(0, 6))
def test_moves_if_there_is_room_and_stays_if_not(
    amounts: list[Laid], after: int, which: int
) -> None:
    fill, there = filled_with(amounts)
    if which >= len(there):
        return
    before, amount = there.pop(which)
    fits = most(after, there) >= amount
    event(f"moves: {fits}")

    assert fill.move(before, after, amount) == fits
    there.append((after if fits else before, amount))
    for zone in around(0):
        assert fill.copy().lay(zone, 99) == 99 - most(zone, there)


@given(laid)
def test_the_reported_nodes_are_overcommitted(amounts: list[Laid]) -> None:
    sums: dict[int, int] = {}
    for zone, amount in amounts:
        sums[zone] = sums.get(zone, 0) + amount
    _, nodes = filled(sums, CAPACITY)
    overfull = [one for one in around(0) if left(one, amounts) < 0]
    event(f"overfull: {bool(overfull)}")

    assert (nodes in overfull) if overfull else nodes == 0


MACHINE = machine_of("3s1c memory=6,2,4 cxl=5", (2, 0, 1, 0))
LAYOUT = MemoryLayout.of(MACHINE)


@st.composite
def grants(draw: st.DrawFn) -> list[MemoryGrant]:
    """Draw grants in any zones that fit together."""
    found: list[MemoryGrant] = []
    accounts = Accounts(LAYOUT)
    for age in range(draw(st.integers(0, 6))):
        request = MemoryRequest(
            id=f"r{age}",
            affinity=NodeSet.of(0),
            size=Bytes(draw(st.integers(0, 5))),
            hugepages=draw(st.sampled_from([(), (HugePages(PAGE, 1),)])),
            strict=draw(st.booleans()),
            priority=draw(st.sampled_from(MemoryPriority)),
        )
        grant = MemoryGrant(request, NodeSet(draw(zones)), frozenset(), age)
        accounts.add(grant)
        if any(map(accounts.overfull, PAGES)):
            accounts.remove(grant)
        else:
            found.append(grant)
    return found


def room(zone: int, page: Bytes, there: Mapping[str, MemoryGrant]) -> int:
    """Count what *zone* can take beside what is there."""
    return min(
        held_by(NodeSet(nodes), page, MACHINE)
        - sum(
            asked(g.request, page) for g in there.values() if not g.zone.bits & ~nodes
        )
        for nodes in around(zone)
    )


def check(accounts: Accounts, there: Mapping[str, MemoryGrant]) -> None:
    """Compare the accounts with a recount."""
    again = Accounts(LAYOUT, there.values())
    assert content_of(accounts, there.values()) == content_of(again, there.values())
    for page in PAGES:
        for zone in around(0):
            size = room(zone, page, there)
            answers = [
                accounts.has_room(zone, page, size + more) for more in (-1, 0, 1)
            ]
            assert answers == [True, True, False]
            assert accounts.available(zone, page) == size


@given(grants(), st.data())
def test_accounts_that_are_changed_are_those_counted_again(
    granted: list[MemoryGrant], data: st.DataObject
) -> None:
    there = {grant.request.id: grant for grant in granted}
    accounts = Accounts(LAYOUT, granted)
    if data.draw(st.booleans()):
        accounts.index_rows(granted)
    check(accounts, there)
    changed, now = accounts.copy(), dict(there)
    check(changed, now)
    moved: list[tuple[MemoryGrant, MemoryGrant]] = []
    for key, grant in there.items():
        match data.draw(st.sampled_from(["stays", "goes", "moves"])):
            case "goes":
                changed.remove(now.pop(key))
            case "moves":
                zone = data.draw(zones)
                others = {other: now[other] for other in now if other != key}
                fits = all(
                    room(zone, page, others) >= asked(grant.request, page)
                    for page in PAGES
                    if asked(grant.request, page)
                )
                assert changed.move(grant.request, grant.zone.bits, zone) == fits
                event(f"moves: {fits}")
                if fits:
                    now[key] = MemoryGrant(
                        grant.request, NodeSet(zone), grant.kinds, grant.age
                    )
                    moved.append((grant, now[key]))
    changed.replace_rows(moved)

    check(changed, now)
    check(accounts, there)


@given(st.integers(1, 2), st.sampled_from([0b10, 0b1000, 0b1010]))
def test_a_request_whose_huge_pages_do_not_fit_stays(size: int, zone: int) -> None:
    request = MemoryRequest(
        id="both",
        affinity=NodeSet.of(0),
        size=Bytes(size),
        hugepages=(HugePages(PAGE, 1),),
    )
    grant = MemoryGrant(request, NodeSet.of(0), frozenset(), 0)
    accounts = Accounts(LAYOUT, [grant])
    check(accounts, {"both": grant})

    moved = [accounts.move(request, 1, zone) for _ in range(2)]
    assert moved == [False, False]
    check(accounts, {"both": grant})
