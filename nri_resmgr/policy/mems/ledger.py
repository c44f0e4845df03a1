"""All memory grants as an immutable value, and offers to change it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from nri_resmgr.policy.mems.accounts import Accounts
from nri_resmgr.policy.mems.errors import StaleOffer
from nri_resmgr.policy.mems.layout import BASE_PAGES, MemoryLayout
from nri_resmgr.policy.mems.request import MemoryGrant
from nri_resmgr.policy.mems.zones import ZoneRule
from nri_resmgr.topology import Machine
from nri_resmgr.values import Bytes, NodeSet

_NO_GRANTS: Final[Mapping[str, MemoryGrant]] = MappingProxyType({})


class MemoryLedger(msgspec.Struct, frozen=True):
    """All memory granted on a machine; grants never exceed the capacity.

    Two ledgers with the same grants are equal and answer the same.

    Attributes:
        layout: The machine's memory.
        grants: By id of the request, older before younger; never changed.
        accounts: Sums of the grants; `counted` computes them.
    """

    layout: MemoryLayout
    grants: MappingProxyType[str, MemoryGrant]
    accounts: Accounts

    def __eq__(self, other: object) -> bool:
        # Without the accounts: these follow from the grants, in a form with a history.
        if not isinstance(other, MemoryLedger):
            return NotImplemented
        return self.grants == other.grants and self.layout == other.layout

    def __hash__(self) -> int:
        return hash((self.layout, len(self.grants)))

    @classmethod
    def of(cls, machine: Machine) -> MemoryLedger:
        """Return a ledger without grants."""
        return cls.counted(MemoryLayout.of(machine))

    @classmethod
    def counted(
        cls, layout: MemoryLayout, grants: Mapping[str, MemoryGrant] = _NO_GRANTS
    ) -> MemoryLedger:
        """Return the ledger of *grants*, with their sums computed."""
        return cls(layout, MappingProxyType(grants), Accounts(layout, grants.values()))

    def __contains__(self, request: str) -> bool:
        return request in self.grants

    def __len__(self) -> int:
        return len(self.grants)

    def zone_of(self, request: str) -> NodeSet:
        """Return the nodes of a request that is here; another is a ``KeyError``."""
        return self.grants[request].zone

    def capacity(self, nodes: NodeSet, page_size: Bytes = BASE_PAGES) -> Bytes:
        """Return the total capacity of *nodes*."""
        return Bytes(self.layout.total(nodes.bits & self.layout.nodes, page_size))

    def usage(self, nodes: NodeSet, page_size: Bytes = BASE_PAGES) -> Bytes:
        """Return what is granted to requests that are confined to *nodes*."""
        return Bytes(self.accounts.inside(nodes.bits, page_size))

    def free(self, nodes: NodeSet, page_size: Bytes = BASE_PAGES) -> Bytes:
        """Return capacity less usage; wider requests may use a part of it."""
        return Bytes(self.capacity(nodes, page_size) - self.usage(nodes, page_size))

    def available(self, nodes: NodeSet, page_size: Bytes = BASE_PAGES) -> Bytes:
        """Return what can be granted in *nodes* with no request widened."""
        zone = nodes.bits & self.layout.nodes
        return Bytes(self.accounts.available(zone, page_size))

    def count(self, grant: MemoryGrant) -> MemoryLedger:
        """Add a grant, or replace that of its request, whether it fits or not.

        Only for `settle`, which resolves an excess by widening requests.
        """
        request, accounts = grant.request, self.accounts
        old = self.grants.get(request.id)
        if request.demand or old:  # a request of 0 bytes changes no sum
            accounts = accounts.copy()
            if old:
                accounts.remove(old)
            accounts.add(grant)
        grants = self.grants.copy()
        grants[request.id] = grant
        return MemoryLedger(self.layout, MappingProxyType(grants), accounts)

    def release(self, *requests: str) -> MemoryLedger:
        """Remove requests; unknown ids are ignored. Others keep their nodes."""
        grants, accounts = self.grants.copy(), self.accounts
        # Then the sums of what stays are faster to count.
        is_most = len(requests) > len(grants) // 2
        for request in requests:
            grant = grants.pop(request, None)
            if grant is not None and grant.request.demand and not is_most:
                if accounts is self.accounts:
                    accounts = accounts.copy()
                accounts.remove(grant)
        if is_most:
            return MemoryLedger.counted(self.layout, grants)
        return MemoryLedger(self.layout, MappingProxyType(grants), accounts)


class Spill(msgspec.Struct, frozen=True):
    """Nodes whose grants of a page size exceed their capacity, *over* it in bytes."""

    nodes: NodeSet
    page_size: Bytes
    over: Bytes


class Widening(msgspec.Struct, frozen=True):
    """A request that gets more nodes so that all requests fit.

    *why* is the excess that its last step resolves.
    """

    id: str
    before: NodeSet
    after: NodeSet
    why: Spill


class MemoryOffer(msgspec.Struct, frozen=True):
    """A grant for a request, with its effects on other requests.

    An offer is a value that refers to the ledgers before (`base`) and after. It changes
    nothing and can be discarded.

    Attributes:
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
