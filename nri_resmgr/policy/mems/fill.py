"""Whether amounts that may each lie in some of the nodes fit together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nri_resmgr.policy.mems.layout import ids_of

_Step = tuple[int, int]  # the zone that moves over, and the node it moves from


class Fill:
    """Amounts laid into nodes, zone by zone; what lies in the way moves over.

    A maximum flow: a zone lies in several nodes in any proportion. So an
    amount that does not fit could not have been made to fit, and the nodes
    reached in vain are the fewest that are promised more than they hold.
    """

    def __init__(self, capacity: Sequence[int]) -> None:
        self._free = list(capacity)
        self._laid: list[dict[int, int]] = [{} for _ in capacity]
        self.reached = 0

    def lay(self, zone: int, amount: int) -> int:
        """Lay *amount* into the nodes of *zone*; return what found no room.

        Where something is returned, `reached` tells the nodes that are full.
        """
        free = self._free
        for node in ids_of(zone):
            if room := free[node]:
                if room >= amount:
                    self._put(zone, node, amount)
                    return 0
                self._put(zone, node, room)
                amount -= room
        while amount and (path := self._way_out(zone)):
            amount -= self._push(zone, path, amount)
        return amount

    def _put(self, zone: int, node: int, amount: int) -> None:
        laid = self._laid[node]
        laid[zone] = laid.get(zone, 0) + amount
        self._free[node] -= amount

    def _way_out(self, zone: int) -> list[_Step]:
        """Find the shortest chain of moves that ends in a node with room.

        Returns:
            The moves, last one first, and before them where that one ends, as
            a move by no zone. Empty where there is no way out.
        """
        came: dict[int, _Step] = dict.fromkeys(ids_of(zone), (0, -1))
        queue = list(came)
        for node in queue:
            if self._free[node]:
                return _steps(node, came)
            for other, amount in self._laid[node].items():
                if amount:
                    fresh = [to for to in ids_of(other) if to not in came]
                    came.update((to, (other, node)) for to in fresh)
                    queue += fresh
        self.reached = sum(1 << node for node in came)
        return []

    def _push(self, zone: int, path: list[_Step], amount: int) -> int:
        """Move what can be moved along *path*, and lay as much of *zone*."""
        (_, end), *moves = path
        moved = min(amount, self._free[end])
        for other, start in moves:
            moved = min(moved, self._laid[start][other])
        self._free[end] -= moved
        for other, start in moves:
            self._laid[start][other] -= moved
            self._laid[end][other] = self._laid[end].get(other, 0) + moved
            end = start
        self._laid[end][zone] = self._laid[end].get(zone, 0) + moved
        return moved


def _steps(end: int, came: Mapping[int, _Step]) -> list[_Step]:
    path = [(0, end)]
    zone, start = came[end]
    while start >= 0:
        path.append((zone, start))
        zone, start = came[start]
    return path


def overfull(amounts: Mapping[int, int], capacity: Sequence[int]) -> int:
    """Return nodes that are promised more than they hold; 0 where none are.

    Args:
        amounts: Bytes promised per zone.
        capacity: Bytes per node id.

    Returns:
        The smallest such set among the zones up to the first that does not fit,
        small zones first. It is the same however the amounts were laid.
    """
    fill = Fill(capacity)
    for zone in sorted(amounts, key=_inner_first):
        if fill.lay(zone, amounts[zone]):
            return fill.reached
    return 0


def filled(amounts: Mapping[int, int], capacity: Sequence[int]) -> Fill:
    """Lay amounts that are known to fit."""
    fill = Fill(capacity)
    for zone in sorted(amounts, key=_inner_first):
        fill.lay(zone, amounts[zone])
    return fill


def _inner_first(zone: int) -> tuple[int, int]:
    # Zones inside of each other then fit without anything moving over.
    return zone.bit_count(), zone
