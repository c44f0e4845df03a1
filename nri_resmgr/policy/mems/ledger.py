"""Who was promised memory where: a frozen value that every change replaces."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from nri_resmgr.policy.mems.accounts import Accounts
from nri_resmgr.policy.mems.layout import BASE_PAGES, MemoryLayout
from nri_resmgr.policy.mems.request import Grant
from nri_resmgr.topology import Machine
from nri_resmgr.values import Bytes, NodeSet

_NO_GRANTS: Final[Mapping[str, Grant]] = MappingProxyType({})


class MemoryLedger(msgspec.Struct, frozen=True):
    """All memory granted on a machine; nothing is promised that is not there.

    Two ledgers with the same grants are equal and answer the same.

    Attributes:
        layout: The machine's memory.
        grants: By id of the request, older before younger. Whoever hands them
            over changes them no more.
        accounts: What is promised in sum; `counted` finds it from the grants.
    """

    layout: MemoryLayout
    grants: MappingProxyType[str, Grant]
    accounts: Accounts

    def __eq__(self, other: object) -> bool:
        # Without the accounts: they follow from the grants, and keep zeros of the past.
        if not isinstance(other, MemoryLedger):
            return NotImplemented
        return self.grants == other.grants and self.layout == other.layout

    def __hash__(self) -> int:
        return hash((self.layout, len(self.grants)))

    @classmethod
    def of(cls, machine: Machine) -> MemoryLedger:
        """Start with nothing promised."""
        return cls.counted(MemoryLayout.of(machine))

    @classmethod
    def counted(
        cls, layout: MemoryLayout, grants: Mapping[str, Grant] = _NO_GRANTS
    ) -> MemoryLedger:
        """Make the ledger of *grants*, with their sums counted from scratch."""
        return cls(layout, MappingProxyType(grants), Accounts(layout, grants.values()))

    def __contains__(self, request: str) -> bool:
        return request in self.grants

    def __len__(self) -> int:
        return len(self.grants)

    def zone_of(self, request: str) -> NodeSet:
        """Return the nodes of a request that is here; another is a ``KeyError``."""
        return self.grants[request].zone

    def capacity(self, nodes: NodeSet, page_size: Bytes = BASE_PAGES) -> Bytes:
        """Return what *nodes* hold, promised or not."""
        return Bytes(self.layout.room(nodes.bits & self.layout.nodes, page_size))

    def usage(self, nodes: NodeSet, page_size: Bytes = BASE_PAGES) -> Bytes:
        """Return what is promised to requests that may be nowhere else."""
        return Bytes(self.accounts.inside(nodes.bits, page_size))

    def free(self, nodes: NodeSet, page_size: Bytes = BASE_PAGES) -> Bytes:
        """Return capacity less usage; requests that reach further may need it."""
        return Bytes(self.capacity(nodes, page_size) - self.usage(nodes, page_size))

    def available(self, nodes: NodeSet, page_size: Bytes = BASE_PAGES) -> Bytes:
        """Return what can be promised in *nodes* without widening anybody."""
        zone = nodes.bits & self.layout.nodes
        return Bytes(self.accounts.room(zone, page_size))

    def count(self, grant: Grant) -> MemoryLedger:
        """Put a grant in, in place of an older one, whether there is room or not.

        Only `settle` may do so: its answer to nodes that are promised more than
        they hold, is another ledger.
        """
        request, accounts = grant.request, self.accounts
        old = self.grants.get(request.id)
        if request.demand or old:  # who wants nothing changes no sum
            accounts = accounts.copy()
            if old:
                accounts.remove(old)
            accounts.add(grant)
        grants = self.grants.copy()
        grants[request.id] = grant
        return MemoryLedger(self.layout, MappingProxyType(grants), accounts)

    def release(self, *requests: str) -> MemoryLedger:
        """Forget requests; ids that are not here are fine. Nobody is narrowed."""
        grants, accounts = self.grants.copy(), self.accounts
        for request in requests:
            grant = grants.pop(request, None)
            if grant is not None and grant.request.demand:
                if accounts is self.accounts:
                    accounts = accounts.copy()
                accounts.remove(grant)
        return MemoryLedger(self.layout, MappingProxyType(grants), accounts)
