"""The answer of the memory allocator: a change that has not happened yet."""

from __future__ import annotations

import msgspec

from nri_resmgr.policy.mems.errors import StaleOffer
from nri_resmgr.policy.mems.ledger import MemoryLedger
from nri_resmgr.policy.mems.request import Grant
from nri_resmgr.policy.mems.zones import ZoneRule
from nri_resmgr.values import Bytes, NodeSet


class Spill(msgspec.Struct, frozen=True):
    """Nodes that were promised more than they hold.

    Attributes:
        nodes: The nodes.
        page_size: Of which pages there were too few.
        over: How many bytes too much were promised.
    """

    nodes: NodeSet
    page_size: Bytes
    over: Bytes


class Widening(msgspec.Struct, frozen=True):
    """A request that got more nodes so that everybody fits.

    Attributes:
        id: The request.
        before: Its nodes until then.
        after: Its nodes from then on; all of `before` and more.
        why: The shortage that its last step was taken for.
    """

    id: str
    before: NodeSet
    after: NodeSet
    why: Spill


class MemoryOffer(msgspec.Struct, frozen=True):
    """What a request would get, and what it would mean for the others.

    An offer holds the ledger that it was made from and the one that it leads
    to. Making one changes nothing; throwing it away needs no undoing.

    Attributes:
        base: The ledger that it was made from.
        ledger: The ledger that it leads to.
        grant: What the request would have.
        rules: How its zone came about, in order.
        widened: Who would be widened, in order of age; the request itself too,
            if its zone was short.
    """

    base: MemoryLedger
    ledger: MemoryLedger
    grant: Grant
    rules: tuple[ZoneRule, ...]
    widened: tuple[Widening, ...]

    @property
    def zone(self) -> NodeSet:
        """The nodes that the request would have."""
        return self.grant.zone

    @property
    def moved(self) -> tuple[Widening, ...]:
        """The others who would be widened; the runtime must be told of each."""
        if not self.widened:  # as nearly always
            return ()
        mine = self.grant.request.id
        return tuple(one for one in self.widened if one.id != mine)

    @property
    def updates(self) -> dict[str, NodeSet]:
        """The nodes that each of the others would have from then on, by id."""
        return {one.id: one.after for one in self.moved}

    def commit(self, current: MemoryLedger) -> MemoryLedger:
        """Return the ledger that holds from now on.

        Raises:
            StaleOffer: *current* is not what the offer was made from.
        """
        if current is not self.base and current != self.base:
            mine = self.grant.request.title
            raise StaleOffer(f"the ledger changed since {mine} was offered memory")
        return self.ledger
