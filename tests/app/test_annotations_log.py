from __future__ import annotations

from collections.abc import Iterable

import msgspec
from structlog.testing import capture_logs

from nri_resmgr.app.annotations import AnnotationProblem, ProblemLog

WRONG = AnnotationProblem(
    "hide-hyperthreads.resource-policy.nri.io/pod", "x", "not a flag"
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


def test_an_unusual_spelling_is_logged_as_obeyed() -> None:
    unusual = msgspec.structs.replace(WRONG, value="yes", read=True)

    assert logged(("web", [unusual]), ("web", [unusual])) == [
        ("annotation.misspelled", "web", "yes")
    ]


def test_the_record_of_logged_problems_is_bounded() -> None:
    others = [
        msgspec.structs.replace(WRONG, value=str(number)) for number in range(4096)
    ]

    lines = logged(("web", [WRONG]), ("web", others), ("web", [WRONG]))

    assert len(lines) == 4098
