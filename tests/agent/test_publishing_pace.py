"""Changes of a node are collected before a write, and nodes do not write together."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import hypothesis.strategies as st
import pytest
from hypothesis import given

from nri_resmgr.agent.publishing_pace import PublishingPace, PublishingSchedule

PACE: Final = PublishingPace(settle=1.0, pause=30.0, look=2.0, again=600.0)
MOST: Final = 1.5  # times are at most that much longer
CHANCES: Final = st.floats(0, 1)


def looks_of(
    changes: list[float],
    chances: list[float],
    until: float,
    *,
    writes: bool,
    pace: PublishingPace = PACE,
) -> list[tuple[float, bool]]:
    """Play a node whose daemon says something else at some times.

    Args:
        changes: When.
        chances: Random numbers, used in turn.
        until: The end.
        writes: Whether each look finds something to write.
        pace: That of the node.

    Returns:
        When the daemon was asked, and whether the object was applied in any case.
    """
    turn, number, at = 0, 0, 0.0

    def chance() -> float:
        nonlocal turn
        turn += 1
        return chances[turn % len(chances)]

    schedule = PublishingSchedule(pace, at, chance())
    found: list[tuple[float, bool]] = []
    while True:
        due = at + schedule.rest(at)
        if number < len(changes) and changes[number] <= due:
            at = max(at, changes[number])
            number += 1
            schedule.changed(at, chance())
        elif due > until:
            return found
        else:
            at = due
            found.append((at, schedule.looks(at)))
            schedule.looked(at, chance(), has_written=writes)


@given(
    changes=st.lists(st.floats(0, 400), max_size=60).map(sorted),
    chances=st.lists(CHANCES, min_size=1, max_size=7),
    writes=st.booleans(),
)
def test_each_change_is_published_in_time_and_bursts_are_one_write(
    changes: list[float], chances: list[float], *, writes: bool
) -> None:
    looks = [at for at, _ in looks_of(changes, chances, 500.0, writes=writes)]

    rest = PACE.pause if writes else PACE.look
    for change in [0.0, *changes]:
        after = [at for at in looks if at >= change]
        assert after
        assert after[0] - change <= MOST * (rest + PACE.settle) + 1e-6
    assert all(two - one >= rest + PACE.settle - 1e-6 for one, two in pairwise(looks))
    # No look without a change: each is the first one after some.
    for before, at in pairwise([-1.0, *looks]):
        assert any(
            before <= change <= at - PACE.settle + 1e-6 for change in [0.0, *changes]
        )


@pytest.mark.parametrize("count", [2, 100])
def test_nodes_that_change_at_once_write_spread_out(count: int) -> None:
    """By equally likely chances, writes are equally far from each other."""
    writes = []
    for number in range(count):
        first, _ = looks_of([], [number / (count - 1)], 10.0, writes=True)[0]
        writes.append(first)

    gaps = [two - one for one, two in pairwise(writes)]
    assert (writes[0], writes[-1]) == (PACE.settle, MOST * PACE.settle)
    assert gaps == pytest.approx([0.5 * PACE.settle / (count - 1)] * (count - 1))


@given(first=CHANCES, second=CHANCES)
def test_the_pause_of_busy_nodes_differs(first: float, second: float) -> None:
    """Nodes that change all the time drift apart, by both times of each round."""
    busy = [number / 10 for number in range(1000)]
    rounds = [
        [at for at, _ in looks_of(busy, [chance], 100.0, writes=True)][:3]
        for chance in (first, second)
    ]

    for at, looks in zip((first, second), rounds, strict=True):
        factor = 1 + (MOST - 1) * at
        # A change comes each tenth of a second; in a pause it waits for its end.
        expected = factor * (PACE.pause + PACE.settle)
        assert [two - one for one, two in pairwise(looks)] == pytest.approx(
            [expected] * 2
        )


@given(chances=st.lists(CHANCES, min_size=1, max_size=5), writes=st.booleans())
def test_an_object_is_applied_again_though_nothing_changes(
    chances: list[float], *, writes: bool
) -> None:
    looks = looks_of([], chances, 4000.0, writes=writes)

    (_, first), *others = looks
    assert not first
    assert len(others) >= 3
    assert all(is_again for _, is_again in others)
    gaps = [two - one for (one, _), (two, _) in pairwise(others)]
    assert all(PACE.again - 1e-6 <= gap <= MOST * PACE.again + 1e-6 for gap in gaps)


@given(chances=st.lists(CHANCES, min_size=1, max_size=5))
def test_changes_of_no_effect_do_not_keep_it_from_being_applied_again(
    chances: list[float],
) -> None:
    """On a busy node the daemon is asked all the time, and mostly says the same."""
    busy = [float(number) for number in range(2000)]

    looks = looks_of(busy, chances, 2000.0, writes=False)

    latest = MOST * (PACE.again + PACE.look + PACE.settle)
    assert sum(is_again for _, is_again in looks) >= 2000 // latest
