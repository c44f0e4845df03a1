"""Problems with classes: counted, logged once, and kept until they are solved."""

from __future__ import annotations

from structlog.testing import capture_logs

from nri_resmgr.app.classes.problems import RETRY, ClassProblems
from nri_resmgr.classes.choice import ClassChoice, Origin


def test_a_dropped_class_is_logged_once_and_always_counted() -> None:
    problems = ClassProblems("rdt")
    with capture_logs() as lines:
        for name in ("slow", "slow", "fast"):
            problems.drop(ClassChoice(name, Origin.QOS), "a/b/c", "there is none")

    assert problems.dropped == 3
    assert [(one["event"], one["name"], one["by"]) for one in lines] == [
        ("classes.dropped", "slow", "qos"),
        ("classes.dropped", "fast", "qos"),
    ]


def test_a_failure_is_logged_when_its_reason_changes_and_when_it_ends() -> None:
    problems = ClassProblems("rdt")
    with capture_logs() as lines:
        for why in ("full", "full", "locked"):
            problems.fail("groups", why)
        before = dict(problems.present)
        problems.clear("groups")
        problems.clear("groups")

    assert (before, dict(problems.present)) == ({"groups": "locked"}, {})
    assert problems.failures == 3
    assert [(one["event"], one.get("why")) for one in lines] == [
        ("classes.failed", "full"),
        ("classes.failed", "locked"),
        ("classes.recovered", None),
    ]


def test_a_failed_operation_is_retried_within_ten_seconds() -> None:
    problems = ClassProblems("rdt")
    before = problems.period(30.0)
    with capture_logs():
        problems.fail("groups", "full")

    assert (before, problems.period(30.0), problems.period(5.0)) == (30.0, RETRY, 5.0)
    assert RETRY == 10.0


def test_failures_of_removed_containers_are_discarded() -> None:
    problems = ClassProblems("blockio")
    with capture_logs():
        for subject in ("groups", "a/b/c", "a/b/d"):
            problems.fail(subject, "refused")
    problems.keep_only({"a/b/d"})

    assert list(problems.present) == ["groups", "a/b/d"]


def test_a_fault_stays_reported_after_a_change_of_configuration() -> None:
    problems = ClassProblems("rdt")
    with capture_logs():
        problems.fail("groups", "full")
        problems.note_fault("a fault")
    before = dict(problems.present)
    problems.forget()

    assert before == {"groups": "full", "service": "a fault"}
    assert dict(problems.present) == {"service": "a fault"}
    assert problems.failures == 2
