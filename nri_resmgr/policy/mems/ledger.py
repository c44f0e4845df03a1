"""Who was promised memory where: a frozen value that every change replaces."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import attrs

from nri_resmgr.policy.mems.fill import filled
from nri_resmgr.policy.mems.layout import BASE_PAGES, MemoryLayout
from nri_resmgr.policy.mems.request import Grant
from nri_resmgr.topology import Machine
from nri_resmgr.values import Bytes, NodeSet

Amounts = Mapping[Bytes, Mapping[int, int]]
"""Bytes promised, per page size and zone; no zero among them."""

MutableAmounts = dict[Bytes, dict[int, int]]


def _frozen(grants: Mapping[str, Grant]) -> Mapping[str, Grant]:
    return MappingProxyType(dict(grants))


def _frozen_sums(amounts: Amounts) -> Amounts:
    return MappingProxyType(
        {page: MappingProxyType(dict(zones)) for page, zones in amounts.items()}
    )


def add_amounts(amounts: MutableAmounts, grant: Grant, sign: int = 1) -> None:
    """Count what *grant* is promised into *amounts*, or out of them."""
    zone = grant.zone.bits
    for page, amount in grant.request.demand:
        zones = amounts.setdefault(page, {})
        zones[zone] = zones.get(zone, 0) + sign * amount
        if not zones[zone]:
            del zones[zone]


def mutable_copy(amounts: Amounts) -> MutableAmounts:
    """Return amounts to count with."""
    return {page: dict(zones) for page, zones in amounts.items()}


@attrs.frozen
class MemoryLedger:
    """All memory granted on a machine; nothing is promised that is not there.

    Two ledgers with the same grants are equal and answer the same.

    Attributes:
        layout: The machine's memory.
        grants: By id of the request, older before younger.
        amounts: What is promised in sum; found from the grants where left out.
    """

    layout: MemoryLayout
    grants: Mapping[str, Grant] = attrs.field(
        factory=dict, converter=_frozen, hash=False
    )
    amounts: Amounts = attrs.field(converter=_frozen_sums, eq=False, repr=False)

    @amounts.default
    def _recount(self) -> Amounts:
        amounts: MutableAmounts = {}
        for grant in self.grants.values():
            add_amounts(amounts, grant)
        return amounts

    @classmethod
    def of(cls, machine: Machine) -> MemoryLedger:
        """Start with nothing promised."""
        return cls(MemoryLayout.of(machine))

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
        zones = self.amounts.get(page_size, {})
        inside = (zones[zone] for zone in zones if not zone & ~nodes.bits)
        return Bytes(sum(inside))

    def free(self, nodes: NodeSet, page_size: Bytes = BASE_PAGES) -> Bytes:
        """Return capacity less usage; requests that reach further may need it."""
        return Bytes(self.capacity(nodes, page_size) - self.usage(nodes, page_size))

    def available(self, nodes: NodeSet, page_size: Bytes = BASE_PAGES) -> Bytes:
        """Return what can be promised in *nodes* without widening anybody."""
        zone = nodes.bits & self.layout.nodes
        zones = self.amounts.get(page_size, {})
        fill = filled(zones, self.layout.sizes(page_size))
        most = self.layout.room(zone, page_size)
        return Bytes(most - fill.lay(zone, most))

    def release(self, *requests: str) -> MemoryLedger:
        """Forget requests; ids that are not here are fine. Nobody is narrowed."""
        grants, amounts = dict(self.grants), mutable_copy(self.amounts)
        for request in requests:
            if grant := grants.pop(request, None):
                add_amounts(amounts, grant, -1)
        return MemoryLedger(self.layout, grants, amounts)
