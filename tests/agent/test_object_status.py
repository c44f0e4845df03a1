"""A node's entry in the status of the object that configures it."""

from __future__ import annotations

import pytest

from nri_resmgr.agent.choice import ConfigObject
from nri_resmgr.agent.object_status import (
    MOST_NODES,
    entries_in,
    entry_of,
    is_up_to_date,
    may_write,
    own_status,
    patch_of,
)
from nri_resmgr.agent.verdict import PENDING, Outcome, Verdict

SHARED = ConfigObject("BalloonsPolicy", "nri", "default", "uid-1", 3, "77", "")
OWN = ConfigObject("BalloonsPolicy", "nri", "node.a", "uid-2", 5, "78", "")
NOW = "2026-01-02T03:04:05Z"
NAMES = [f"node-{number}" for number in range(MOST_NODES)]


@pytest.mark.parametrize(
    ("verdict", "status", "errors"),
    [
        pytest.param(Verdict(Outcome.ACCEPTED), "Success", None, id="accepted"),
        pytest.param(Verdict(Outcome.TRIED, "none"), "Success", None, id="tried out"),
        pytest.param(Verdict(Outcome.REJECTED, "no"), "Failure", "no", id="rejected"),
        pytest.param(Verdict(Outcome.IGNORED, "file"), "Failure", "file", id="ignored"),
    ],
)
def test_an_entry_has_the_form_of_nri_plugins(
    verdict: Verdict, status: str, errors: str | None
) -> None:
    assert entry_of(SHARED, verdict, NOW) == {
        "status": status,
        "generation": 3,
        "errors": errors,
        "timestamp": NOW,
    }


def test_there_is_no_entry_before_the_verdict() -> None:
    assert entry_of(SHARED, PENDING, NOW) is None


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param(NAMES[1:], True, id="room for one"),
        pytest.param(NAMES, False, id="full"),
        pytest.param([*NAMES, "a"], True, id="one of them"),
    ],
)
def test_a_shared_object_takes_few_entries(nodes: list[str], *, expected: bool) -> None:
    found = entries_in({"nodes": {key: {} for key in nodes}})

    assert may_write(found, "a") is expected


def test_an_object_without_a_status_has_no_entries() -> None:
    assert entries_in(None) == entries_in({}) == entries_in({"nodes": None}) == {}


@pytest.mark.parametrize(
    ("present", "expected"),
    [
        pytest.param(
            {"status": "Success", "generation": 3, "timestamp": "then"},
            True,
            id="at another time",
        ),
        pytest.param({"status": "Success", "generation": 2}, False, id="before"),
        pytest.param(
            {"status": "Success", "generation": 3, "errors": "no"}, False, id="errors"
        ),
        pytest.param({}, False, id="nothing"),
        pytest.param(None, False, id="none"),
        pytest.param("text", False, id="no entry"),
    ],
)
def test_an_equal_entry_is_up_to_date(present: object, *, expected: bool) -> None:
    entry = entry_of(SHARED, Verdict(Outcome.ACCEPTED), NOW)
    assert entry is not None

    assert is_up_to_date(present, entry) is expected


@pytest.mark.parametrize(
    ("verdict", "ready", "reason", "message"),
    [
        pytest.param(
            Verdict(Outcome.ACCEPTED),
            "True",
            "Accepted",
            "in force on the node",
            id="accepted",
        ),
        pytest.param(
            Verdict(Outcome.TRIED, "2 would move"),
            "True",
            "DryRun",
            "2 would move",
            id="tried out",
        ),
        pytest.param(
            Verdict(Outcome.REJECTED, "no"), "False", "Rejected", "no", id="rejected"
        ),
        pytest.param(
            Verdict(Outcome.IGNORED, "file"), "False", "Overridden", "file", id="file"
        ),
    ],
)
def test_an_object_of_one_node_has_conditions(
    verdict: Verdict, ready: str, reason: str, message: str
) -> None:
    found = own_status(OWN, verdict, None, NOW)
    entry = entry_of(OWN, verdict, NOW)

    assert found["observedGeneration"] == 5
    assert [
        (one["type"], one["status"], one["reason"], one["message"])
        for one in found["conditions"]
    ] == [
        ("Ready", ready, reason, message),
        ("Stalled", str(ready == "False"), reason, message),
    ]
    assert patch_of("a", entry, found) == {"status": {"nodes": {"a": entry}, **found}}


def test_the_time_of_a_transition_stays_as_long_as_the_status() -> None:
    before = own_status(OWN, Verdict(Outcome.ACCEPTED), None, "then")
    same = own_status(OWN, Verdict(Outcome.TRIED, "none"), before, NOW)
    other = own_status(OWN, Verdict(Outcome.REJECTED, "no"), before, NOW)

    times = [
        [one["lastTransitionTime"] for one in found["conditions"]]
        for found in (same, other)
    ]
    assert times == [["then", "then"], [NOW, NOW]]


def test_an_entry_is_removed_by_null() -> None:
    assert patch_of("a", None) == {"status": {"nodes": {"a": None}}}
