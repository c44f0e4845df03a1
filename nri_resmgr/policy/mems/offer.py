"""Offers of the memory allocator: changes of a ledger that are not yet accepted."""

from __future__ import annotations

import msgspec

from nri_resmgr.policy.mems.errors import StaleOffer
from nri_resmgr.policy.mems.ledger import MemoryLedger
from nri_resmgr.policy.mems.request import MemoryGrant
from nri_resmgr.policy.mems.zones import ZoneRule
from nri_resmgr.values import Bytes, NodeSet


class Spill(msgspec.Struct, frozen=True):
    """Nodes whose grants exceed their capacity.

    Attributes:
        nodes: The nodes.
        page_size: The page size.
        over: The bytes in excess.
    """

    nodes: NodeSet
    page_size: Bytes
    over: Bytes


class Widening(msgspec.Struct, frozen=True):
    """A request that gets more nodes so that all requests fit.

    Attributes:
        id: The request.
        before: Its nodes before.
        after: Its nodes afterwards, a superset.
        why: The excess that its last step resolves.
    """

    id: str
    before: NodeSet
    after: NodeSet
    why: Spill


class MemoryOffer(msgspec.Struct, frozen=True):
    """A grant for a request, with its effects on other requests.

    An offer is a value that refers to the ledgers before and after. It changes nothing
    and can be discarded.

    Attributes:
        base: The ledger before.
        ledger: The ledger after.
        grant: The grant of the request.
        rules: The rules that led to its zone, in order.
        widened: The requests that are widened, in order of age; the request itself,
            too, if its zone is short.
    """

    base: MemoryLedger
    ledger: MemoryLedger
    grant: MemoryGrant
    rules: tuple[ZoneRule, ...]
    widened: tuple[Widening, ...]

    @property
    def zone(self) -> NodeSet:
        """The nodes of the request."""
        return self.grant.zone

    @property
    def moved(self) -> tuple[Widening, ...]:
        """The other requests that are widened; the runtime needs an update of each."""
        if not self.widened:  # the common case
            return ()
        mine = self.grant.request.id
        return tuple(one for one in self.widened if one.id != mine)

    @property
    def updates(self) -> dict[str, NodeSet]:
        """The new nodes of each of the others, by id."""
        return {one.id: one.after for one in self.moved}

    def commit(self, current: MemoryLedger) -> MemoryLedger:
        """Return the ledger after, if the offer still applies.

        Raises:
            StaleOffer: *current* is not the ledger that the offer was made from.
        """
        if current is not self.base and current != self.base:
            mine = self.grant.request.title
            raise StaleOffer(f"the ledger changed since {mine} was offered memory")
        return self.ledger
