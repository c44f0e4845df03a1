"""Drawn specs of machines with all the oddities that people's machines have.

They are specs, not machines: what fails is a text that fits into an ``@example``. Each
has at most 16 CPUs, as laws decide many events on each.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from itertools import product
from typing import Final, TypeAlias

import hypothesis.strategies as st
import msgspec

from nri_resmgr.topology import Machine
from nri_resmgr.topology.spec import parse_words
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import NO_CPUS, CpuSet

__all__ = ["MOST_CPUS", "Oddities", "odd_series", "odd_specs"]

MOST_CPUS: Final = 16


Shape: TypeAlias = tuple[int, int, int, int, int, int]
"""Sockets, dies, nodes, cores, threads and efficient cores."""


def _count_cpus(shape: Shape) -> int:
    sockets, dies, nodes, cores, threads, efficient = shape
    return sockets * dies * nodes * (cores * threads + efficient)


# The plainest ones first.
_SHAPES: Final[tuple[Shape, ...]] = tuple(
    (s, d, n, c, t, e)
    for e, s, d, n, c, t in product(
        (0, 1, 2, 4), (1, 2, 3, 4, 8, 16), (1, 2), (1, 2, 3, 4), range(9), (1, 2, 4)
    )
    if 1 <= _count_cpus((s, d, n, c, t, e)) <= MOST_CPUS and (c or t == 1)
)
# Many machines are plain in most respects.
_SELDOM: Final = st.sampled_from([False, False, False, True])

# Longer matrices would be most of the text, and say nothing more.
_MOST_ROWS: Final = 6

# Memory of nodes with CPUs. Without any, there has to be another node for the kernel.
_MEMORY: Final = ("4Gi", "8Gi", "2Gi,4Gi", "6Gi,0,0")
_BARE: Final = ("0", "0,4Gi")
_NORMAL: Final = "dram=1x8Gi"
# Nodes without CPUs; the last one has no memory either.
_EXTRA: Final = (
    "hbm=2x2Gi:movable",
    "hbm=2x2Gi",
    "cxl=1x4Gi:movable",
    "pmem=1x8Gi",
    "dram=1x0",
)


class Oddities(msgspec.Struct, frozen=True):
    """What a law needs of the machines that it draws.

    Attributes:
        least: The number of CPUs that are present at least.
        ordinary: CPUs that are always online and never isolated; *least* counts them.
        first: CPUs that are so before the first change; likewise.
    """

    least: int = 1
    ordinary: CpuSet = NO_CPUS
    first: CpuSet = NO_CPUS


ANY: Final = Oddities()


class _Parts(msgspec.Struct, frozen=True):
    """A machine's words that do not change while it runs, but by hotplug.

    Attributes:
        fixed: The shape, and what is soldered.
        extra: Nodes without CPUs, which can be unplugged last first.
        ids: The ids of all nodes; empty for ids without gaps.
        distances: Between all nodes; empty for those of a server.
        boot: The CPU that the kernel keeps: it is neither offline nor isolated.
        isolated: As on the kernel's command line.
    """

    fixed: tuple[str, ...]
    extra: tuple[str, ...]
    ids: tuple[int, ...]
    distances: tuple[tuple[int, ...], ...]
    boot: CpuSet
    isolated: CpuSet

    def spec(self, memory: str, offline: CpuSet = NO_CPUS, unplugged: int = 0) -> str:
        """Write the machine with some CPUs offline, and without some extra nodes."""
        words = [*self.fixed, *self.extra[: len(self.extra) - unplugged]]
        words.append(f"memory={memory}")
        count = _count_nodes(words)
        if self.ids:
            words.append(f"ids={_listed(self.ids[:count])}")
        if self.distances:
            rows = (_listed(row[:count]) for row in self.distances[:count])
            words.append(f"distances={';'.join(rows)}")
        if offline:
            words.append(f"offline={offline}")
        if isolated := self.isolated - offline:
            words.append(f"isolated={isolated}")
        return " ".join(words)


def odd_specs(needs: Oddities = ANY) -> st.SearchStrategy[str]:
    """Draw the spec of a machine."""
    return odd_series(needs).map(lambda specs: specs[0])


@st.composite
def odd_series(draw: st.DrawFn, needs: Oddities = ANY) -> tuple[str, ...]:
    """Draw a machine, and the same machine after one or two changes while it runs.

    CPUs go offline or come back, memory shrinks or grows, and nodes without CPUs go.
    """
    parts = draw(_parts(needs))
    bare = parts.extra[:1] == (_NORMAL,)
    memory = st.sampled_from(_BARE if bare else _MEMORY)
    unplugged = st.integers(0, len(parts.extra) - bare)
    whole, stays = _whole(parts.fixed), needs.ordinary | parts.boot
    first = parts.spec(draw(memory), draw(_offline(whole, stays | needs.first)))
    changed = st.builds(parts.spec, memory, _offline(whole, stays), unplugged)
    return (first, *draw(st.lists(changed, min_size=1, max_size=2)))


@st.composite
def _parts(draw: st.DrawFn, needs: Oddities) -> _Parts:
    fixed = draw(_fixed(needs.least))
    extra = [_NORMAL] if draw(_SELDOM) else []
    if draw(st.booleans()):
        kinds = st.sampled_from(
            [one for one in _EXTRA if not (extra and "dram" in one)]
        )
        more = draw(st.lists(kinds, min_size=1, max_size=2, unique_by=_kind))
        extra += more
    count = _count_nodes([*fixed, *extra])
    there = _whole(fixed).online
    keeps = list(needs.ordinary or there)
    boot = CpuSet.of(draw(st.just(keeps[0]) | st.sampled_from(keeps)))
    return _Parts(
        fixed,
        tuple(extra),
        ids=draw(_ids(count)),
        distances=draw(_distances(count)),
        boot=boot,
        isolated=draw(_isolated(there - boot - needs.ordinary - needs.first)),
    )


@st.composite
def _fixed(draw: st.DrawFn, least: int) -> tuple[str, ...]:
    """Draw a shape, its caches and clusters, and how nodes relate to sockets."""
    counts = draw(_shapes(least))
    sockets, dies, nodes, cores, _, efficient = counts
    shape = "".join(f"{n}{letter}" for n, letter in zip(counts, "sdncte", strict=True))
    words = [shape.replace("1d", "").replace("0e", "")]
    around = [n for n in range(2, sockets + 1) if sockets % n == 0]
    if dies * nodes == 1 and around and not draw(_SELDOM):
        words.append(f"around={draw(st.sampled_from(around))}")
    if draw(_SELDOM):
        words.append(f"emulated={draw(st.integers(2, 3))}")
    if cores + efficient > 1 and draw(st.booleans()):
        sizes = st.lists(st.integers(1, cores + efficient), min_size=1, max_size=3)
        words.append(f"l3={_listed(draw(sizes))}")
    if draw(_SELDOM):
        words.append(f"cluster={draw(st.integers(1, 3))}")
    if draw(_SELDOM):
        words.append(f"numbering={draw(st.sampled_from(['split', 'adjacent']))}")
    if draw(_SELDOM):
        words.append("hugepages=2Mi:256")
    return tuple(words)


@functools.cache
def _shapes(least: int) -> st.SearchStrategy[Shape]:
    fit = [one for one in _SHAPES if _count_cpus(one) >= least]
    nodes_in_sockets = [one for one in fit if one[1] * one[2] > 1]
    sockets = [one for one in fit if one[0] > 1 and one[1] * one[2] == 1]
    one_core = [one for one in sockets if one[0] > 2 and one[3] + one[5] == 1]
    hybrid = [one for one in fit if one[3] and one[5]]
    kinds = (fit, nodes_in_sockets, sockets, one_core, hybrid)
    return st.one_of(*(st.sampled_from(kind) for kind in kinds))


@st.composite
def _ids(draw: st.DrawFn, count: int) -> tuple[int, ...]:
    """Draw ascending ids with gaps, or none."""
    if not draw(_SELDOM):
        return ()
    last, found = -1, []
    for _ in range(count):
        last += draw(st.integers(1, 3))
        found.append(last)
    return tuple(found)


@st.composite
def _distances(draw: st.DrawFn, count: int) -> tuple[tuple[int, ...], ...]:
    """Draw a matrix that is not symmetric, or the same number everywhere; or none."""
    if count > _MOST_ROWS or not draw(_SELDOM):
        return ()
    far = st.lists(st.sampled_from([11, 20, 31]), min_size=count, max_size=count)
    rows = enumerate(draw(st.just([10] * count) | far))
    return tuple(
        tuple(10 if a == b else there for b in range(count)) for a, there in rows
    )


@st.composite
def _isolated(draw: st.DrawFn, there: CpuSet) -> CpuSet:
    """Draw isolated CPUs, or none; few, or almost all."""
    if not there or not draw(_SELDOM):
        return NO_CPUS
    return CpuSet.from_iterable(draw(st.sets(st.sampled_from(list(there)), min_size=1)))


def _offline(whole: Machine, stays: CpuSet) -> st.SearchStrategy[CpuSet]:
    """Draw what goes offline: nothing, a thread, a node's CPUs, or any of them."""
    some = [NO_CPUS, NO_CPUS]
    some += [CpuSet.of(max(core.cpus)) for core in whole.cores if len(core.cpus) > 1]
    some += whole.node_cpus
    found = st.sampled_from(some).map(lambda cpus: cpus - stays)
    if not (loose := list(whole.online - stays)):
        return found
    return found | st.sets(st.sampled_from(loose), max_size=4).map(CpuSet.from_iterable)


@functools.cache
def _whole(fixed: tuple[str, ...]) -> Machine:
    """Return the machine with all its CPUs, and with no memory but theirs."""
    return parse_spec(" ".join(fixed))


def _count_nodes(words: Sequence[str]) -> int:
    found = parse_words(" ".join(words))
    extra = sum(one.count for one in found.extra)
    return found.cpu_nodes * found.emulated + extra


def _kind(word: str) -> str:
    return word.partition("=")[0]


def _listed(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))
