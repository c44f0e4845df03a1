"""Reports of many nodes on one change are spread, and say what came of it."""

from __future__ import annotations

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given

from nri_resmgr.agent.choice import (
    Ambiguous,
    Choice,
    Chosen,
    ConfigObject,
    Nothing,
    Waiting,
)
from nri_resmgr.agent.daemon_state import DaemonState
from nri_resmgr.agent.node_report import Facts
from nri_resmgr.agent.report_pace import LONGEST, PATIENCE, ReportPace, spread_of
from nri_resmgr.agent.verdict import PENDING, Outcome, Verdict

OWN = ConfigObject("StaticPolicy", "nri", "node.a", "uid-1", 3, "77", "")
SHARED = ConfigObject("StaticPolicy", "nri", "default", "uid-2", 3, "78", "")
ACCEPTED = Verdict(Outcome.ACCEPTED)
STATE = DaemonState()


def reported_by(count: int) -> Chosen:
    return Chosen(msgspec.structs.replace(SHARED, reported_by=count))


@pytest.mark.parametrize(
    ("choice", "seconds"),
    [
        pytest.param(Chosen(OWN), 0.0, id="its own"),
        pytest.param(Waiting(), 0.0, id="nothing is known"),
        pytest.param(reported_by(0), LONGEST, id="a new one"),
        pytest.param(reported_by(3), 0.3, id="few nodes"),
        pytest.param(reported_by(100), LONGEST, id="as many as there are"),
        pytest.param(Nothing(("default",)), LONGEST, id="it is gone"),
        pytest.param(Ambiguous((SHARED, OWN)), LONGEST, id="several"),
    ],
)
def test_the_spread_grows_with_the_nodes(choice: Choice, seconds: float) -> None:
    assert spread_of(choice, "node.a") == pytest.approx(seconds)


@given(
    st.lists(
        st.tuples(st.floats(0, 1), st.floats(0, 20), st.integers(0, 100)), max_size=9
    )
)
def test_each_change_is_spread_and_nothing_else_moves_it(
    changes: list[tuple[float, float, int]],
) -> None:
    now, pace = 100.0, ReportPace("node.a", 100.0)
    choice: Choice = Waiting()
    due = now
    for chance, pause, count in changes:
        now += pause
        new = reported_by(count)
        if new != choice:
            choice, due = new, now + chance * spread_of(new, "node.a")
        pace.chosen(new, now, chance)
        pace.chosen(new, now, 1.0)  # the same again
        facts = Facts(choice, SHARED, ACCEPTED, STATE)
        assert pace.rest(facts, now) == pytest.approx(max(0.0, due - now))
        assert pace.rest(facts, now) <= LONGEST


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param(Facts(Chosen(OWN), OWN, PENDING, STATE), id="no verdict"),
        pytest.param(Facts(Chosen(OWN), OWN, ACCEPTED, None), id="no daemon"),
        pytest.param(Facts(Waiting(), OWN, PENDING, STATE), id="no object"),
    ],
)
def test_an_answer_is_awaited_for_a_limited_time(facts: Facts) -> None:
    pace = ReportPace("node.a", 0.0)

    assert pace.rest(facts, 1.0) == PATIENCE - 1.0
    assert pace.rest(facts, PATIENCE) == 0.0
    pace.handed_over(50.0)
    assert pace.rest(facts, 52.0) == PATIENCE - 2.0


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param(Facts(Chosen(OWN), OWN, ACCEPTED, STATE), id="a verdict"),
        pytest.param(Facts(Waiting("why"), OWN, PENDING, STATE), id="not readable"),
        pytest.param(Facts(Nothing(()), None, PENDING, STATE), id="no document"),
    ],
)
def test_a_known_verdict_is_reported_at_once(facts: Facts) -> None:
    assert ReportPace("node.a", 0.0).rest(facts, 0.0) == 0.0
