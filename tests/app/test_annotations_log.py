from __future__ import annotations

from collections.abc import Iterable

import msgspec
from structlog.testing import capture_logs

from nri_resmgr.app.annotations import AnnotationProblem, ProblemLog

WRONG = AnnotationProblem(
    "hide-hyperthreads.resource-policy.nri.io/pod", "x", "not a flag"
)
IDLE = AnnotationProblem(
    "rdtclass.resource-policy.nri.io", "gold", "not yet", pending=True
)


def logged(
    *reports: tuple[str, Iterable[AnnotationProblem]],
) -> list[tuple[str, str, str]]:
    problem_log = ProblemLog()
    with capture_logs() as lines:
        for container, problems in reports:
            problem_log.report("sales/shop", container, problems)
    return [(line["event"], line["container"], line["value"]) for line in lines]


def test_each_problem_is_logged_once() -> None:
    assert logged(("web", [WRONG]), ("web", [WRONG]), ("db", [WRONG])) == [
        ("annotation.ignored", "web", "x"),
        ("annotation.ignored", "db", "x"),
    ]


def test_another_wrong_value_is_logged_again() -> None:
    other = msgspec.structs.replace(WRONG, value="y")

    assert logged(("web", [WRONG]), ("web", [other])) == [
        ("annotation.ignored", "web", "x"),
        ("annotation.ignored", "web", "y"),
    ]


def test_what_is_not_in_force_is_logged_once_for_all() -> None:
    elsewhere = msgspec.structs.replace(IDLE, key=f"{IDLE.key}/pod", value="silver")

    assert logged(("web", [IDLE]), ("db", [elsewhere])) == [
        ("annotation.ineffective", "web", "gold")
    ]


def test_the_memory_of_what_was_logged_is_limited() -> None:
    others = [
        msgspec.structs.replace(WRONG, value=str(number)) for number in range(4096)
    ]

    lines = logged(("web", [WRONG]), ("web", others), ("web", [WRONG]))

    assert len(lines) == 4098
