"""What the lines about decisions say."""

from __future__ import annotations

from typing import Any

from structlog.testing import capture_logs

from nri_resmgr.app.observing.decision_log import DecisionLog
from nri_resmgr.log.levels import levels
from nri_resmgr.policy.decision import Decision, Reason
from nri_resmgr.policy.events import Removed, Stopped, Synchronized
from nri_resmgr.policy.rules import Rule
from nri_resmgr.values import CpuSet

NO_STATE: Any = None  # the log does not read it


def test_the_line_about_the_node_comes_before_those_about_its_containers() -> None:
    decision = Decision(NO_STATE, (Reason(Rule.FELL_BACK, "a", title="n/p/a"),))
    with capture_logs() as lines:
        list(DecisionLog(dry_run=False).decided(Synchronized(()), decision) or ())

    assert lines == [
        {
            "event": "node.synchronized",
            "log_level": "info",
            "containers": 1,
            "rules": {"fell-back": 1},
            "updates": 0,
        },
        {
            "event": "container.fell-back",
            "log_level": "warning",
            "container": "a",
            "title": "n/p/a",
            "rule": "fell-back",
        },
    ]


def test_lines_of_a_dry_run_are_marked() -> None:
    with capture_logs() as lines:
        decision = Decision(NO_STATE, (Reason(Rule.RELEASED, "a"),))
        DecisionLog(dry_run=True).decided(Stopped("a"), decision)

    assert lines == [
        {
            "event": "container.released",
            "log_level": "info",
            "container": "a",
            "rule": "released",
            "updates": 0,
            "dry_run": True,
        }
    ]


def test_the_removal_of_a_stopped_container_is_logged_at_debug_level() -> None:
    removal = Decision(NO_STATE, (Reason(Rule.UNKNOWN_CONTAINER, "a"),))
    try:
        levels.set("app.observing.decision_log", "info")
        with capture_logs() as unsaid:
            DecisionLog(dry_run=False).decided(Removed("a"), removal)
        levels.set("app.observing.decision_log", "debug")
        with capture_logs() as lines:
            DecisionLog(dry_run=False).decided(Removed("a"), removal)
    finally:
        levels.set("*", "debug")

    assert unsaid == []
    assert [(line["event"], line["log_level"]) for line in lines] == [
        ("container.removed", "debug")
    ]


def test_containers_that_had_fallen_back_are_logged_beside_the_stopped_one() -> None:
    reasons = (
        Reason(Rule.RELEASED, "a"),
        Reason(Rule.NOW_FITS, "b", cpus=CpuSet.parse("1-2")),
        Reason(Rule.FELL_BACK, "c"),
    )
    with capture_logs() as lines:
        decision = Decision(NO_STATE, reasons)
        DecisionLog(dry_run=False).decided(Stopped("a"), decision)

    assert [(one["event"], one["container"], one["log_level"]) for one in lines] == [
        ("container.released", "a", "info"),
        ("container.now-fits", "b", "info"),
        ("container.fell-back", "c", "warning"),
    ]
    assert lines[1]["cpus"] == "1-2"
