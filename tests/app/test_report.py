"""When the lines about decisions are made."""

from __future__ import annotations

import asyncio

from structlog.testing import capture_logs

from nri_resmgr.app.report import report_decision
from nri_resmgr.policy.decision import Decision, Reason, Rule
from nri_resmgr.policy.events import Removed, Stopped, Synchronized


def released(container: str) -> Decision[None]:
    return Decision(None, (Reason(Rule.RELEASED, container),))


async def test_lines_about_containers_come_after_the_reply_and_in_order() -> None:
    with capture_logs() as lines:
        report_decision(Stopped("a"), released("a"), dry_run=False)
        report_decision(Removed("b"), released("b"), dry_run=False)
        at_once = list(lines)
        await asyncio.sleep(0)

    assert at_once == []
    assert [(line["event"], line["container"]) for line in lines] == [
        ("container.released", "a"),
        ("container.forgotten", "b"),
    ]


async def test_the_line_about_the_node_comes_before_what_follows_from_it() -> None:
    with capture_logs() as lines:
        report_decision(Synchronized(()), Decision(None, ()), dry_run=False)

    assert [line["event"] for line in lines] == ["node.synchronized"]


def test_lines_are_made_at_once_where_no_loop_runs() -> None:
    with capture_logs() as lines:
        report_decision(Stopped("a"), released("a"), dry_run=True)

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
