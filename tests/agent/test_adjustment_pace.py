"""Reports of many nodes on an adjustment are spread over some seconds."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from nri_resmgr.agent.adjustment_pace import AdjustmentPace, spread_of
from nri_resmgr.agent.report_pace import LONGEST
from tests.agent.adjusted import adjustment, entries_of, seen
from tests.agent.fake_api_server import Json

ALL: tuple[str, ...] = ()
FAST: Json = {"classes": {"rdt": "fast"}}


@pytest.mark.parametrize(
    ("before", "after", "seconds"),
    [
        pytest.param(None, adjustment("x"), LONGEST, id="new, for all nodes"),
        pytest.param(None, adjustment("x", ["w-*"]), LONGEST, id="new, for some"),
        pytest.param(None, adjustment("x", ["a"]), 0.0, id="for this node alone"),
        pytest.param(None, adjustment("x", ["a", "b"], ["c"]), 0.2, id="for three"),
        pytest.param(
            None, adjustment("x", ["a"], ALL), LONGEST, id="a scope that is all nodes"
        ),
        pytest.param(
            None,
            adjustment("x", [f"n-{number}" for number in range(1000)]),
            LONGEST,
            id="as many as there are",
        ),
        pytest.param(
            None,
            adjustment("x", entries=entries_of(3)),
            0.3,
            id="known before this agent started",
        ),
        pytest.param(
            adjustment("x", entries=entries_of(3)),
            adjustment("x", entries=entries_of(4), **FAST),
            0.4,
            id="another class for few nodes",
        ),
        pytest.param(
            adjustment("x"), adjustment("x", **FAST), LONGEST, id="no entry yet"
        ),
        pytest.param(
            adjustment("x", ["w-1"], entries=entries_of(1)),
            adjustment("x", entries=entries_of(1)),
            LONGEST,
            id="for one node, then for all",
        ),
        pytest.param(
            adjustment("x", entries=entries_of(3)), None, 0.3, id="removed from few"
        ),
        pytest.param(
            adjustment("x", entries=entries_of(100)), None, LONGEST, id="from many"
        ),
        pytest.param(
            adjustment("x", entries=entries_of(3)),
            adjustment("x", ["w-1"], entries=entries_of(3)),
            LONGEST,
            id="for all nodes, then for one",
        ),
        pytest.param(
            adjustment("x"),
            adjustment("x", entries=entries_of(1)),
            0.0,
            id="the entry of another node",
        ),
        pytest.param(
            None, {"metadata": {"name": "x"}, "spec": {"scope": 3}}, LONGEST, id="bad"
        ),
    ],
)
def test_the_spread_grows_with_the_nodes(
    before: Json | None, after: Json | None, seconds: float
) -> None:
    found = [None if one is None else seen(one) for one in (before, after)]

    assert spread_of("a", *found) == pytest.approx(seconds)


WIDE, NEXT_WIDE, NARROW, OWN = (
    seen(adjustment("wide"), "1"),
    seen(adjustment("wide", **FAST), "1"),
    seen(adjustment("narrow", ["a", "b", "c"]), "2"),
    seen(adjustment("own", ["a"]), "3"),
)


def test_nodes_report_on_a_new_one_at_different_times() -> None:
    chances = [number / 100 for number in range(101)]
    rests = []
    for chance in chances:
        pace = AdjustmentPace("a")
        pace.seen([WIDE], 50.0, chance)
        rests.append(pace.rest(50.0))

    assert rests == pytest.approx([chance * LONGEST for chance in chances])


def test_one_for_this_node_alone_is_reported_at_once() -> None:
    pace = AdjustmentPace("a")
    pace.seen([OWN], 50.0, 1.0)

    assert pace.rest(50.0) == 0.0


def test_a_storm_of_changes_does_not_prolong_a_wait() -> None:
    pace = AdjustmentPace("a")
    pace.seen([WIDE], 50.0, 0.5)
    for number in range(1, 5):
        pace.seen([NEXT_WIDE if number % 2 else WIDE], 50.0 + number, 1.0)

    assert pace.rest(54.0) == pytest.approx(1.0)
    pace.seen([NEXT_WIDE], 56.0, 0.3)
    assert pace.rest(56.0) == pytest.approx(3.0)


def test_a_change_for_more_nodes_is_spread_over_a_longer_time() -> None:
    pace = AdjustmentPace("a")
    pace.seen([NARROW], 50.0, 0.5)
    assert pace.rest(50.0) == pytest.approx(0.1)
    pace.seen([NARROW, WIDE], 50.05, 0.4)
    assert pace.rest(50.05) == pytest.approx(4.0)
    # And back: the wait for all is not cut short by a change for few.
    pace.seen([WIDE], 50.1, 0.0)
    assert pace.rest(50.1) == pytest.approx(3.95)


@given(
    st.lists(
        st.tuples(
            st.floats(0, 1),
            st.floats(0, 20),
            st.sets(st.sampled_from((WIDE, NARROW, OWN)).map(lambda one: one.uid)),
        ),
        max_size=9,
    )
)
def test_what_is_seen_again_moves_nothing_and_no_wait_is_longer(
    changes: list[tuple[float, float, set[str]]],
) -> None:
    by_uid = {one.uid: one for one in (WIDE, NARROW, OWN)}
    now, pace = 100.0, AdjustmentPace("a")
    for chance, pause, uids in changes:
        now += pause
        found = [by_uid[uid] for uid in uids]
        pace.seen(found, now, chance)
        rest = pace.rest(now)
        pace.seen(found, now, 1.0)

        assert pace.rest(now) == rest <= LONGEST
