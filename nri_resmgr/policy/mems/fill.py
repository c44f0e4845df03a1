"""Whether amounts that may each lie in some of the nodes fit together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from nri_resmgr.policy.mems.layout import ids_of

_Step: TypeAlias = tuple[int, int]  # the zone that moves over, and from where
_Way: TypeAlias = tuple[int, dict[int, _Step]]  # where it ends, and how it got there


class Fill:
    """Amounts laid into nodes, zone by zone; what lies in the way moves over.

    A maximum flow: a zone lies in several nodes in any proportion. So an
    amount that does not fit could not have been made to fit, and the nodes
    reached in vain are the fewest that are promised more than they hold. Both
    are the same however the other amounts came to lie.
    """

    def __init__(
        self, free: Sequence[int], laid: list[dict[int, int]] | None = None
    ) -> None:
        """Start with so much room in each node, by id, and what is laid there."""
        self._free = list(free)
        self._laid = [{} for _ in free] if laid is None else laid
        self.reached = 0

    def copy(self) -> Fill:
        """Return the same, to go on with."""
        return Fill(self._free, [laid.copy() for laid in self._laid])

    def least_free(self) -> int:
        """Return what is free in the fullest node; 0 with a node without memory."""
        return min(self._free)

    def free(self, zone: int) -> int:
        """Return what is free in the nodes of *zone* with nothing moved over."""
        free = self._free
        return sum([free[node] for node in ids_of(zone)])

    def lay(self, zone: int, amount: int) -> int:
        """Lay *amount* into the nodes of *zone*; return what found no room.

        Where something is returned, `reached` tells the nodes that are full.
        """
        free, laid = self._free, self._laid
        for node in ids_of(zone):
            if room := free[node]:
                part = min(room, amount)
                laid[node][zone] = laid[node].get(zone, 0) + part
                free[node] = room - part
                amount -= part
                if not amount:
                    return 0
        while amount and (way := self._way_out(zone)):
            amount -= self._push(zone, way, amount)
        return amount

    def lift(self, zone: int, amount: int) -> None:
        """Take back some of what was laid into *zone*."""
        for node in ids_of(zone):
            laid = self._laid[node]
            if part := min(amount, laid.get(zone, 0)):
                laid[zone] -= part
                self._free[node] += part
                amount -= part

    def move(self, before: int, after: int, amount: int) -> bool:
        """Lay an amount into another zone; False, and it stays, without room."""
        self.lift(before, amount)
        if rest := self.lay(after, amount):
            self.lift(after, amount - rest)
            self.lay(before, amount)
        return not rest

    def _way_out(self, zone: int) -> _Way | None:
        """Find the shortest chain of moves that ends in a node with room."""
        free, laid = self._free, self._laid
        came: dict[int, _Step] = {}
        seen = zone
        queue = [*ids_of(zone)]
        for node in queue:
            for other, amount in laid[node].items():
                if amount and (fresh := other & ~seen):
                    seen |= fresh
                    for to in ids_of(fresh):
                        came[to] = other, node
                        if free[to]:
                            return to, came
                        queue.append(to)
        self.reached = seen
        return None

    def _push(self, zone: int, way: _Way, amount: int) -> int:
        """Move what can be moved along *way*, and lay as much of *zone*."""
        laid = self._laid
        end, came = way
        moved, node = min(amount, self._free[end]), end
        while step := came.get(node):
            other, node = step
            moved = min(moved, laid[node][other])
        self._free[end] -= moved
        node = end
        while step := came.get(node):
            other, start = step
            laid[start][other] -= moved
            laid[node][other] = laid[node].get(other, 0) + moved
            node = start
        laid[node][zone] = laid[node].get(zone, 0) + moved
        return moved


def filled(amounts: Mapping[int, int], capacity: Sequence[int]) -> tuple[Fill, int]:
    """Lay amounts, small zones first, until one does not fit.

    Args:
        amounts: Bytes promised per zone.
        capacity: Bytes per node id.

    Returns:
        What was laid, and the nodes that are promised more than they hold, 0
        where none are: the smallest such set among the zones so far.
    """
    fill = Fill(capacity)
    for zone, amount in _inner_first(amounts):
        if fill.lay(zone, amount):
            return fill, fill.reached
    return fill, 0


def _inner_first(amounts: Mapping[int, int]) -> Iterator[tuple[int, int]]:
    # Zones inside of each other then fit without anything moving over.
    rows = [(zone.bit_count(), zone, amount) for zone, amount in amounts.items()]
    for _, zone, amount in sorted(rows):
        yield zone, amount
