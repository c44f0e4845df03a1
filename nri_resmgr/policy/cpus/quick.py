"""The quick way to a best pick where all CPUs are alike and only groups decide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs

from nri_resmgr.policy.cpus.problem import Problem
from nri_resmgr.values import CpuSet


@attrs.frozen(order=True)
class Found:
    """A pick, in the order of picks.

    Attributes:
        touched: Groups touched, per depth below the group that holds the pick.
        outer: Room in the groups around the pick, per depth; negative where
            the roomiest group is to win.
        room: Room in the touched groups, per depth below.
        place: Index of the group that holds the pick.
        bits: The pick.
        bound: What `touched` cannot be less than.
    """

    touched: tuple[int, ...]
    outer: tuple[int, ...]
    room: tuple[int, ...]
    place: int
    bits: int
    bound: tuple[int, ...]


@attrs.frozen(eq=False)
class Quick:
    """One quick search.

    The deepest groups that can hold the request alone are the candidates. In
    each the pick goes down level by level: the fewest groups, tightest ones
    where there is a choice. No pick is better if no level, looked at alone,
    could do with fewer groups.

    Attributes:
        problem: A plain one.
        sign: 1 if the tightest group wins, -1 if the roomiest does.
        counts: CPUs to take, per depth and group.
    """

    problem: Problem
    sign: int
    counts: tuple[Sequence[int], ...] = attrs.field(init=False)

    @counts.default
    def _count(self) -> tuple[Sequence[int], ...]:
        take = self.problem.take
        return tuple(
            [(mask & take).bit_count() for mask in cut.groups]
            for cut in self.problem.index.partitions
        )

    def best(self) -> tuple[CpuSet, bool]:
        """Return a pick, and whether it is known to be the best."""
        depth, places = self._candidates()
        outer = self._outer_rooms(depth, places)
        rooms = dict(zip(places, outer, strict=True))
        least = min(outer)
        tightest = {at: room for at, room in rooms.items() if room == least}
        ideal = self._ideal(depth)
        found = [self._inside(depth, *one) for one in self._unlike(depth, tightest)]
        if hits := [pick for pick in found if pick.touched == ideal]:
            return CpuSet(min(hits).bits), True
        if len(tightest) < len(places):
            found = [self._inside(depth, *one) for one in self._unlike(depth, rooms)]
        winner = min(found)
        return CpuSet(winner.bits), all(winner.touched <= pick.bound for pick in found)

    def _candidates(self) -> tuple[int, list[int]]:
        """Return the deepest depth with groups that hold the pick, and these."""
        wanted = self.problem.count
        for depth in range(len(self.counts) - 1, 0, -1):
            row = self.counts[depth]
            if fit := [place for place, count in enumerate(row) if count >= wanted]:
                return depth, fit
        return 0, [0]

    def _outer_rooms(self, depth: int, places: Sequence[int]) -> list[tuple[int, ...]]:
        """Return the room around every place, from the widest group inwards."""
        free, index = self.problem.free, self.problem.index
        columns: list[list[int]] = []
        for cut, around in zip(index.partitions, index.ancestors[depth], strict=False):
            masks = cut.groups
            room = {
                at: self.sign * (masks[at] & free).bit_count()
                for at in {around[place] for place in places}
            }
            columns.append([room[around[place]] for place in places])
        return list(zip(*columns, strict=True))

    def _unlike(
        self, depth: int, rooms: Mapping[int, tuple[int, ...]]
    ) -> list[tuple[int, tuple[int, ...]]]:
        """Leave the first of places that are filled alike, with its outer room."""
        below = self.counts[depth + 1 :]
        within = self.problem.index.within[depth]
        seen: dict[tuple[tuple[int, ...], ...], tuple[int, tuple[int, ...]]] = {}
        for place, room in rooms.items():
            filling = (
                tuple(map(row.__getitem__, inner))
                for row, inner in zip(below, within[place], strict=True)
            )
            seen.setdefault((room, *filling), (place, room))
        return list(seen.values())

    def _inside(self, depth: int, place: int, outer: tuple[int, ...]) -> Found:
        """Go down from a group that holds the pick to the cores."""
        index, wanted = self.problem.index, self.problem.count
        zone = [place]
        touched, room, bound = [], [], []
        for at in range(depth + 1, len(self.counts)):
            row, within = self.counts[at], index.within[at - 1]
            inner = [kid for group in zone for kid in within[group][0] if row[kid]]
            zone = _fewest(inner, row, wanted, roomy=self.sign < 0)
            touched.append(len(zone))
            room.append(self.sign * sum(map(row.__getitem__, zone)))
            every = index.within[depth][place][at - depth - 1]
            alone = touched[-1] if at == depth + 1 else _least(every, row, wanted)
            bound.append(alone)
        bits = self._cut(zone)
        return Found(tuple(touched), outer, tuple(room), place, bits, tuple(bound))

    def _cut(self, cores: Sequence[int]) -> int:
        """Return the CPUs of the cores, less what the last one has too many."""
        masks, take = self.problem.index.partitions[-1].groups, self.problem.take
        bits = 0
        for core in cores[:-1]:
            bits |= masks[core]
        bits &= take
        missing = self.problem.count - bits.bit_count()
        last = CpuSet(masks[cores[-1]] & take)
        return bits | last.lowest(missing).bits

    def _ideal(self, depth: int) -> tuple[int, ...]:
        """Return how few groups a pick touches where the fullest are together."""
        wanted = self.problem.count
        return tuple(-(-wanted // max(row)) for row in self.counts[depth + 1 :])


def _fewest(
    groups: Iterable[int], counts: Sequence[int], wanted: int, *, roomy: bool
) -> list[int]:
    """Return the fewest groups that have *wanted* CPUs together, ascending.

    The fullest are taken; the last of these gives way to the tightest that will
    do, if the roomiest are not wanted.
    """
    order = sorted(groups, key=counts.__getitem__, reverse=True)
    many = _prefix(order, counts, wanted)
    chosen = order[:many]
    spare = sum(map(counts.__getitem__, chosen)) - wanted
    if spare and not roomy:
        least = counts[chosen[-1]] - spare
        fit = [group for group in order[many - 1 :] if counts[group] >= least]
        chosen[-1] = min(fit, key=counts.__getitem__)
    return sorted(chosen)


def _least(groups: Iterable[int], counts: Sequence[int], wanted: int) -> int:
    order = sorted(groups, key=counts.__getitem__, reverse=True)
    return _prefix(order, counts, wanted)


def _prefix(order: Sequence[int], counts: Sequence[int], wanted: int) -> int:
    """Return how many of the first groups have *wanted* CPUs together."""
    total = 0
    for many, group in enumerate(order, 1):
        total += counts[group]
        if total >= wanted:
            return many
    return len(order)
