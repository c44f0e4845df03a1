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


def test_only_an_object_of_one_node_has_conditions() -> None:
    accepted = entry_of(OWN, Verdict(Outcome.ACCEPTED), NOW)
    own = patch_of(OWN, "a", accepted, "node.a")["status"]
    shared = patch_of(SHARED, "a", accepted, "node.a")["status"]

    assert shared == {"nodes": {"a": accepted}}
    assert own["observedGeneration"] == 5
    assert [(one["type"], one["status"]) for one in own["conditions"]] == [
        ("Ready", "True"),
        ("Stalled", "False"),
    ]


def test_an_entry_is_removed_by_null() -> None:
    assert patch_of(OWN, "a", None, "node.a") == {"status": {"nodes": {"a": None}}}
