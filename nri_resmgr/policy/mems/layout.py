"""The memory nodes of a machine, as bit masks and tables for the allocator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

import msgspec

from nri_resmgr.topology import Machine, MemoryKind, Node
from nri_resmgr.values import Bytes, NodeSet

BASE_PAGES: Final = Bytes(0)
"""Stands for ordinary memory where a size of huge pages could stand."""


class MemoryLayout(msgspec.Struct, frozen=True):
    """Memory nodes with their capacities and distances; sets are bit masks.

    Attributes:
        known: All nodes, also those without memory.
        nodes: Nodes with memory.
        normal: Nodes with memory that the kernel may use for itself, too.
        kinds: Nodes by kind of memory, without kinds that are missing.
        capacity: Bytes by page size and node id. Memory that is set aside for huge
            pages does not count as ordinary memory.
        rings: By node and kind: distances with the nodes at that distance.
    """

    known: int
    nodes: int
    normal: int
    kinds: Mapping[MemoryKind, int]
    capacity: Mapping[Bytes, tuple[int, ...]]
    rings: Mapping[int, Mapping[MemoryKind, Sequence[tuple[int, int]]]]

    def __hash__(self) -> int:
        # It is a key of caches, and mappings have no hash.
        return hash((self.known, self.nodes, self.normal))

    @classmethod
    def of(cls, machine: Machine) -> MemoryLayout:
        """Return the layout of *machine*."""
        kinds = {
            kind: nodes.bits
            for kind in MemoryKind
            if (nodes := machine.nodes_of_kind(kind))
        }
        return cls(
            known=machine.node_ids.bits,
            nodes=machine.memory_nodes.bits,
            normal=machine.normal_nodes.bits,
            kinds=kinds,
            capacity=_capacity(machine.nodes),
            rings={
                node.id: {
                    kind: _by_distance(node.id, nodes, machine)
                    for kind, nodes in kinds.items()
                }
                for node in machine.nodes
            },
        )

    def of_kinds(self, kinds: Iterable[MemoryKind]) -> int:
        """Return the nodes of any of *kinds*."""
        nodes = 0
        for kind in kinds:
            nodes |= self.kinds.get(kind, 0)
        return nodes

    def kinds_in(self, nodes: int) -> frozenset[MemoryKind]:
        """Return the kinds of memory that *nodes* have."""
        return frozenset(kind for kind, mask in self.kinds.items() if mask & nodes)

    def total(self, nodes: int, page_size: Bytes = BASE_PAGES) -> int:
        """Return the total capacity of *nodes* in bytes."""
        sizes = self.sizes(page_size)
        return sum(sizes[node] for node in ids_of(nodes))

    def sizes(self, page_size: Bytes) -> tuple[int, ...]:
        """Return the capacity of each node, by id; 0 for an unknown page size."""
        return self.capacity.get(page_size) or (0,) * self.known.bit_length()

    def nearest(self, nodes: int, kinds: Iterable[MemoryKind]) -> int:
        """Return, for each kind, the nodes outside *nodes* that are nearest to it.

        The distance is the smallest from any of *nodes*. All nodes at that distance are
        returned, so that ids do not matter.
        """
        found = 0
        for kind in kinds:
            found |= self._nearest_of(nodes, kind)
        return found

    def _nearest_of(self, nodes: int, kind: MemoryKind) -> int:
        if not self.kinds.get(kind, 0) & ~nodes:
            return 0
        closest, found = None, 0
        for node in ids_of(nodes):
            for distance, ring in self.rings[node].get(kind, ()):
                if closest is not None and distance > closest:
                    break
                if outside := ring & ~nodes:
                    found = outside if distance != closest else found | outside
                    closest = distance
                    break
        return found


@lru_cache(maxsize=4096)
def ids_of(nodes: int) -> tuple[int, ...]:
    """Return the ids in a mask, ascending."""
    return tuple(NodeSet(nodes))


def _capacity(nodes: Sequence[Node]) -> dict[Bytes, tuple[int, ...]]:
    pages = {BASE_PAGES} | {pool.size for node in nodes for pool in node.hugepages}
    rows = {page: [0] * (nodes[-1].id + 1) for page in sorted(pages)}
    for node in nodes:
        for pool in node.hugepages:
            rows[pool.size][node.id] = pool.size * pool.count
        set_aside = sum(pool.size * pool.count for pool in node.hugepages)
        rows[BASE_PAGES][node.id] = max(0, node.memory - set_aside)
    return {page: tuple(row) for page, row in rows.items()}


def _by_distance(
    start: int, nodes: int, machine: Machine
) -> tuple[tuple[int, int], ...]:
    far: dict[int, int] = {}
    for node in ids_of(nodes):
        distance = machine.distance(start, node)
        far[distance] = far.get(distance, 0) | 1 << node
    return tuple(sorted(far.items()))
