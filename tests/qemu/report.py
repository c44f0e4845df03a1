"""What happened to each test of a guest, read from the lines that it wrote."""

from __future__ import annotations

import enum
import json
from collections.abc import Iterator
from typing import Any

import attrs


class Outcome(enum.StrEnum):
    """How a test ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


_GRAVITY = {Outcome.PASSED: 0, Outcome.SKIPPED: 1, Outcome.FAILED: 2}


@attrs.frozen
class Result:
    """One test of the report.

    Attributes:
        name: Path, function and case, ``tests/host/test_x.py::test_y[case]``.
        outcome: How it ended; an error in a fixture is a failure.
        text: Why it failed or was skipped, as pytest reports it; else empty.
        seconds: Time in the guest, fixtures included.
    """

    name: str
    outcome: Outcome
    text: str
    seconds: float


@attrs.frozen
class Report:
    """What a guest reported before it ended.

    Attributes:
        results: In the order in which the tests ran.
        complete: Whether pytest came to its end.
    """

    results: tuple[Result, ...]
    complete: bool


def read_report(lines: str) -> Report:
    """Read what `tests.qemu.guest_progress` wrote, even if it is cut short.

    A test that fails twice, in its body and in a fixture's end, counts once, for
    the first failure. A test that began and did not end has failed.
    """
    results: dict[str, Result] = {}
    running: str | None = None
    complete = False
    for line in _parsed(lines):
        match line["event"]:
            case "started":
                running = line["name"]
            case "phase":
                result = _result(line)
                results[result.name] = _merged(results.get(result.name), result)
                running = None if line["phase"] == "teardown" else running
            case "ended":
                complete = True
    if running is not None:
        cut = Result(running, Outcome.FAILED, "the guest ended meanwhile", 0.0)
        results[running] = _merged(results.get(running), cut)
    return Report(tuple(results.values()), complete)


def _parsed(lines: str) -> Iterator[dict[str, Any]]:
    # The last piece is empty, or half a line.
    for line in lines.split("\n")[:-1]:
        yield json.loads(line)


def _result(line: dict[str, Any]) -> Result:
    outcome = Outcome(line["outcome"])
    return Result(line["name"], outcome, line["text"], line["seconds"])


def _merged(known: Result | None, phase: Result) -> Result:
    """Let the worst phase decide, the first of two failures; add up the time."""
    if known is None:
        return phase
    decisive = max(known, phase, key=lambda result: _GRAVITY[result.outcome])
    return attrs.evolve(decisive, seconds=known.seconds + phase.seconds)
