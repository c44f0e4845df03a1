"""Laws of CPU and node sets; the oracle is Python's own set."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.values import BadListFormat, BadMask, CpuSet, NodeSet

# Beyond 2048, and dense near word borders, where bit arithmetic goes wrong.
IDS = st.one_of(st.integers(0, 130), st.integers(0, 4100))
PLAIN = st.frozensets(IDS, max_size=60)
# Ranges, so that runs longer than a word turn up.
RUNS = st.builds(
    lambda a, n: frozenset(range(a, a + n)), st.integers(0, 300), st.integers(0, 200)
)
SETS = st.builds(frozenset.union, PLAIN, RUNS)


@given(SETS, SETS)
def test_operators_are_those_of_sets(a: frozenset[int], b: frozenset[int]) -> None:
    x, y = CpuSet.from_iterable(a), CpuSet.from_iterable(b)

    assert [frozenset(s) for s in (x | y, x & y, x - y, x ^ y)] == [
        a | b,
        a & b,
        a - b,
        a ^ b,
    ]
    assert (x <= y, x < y, x >= y, x > y, x.isdisjoint(y), x == y) == (
        a <= b,
        a < b,
        a >= b,
        a > b,
        a.isdisjoint(b),
        a == b,
    )


@given(SETS, IDS)
def test_a_set_is_a_collection_that_ascends(ids: frozenset[int], one: int) -> None:
    cpus = CpuSet.from_iterable(ids)

    assert list(cpus) == sorted(ids)
    assert (len(cpus), bool(cpus), one in cpus) == (len(ids), bool(ids), one in ids)
    assert hash(cpus) == hash(CpuSet.of(*ids))


@given(SETS, st.integers(-2, 300))
def test_lowest_takes_the_first_so_many(ids: frozenset[int], count: int) -> None:
    lowest = CpuSet.from_iterable(ids).lowest(count)

    assert list(lowest) == sorted(ids)[: max(count, 0)]


@given(SETS)
def test_text_is_canonical_and_reads_back(ids: frozenset[int]) -> None:
    cpus = CpuSet.from_iterable(ids)
    text = str(cpus)
    ranges = [tuple(map(int, part.split("-"))) for part in text.split(",") if part]

    assert CpuSet.parse(text) == cpus
    # Canonical: ascending, and never two ranges that touch.
    assert all(a[-1] + 1 < b[0] for a, b in pairwise(ranges))
    assert all(len(r) == 1 or r[0] < r[1] for r in ranges)


@given(SETS)
def test_masks_read_back_and_have_words_of_eight_digits(ids: frozenset[int]) -> None:
    cpus = CpuSet.from_iterable(ids)
    words = cpus.mask().split(",")

    assert CpuSet.from_mask(cpus.mask()) == cpus
    assert {len(word) for word in words} == {8}
    assert int("".join(words), 16) == sum(1 << n for n in ids)


@given(st.integers(0, 200), st.integers(0, 200), st.data())
def test_a_group_takes_the_first_of_every_so_many(
    first: int, more: int, data: st.DataObject
) -> None:
    group = data.draw(st.integers(1, 80))
    used = data.draw(st.integers(0, group))
    chosen = [n for n in range(first, first + more + 1) if (n - first) % group < used]

    assert list(CpuSet.parse(f"{first}-{first + more}:{used}/{group}")) == chosen


@given(st.text("0123456789-,:/ x\n\u0663", max_size=20))
def test_any_text_is_read_or_refused(text: str) -> None:
    for parse in (CpuSet.parse, CpuSet.from_mask, NodeSet.parse):
        with contextlib.suppress(BadListFormat, BadMask):
            parsed = parse(text)
            assert type(parsed).parse(str(parsed)) == parsed


@given(st.lists(SETS, max_size=4))
def test_union_holds_what_any_set_holds(sets: list[frozenset[int]]) -> None:
    union = NodeSet.union(NodeSet.from_iterable(ids) for ids in sets)

    assert frozenset(union) == frozenset[int]().union(*sets)


def test_a_cpu_set_is_never_equal_to_a_node_set() -> None:
    both: set[object] = {CpuSet.of(1), NodeSet.of(1)}

    assert len(both) == 2


@pytest.mark.parametrize("make", [CpuSet, CpuSet.of])
def test_a_negative_id_is_a_bug_of_the_caller(make: Callable[[int], CpuSet]) -> None:
    with pytest.raises(ValueError, match="negative"):
        make(-1)
