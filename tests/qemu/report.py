"""What happened to each test of a guest, read from its JUnit report."""

from __future__ import annotations

import enum
from xml.etree import ElementTree as ET

import attrs


class Outcome(enum.StrEnum):
    """How a test ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@attrs.frozen
class Result:
    """One test of the report.

    Attributes:
        name: Module and function, ``tests.host.test_x::test_y[case]``.
        outcome: How it ended; an error in a fixture is a failure.
        text: Why it failed or was skipped, as pytest tells it; else empty.
        seconds: Time in the guest, fixtures included.
    """

    name: str
    outcome: Outcome
    text: str
    seconds: float


def read_report(junit: str) -> tuple[Result, ...]:
    """Read the results in the order in which the tests ran.

    A test that fails twice, in its body and in a fixture's end, counts once.

    Source:
        pytest, "Creating JUnitXML format files", junit_family xunit2.
    """
    root = ET.fromstring(junit)  # noqa: S314 - our own guest wrote it
    results: dict[str, Result] = {}
    for case in root.iter("testcase"):
        result = _result(case)
        known = results.get(result.name)
        if known is None or known.outcome is not Outcome.FAILED:
            results[result.name] = result
    return tuple(results.values())


def _result(case: ET.Element) -> Result:
    # A module that could not be imported is a case without a class name.
    name = "::".join(filter(None, (case.get("classname"), case.get("name"))))
    seconds = float(case.get("time", "0"))
    for tag in ("failure", "error"):
        if (cause := case.find(tag)) is not None:
            text = cause.text or cause.get("message") or ""
            return Result(name, Outcome.FAILED, text, seconds)
    if (cause := case.find("skipped")) is not None:
        return Result(name, Outcome.SKIPPED, cause.get("message", ""), seconds)
    return Result(name, Outcome.PASSED, "", seconds)
