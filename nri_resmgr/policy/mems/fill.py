"""Distribution of memory amounts over nodes: a maximum flow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from nri_resmgr.policy.mems.layout import ids_of

_Step: TypeAlias = tuple[int, int]  # the zone that moves, and its present node
_Path: TypeAlias = tuple[int, dict[int, _Step]]  # last node, and the step to each node


class Fill:
    """A distribution of the amounts of zones over their nodes.

    This is a maximum flow: a zone may use its nodes in any proportion, and amounts are
    moved over to make room. So an amount that does not fit cannot fit in any
    distribution, and the nodes that the search reached are the smallest set whose
    amounts exceed its capacity. Both results do not depend on the present distribution.
    """

    def __init__(
        self, free: Sequence[int], laid: list[dict[int, int]] | None = None
    ) -> None:
        """Start with the free bytes of each node, by id, and the amounts laid there."""
        self._free = list(free)
        self._laid = [{} for _ in free] if laid is None else laid
        self.reached = 0

    def copy(self) -> Fill:
        """Return a copy that may be changed."""
        return Fill(self._free, [laid.copy() for laid in self._laid])

    def least_free(self) -> int:
        """Return the free bytes of the fullest node; 0 with a node without memory."""
        return min(self._free)

    def free(self, zone: int) -> int:
        """Return the free bytes in the nodes of *zone* as distributed now."""
        free = self._free
        return sum([free[node] for node in ids_of(zone)])

    def lay(self, zone: int, amount: int) -> int:
        """Lay *amount* into the nodes of *zone*; return the part that does not fit.

        If it is positive, `reached` are the nodes that are full.
        """
        free, laid = self._free, self._laid
        for node in ids_of(zone):
            if left := free[node]:
                part = min(left, amount)
                laid[node][zone] = laid[node].get(zone, 0) + part
                free[node] = left - part
                amount -= part
                if not amount:
                    return 0
        while amount and (path := self._path_to_free(zone)):
            amount -= self._push(zone, path, amount)
        return amount

    def lift(self, zone: int, amount: int) -> None:
        """Remove an amount of *zone*."""
        for node in ids_of(zone):
            laid = self._laid[node]
            if part := min(amount, laid.get(zone, 0)):
                laid[zone] -= part
                self._free[node] += part
                amount -= part

    def move(self, before: int, after: int, amount: int) -> bool:
        """Move an amount to another zone; False, and it stays, if it does not fit."""
        self.lift(before, amount)
        if rest := self.lay(after, amount):
            self.lift(after, amount - rest)
            self.lay(before, amount)
        return not rest

    def _path_to_free(self, zone: int) -> _Path | None:
        """Find the shortest chain of moves that ends in a node with free memory."""
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

    def _push(self, zone: int, path: _Path, amount: int) -> int:
        """Move as much as possible along *path*, and lay as much of *zone*."""
        laid = self._laid
        end, came = path
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
    """Lay the amounts of zones, small zones first, until one does not fit.

    Returns:
        The distribution, and the smallest set of nodes whose amounts exceed their
        capacity among the zones so far; 0 for none.
    """
    fill = Fill(capacity)
    # Nested zones fit without any move if the inner ones are first.
    rows = [(zone.bit_count(), zone, amount) for zone, amount in amounts.items()]
    for _, zone, amount in sorted(rows):
        if fill.lay(zone, amount):
            return fill, fill.reached
    return fill, 0
