"""The quick way to a best pick where all CPUs are alike and only groups decide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs

from nri_resmgr.policy.cpus.problem import Problem
from nri_resmgr.values import CpuSet

# Indices of groups with the room around each, from the widest group inwards.
_Rooms = dict[int, tuple[int, ...]]


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


@attrs.frozen(eq=False, repr=False)
class Quick:
    """One quick search.

    The deepest groups that can hold the request alone are the candidates. In
    each the pick goes down level by level: the fewest groups, tightest ones
    where there is a choice. No pick is better if no level, looked at alone,
    could do with fewer groups.

    Attributes:
        problem: A plain one.
        sign: 1 if the tightest group wins, -1 if the roomiest does.
    """

    problem: Problem
    sign: int

    def best(self) -> tuple[CpuSet, bool]:
        """Return a pick, and whether it is known to be the best."""
        depth = self._deepest()
        tightest = self._tightest(depth)
        if depth == len(self.problem.index.partitions) - 1:
            return CpuSet(self._cut([min(tightest)])), True
        found = self._all_inside(depth, dict.fromkeys(tightest, ()))
        ideal = self._ideal(depth)
        if hits := [pick for pick in found if pick.touched == ideal]:
            return CpuSet(min(hits).bits if len(hits) > 1 else hits[0].bits), True
        found = self._all_inside(depth, self._all_rooms(depth))
        winner = min(found)
        return CpuSet(winner.bits), all(winner.touched <= pick.bound for pick in found)

    def _deepest(self) -> int:
        """Return the greatest depth with a group that holds the pick."""
        index, take, wanted = self.problem.index, self.problem.take, self.problem.count
        found = 0
        for depth, cut in enumerate(index.partitions):
            if index.largest[depth] < wanted:
                break
            if not any((mask & take).bit_count() >= wanted for mask in cut.groups):
                break
            found = depth
        return found

    def _tightest(self, deepest: int) -> list[int]:
        """Find the places with the least room around, widest groups first."""
        index, free, zone = self.problem.index, self.problem.free, [0]
        for depth in range(1, deepest + 1):
            within, masks = index.within[depth - 1], index.partitions[depth].groups
            alike: dict[int, list[int]] = {}
            for around in zone:
                for kid in within[around][0]:
                    room = (masks[kid] & free).bit_count()
                    alike.setdefault(room, []).append(kid)
            for room in sorted(alike, reverse=self.sign < 0):
                if holding := self._holding(depth, deepest, alike[room]):
                    zone = holding
                    break
        return zone

    def _holding(self, depth: int, deepest: int, groups: Iterable[int]) -> list[int]:
        """Leave groups with a place at the deepest depth, of idle ones the first."""
        index, take, wanted = self.problem.index, self.problem.take, self.problem.count
        masks, places = index.partitions[depth].groups, index.partitions[deepest].groups
        idle: set[int] = set()
        found = []
        for at in groups:
            if masks[at] & take == masks[at]:
                if index.shapes[depth][at] in idle:
                    continue
                idle.add(index.shapes[depth][at])
            below = (
                index.within[depth][at][deepest - depth - 1]
                if deepest > depth
                else (at,)
            )
            if any((places[one] & take).bit_count() >= wanted for one in below):
                found.append(at)
        return found

    def _all_rooms(self, depth: int) -> _Rooms:
        """Return all places that hold the pick, with the room around each."""
        index, take, wanted = self.problem.index, self.problem.take, self.problem.count
        places = [
            place
            for place, mask in enumerate(index.partitions[depth].groups)
            if (mask & take).bit_count() >= wanted
        ]
        columns: list[list[int]] = []
        for level, around in enumerate(index.ancestors[depth]):
            room = self._room(level, {around[place] for place in places})
            columns.append([room[around[place]] for place in places])
        return dict(zip(places, zip(*columns, strict=True), strict=True))

    def _room(self, depth: int, places: Iterable[int]) -> dict[int, int]:
        masks, free = self.problem.index.partitions[depth].groups, self.problem.free
        return {at: self.sign * (masks[at] & free).bit_count() for at in places}

    def _all_inside(self, depth: int, rooms: _Rooms) -> list[Found]:
        """Try every place, but only the first of those that are filled alike."""
        counts = self._counts(depth, rooms)
        if len(rooms) == 1:
            ((place, outer),) = rooms.items()
            return [self._inside(depth, place, outer, counts)]
        within = self.problem.index.within[depth]
        seen: dict[tuple[tuple[int, ...], ...], int] = {}
        for place, outer in rooms.items():
            filling = (
                tuple(map(row.__getitem__, inner))
                for row, inner in zip(counts, within[place], strict=True)
            )
            seen.setdefault((outer, *filling), place)
        return [self._inside(depth, at, key[0], counts) for key, at in seen.items()]

    def _counts(self, depth: int, places: Iterable[int]) -> list[dict[int, int]]:
        """Count the CPUs to take in every group inside of *places*, per depth."""
        index, take = self.problem.index, self.problem.take
        within = [index.within[depth][place] for place in places]
        return [
            {
                inner: (cut.groups[inner] & take).bit_count()
                for rows in within
                for inner in rows[below]
            }
            for below, cut in enumerate(index.partitions[depth + 1 :])
        ]

    def _inside(
        self,
        depth: int,
        place: int,
        outer: tuple[int, ...],
        counts: Sequence[Mapping[int, int]],
    ) -> Found:
        """Go down from a group that holds the pick to the cores."""
        index, wanted = self.problem.index, self.problem.count
        zone = [place]
        touched, room, bound = [], [], []
        for below, row in enumerate(counts):
            within = index.within[depth + below]
            inner = [kid for group in zone for kid in within[group][0] if row[kid]]
            zone = _fewest(inner, row, wanted, roomy=self.sign < 0)
            touched.append(len(zone))
            room.append(self.sign * sum(map(row.__getitem__, zone)))
            every = index.within[depth][place][below]
            bound.append(_least(every, row, wanted) if below else len(zone))
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
        last = masks[cores[-1]] & take
        if last.bit_count() > missing:
            last = CpuSet(last).lowest(missing).bits
        return bits | last

    def _ideal(self, depth: int) -> tuple[int, ...]:
        """Return how few groups a pick touches where all are free."""
        wanted = self.problem.count
        return tuple(
            -(-wanted // size) for size in self.problem.index.largest[depth + 1 :]
        )


def _fewest(
    groups: Iterable[int], counts: Mapping[int, int], wanted: int, *, roomy: bool
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


def _least(groups: Iterable[int], counts: Mapping[int, int], wanted: int) -> int:
    order = sorted(groups, key=counts.__getitem__, reverse=True)
    return _prefix(order, counts, wanted)


def _prefix(order: Sequence[int], counts: Mapping[int, int], wanted: int) -> int:
    """Return how many of the first groups have *wanted* CPUs together."""
    total = 0
    for many, group in enumerate(order, 1):
        total += counts[group]
        if total >= wanted:
            return many
    return len(order)
