"""Put a shortage that no widening cures into numbers."""

from __future__ import annotations

from collections.abc import Sequence

from nri_resmgr.policy.mems.errors import MemoryShort
from nri_resmgr.policy.mems.fill import filled
from nri_resmgr.policy.mems.layout import MemoryLayout
from nri_resmgr.policy.mems.ledger import MemoryLedger
from nri_resmgr.policy.mems.request import Grant
from nri_resmgr.policy.mems.zones import reach_of
from nri_resmgr.values import Bytes, NodeSet


def shortage(newcomer: Grant, ledger: MemoryLedger) -> MemoryShort:
    """Tell what fits at most, if all others are widened as far as they may be.

    The nodes named are the fewest that *newcomer* cannot leave and that are too
    small for it and for those who cannot leave them either.
    """
    layout, mine = ledger.layout, newcomer.request
    others = [one for one in ledger.grants.values() if one.request.id != mine.id]
    for page, wanted in mine.demand:
        amounts = _reached(others, page, layout)
        fill, _ = filled(amounts, layout.sizes(page))
        if fill.lay(reach_of(newcomer, layout), wanted):
            nodes = fill.reached
            inside = [one for one in others if not reach_of(one, layout) & ~nodes]
            fixed = [one for one in inside if one.is_fixed]
            return MemoryShort(
                title=mine.title,
                wanted=Bytes(wanted),
                page_size=page,
                nodes=NodeSet(nodes),
                capacity=Bytes(layout.room(nodes, page)),
                promised=_sum(inside, page),
                reserved=_sum(fixed, page),
                strict=mine.strict,
            )
    msg = f"{mine.title} fits after all"
    raise ValueError(msg)


def _reached(
    grants: Sequence[Grant], page: Bytes, layout: MemoryLayout
) -> dict[int, int]:
    """Add up what is promised, each request as wide as it may ever be."""
    amounts: dict[int, int] = {}
    for grant in grants:
        if amount := grant.request.wants(page):
            reach = reach_of(grant, layout)
            amounts[reach] = amounts.get(reach, 0) + amount
    return amounts


def _sum(grants: Sequence[Grant], page: Bytes) -> Bytes:
    return Bytes(sum(grant.request.wants(page) for grant in grants))
