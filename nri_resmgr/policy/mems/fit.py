"""Ask whether a request fits as things are, for many places at once."""

from __future__ import annotations

import msgspec

from nri_resmgr.policy.mems.ledger import MemoryLedger
from nri_resmgr.policy.mems.request import MemoryRequest
from nri_resmgr.policy.mems.zones import ZoneRule, start_of
from nri_resmgr.values import NodeSet


class MemoryFit(msgspec.Struct, frozen=True):
    """Where a request would start, and whether it could stay there.

    Attributes:
        zone: The nodes it would start with.
        rules: How they came about, in order.
        fits: Whether they have room for it with nobody widened.
    """

    zone: NodeSet
    rules: tuple[ZoneRule, ...]
    fits: bool


def fit_memory(
    request: MemoryRequest, ledger: MemoryLedger, near: NodeSet | None = None
) -> MemoryFit:
    """Tell whether a new request fits with nobody widened, itself included.

    It is far cheaper than an offer, so a policy can ask it of every pool. Where
    it fits, `allocate_memory` offers just this zone. Where it does not, only an
    offer can tell who would have to give way.

    Args:
        request: What is wanted.
        ledger: What is promised already.
        near: Nodes to be near to, instead of the request's own.

    Raises:
        MemoryKindMissing, NormalMemoryMissing, ValueError: As `allocate_memory`.

    >>> from nri_resmgr.topology.synthetic import parse_spec
    >>> from nri_resmgr.values import Bytes
    >>> ledger = MemoryLedger.of(parse_spec("2s1c memory=4Gi,2Gi"))
    >>> web = MemoryRequest(id="web", affinity=NodeSet.of(0), size=Bytes(3 << 30))
    >>> [fit_memory(web, ledger, NodeSet.of(node)).fits for node in (0, 1)]
    [True, False]
    """
    near = request.affinity if near is None else near
    start, accounts = start_of(request, near, ledger.layout), ledger.accounts
    fits = all(
        accounts.has_room(start.zone.bits, page, amount)
        for page, amount in request.demand
    )
    return MemoryFit(start.zone, start.rules, fits)
