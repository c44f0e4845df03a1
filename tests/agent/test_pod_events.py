"""Refusals and losses become events on pods; equal ones are one series."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.agent.pod_events import (
    MOST_WRITES,
    SERIES_PAUSE,
    EventWrite,
    Occurrence,
    PodEvents,
    occurrences_of,
)

NOW = "2026-01-02T03:04:05.000000Z"
REFUSED = {
    "number": 7,
    "kind": "container.refused",
    "title": "shop/web/app",
    "podUid": "uid-1",
    "why": "asks for 4 exclusive CPUs, 2 are free",
}


def refusal(pod: str = "web", note: str = "no room") -> Occurrence:
    return Occurrence("shop", pod, f"uid-{pod}", "app", "ResourcesRefused", note)


def test_a_refusal_is_an_event_on_its_pod() -> None:
    events = PodEvents("node-a", "nri-resmgr-node-a")
    for one in occurrences_of(REFUSED, {}):
        events.note(one, NOW)
    (write,) = events.due(0.0)

    assert write.is_new
    assert write.body["regarding"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "shop",
        "name": "web",
        "uid": "uid-1",
        "fieldPath": "spec.containers{app}",
    }
    assert write.body["reason"] == "ResourcesRefused"
    assert write.body["note"] == ("node node-a: asks for 4 exclusive CPUs, 2 are free")
    assert write.body["metadata"] == {"name": write.name, "namespace": "shop"}


def test_a_lost_grant_is_an_event_on_the_pod_that_the_daemon_lists() -> None:
    lost = {
        "kind": "container.placed",
        "containers": [
            {"title": "shop/web/app", "rule": "whole-cpus", "cpus": "2-3"},
            {"title": "shop/db/pg", "rule": "fell-back", "cpus": "0-1"},
        ],
    }
    (found,) = occurrences_of(lost, {"shop/db": "uid-db"})

    assert (found.pod, found.pod_uid, found.container) == ("db", "uid-db", "pg")
    assert found.reason == "ExclusiveCpusLost"


def test_rows_about_other_subjects_make_no_event() -> None:
    assert occurrences_of({"kind": "session.ended", "why": "end of file"}, {}) == []
    assert (
        occurrences_of({"kind": "container.refused", "title": "configuration"}, {})
        == []
    )


def test_a_repeated_refusal_is_a_series_that_is_seldom_written() -> None:
    events = PodEvents("node-a", "agent")
    events.note(refusal(), NOW)
    first = events.due(0.0)
    for _ in range(9):
        events.note(refusal(), NOW)
    at_once, later = events.due(1.0), events.due(SERIES_PAUSE)

    assert [one.is_new for one in first] == [True]
    assert at_once == []
    assert [(one.is_new, one.body) for one in later] == [
        (False, {"series": {"count": 10, "lastObservedTime": NOW}})
    ]
    assert first[0].name == later[0].name


def test_a_failed_write_is_written_again_whole() -> None:
    events = PodEvents("node-a", "agent")
    events.note(refusal(), NOW)
    (write,) = events.due(0.0)
    events.failed(write)

    assert events.due(1.0) == []
    assert [one.is_new for one in events.due(60.0)] == [True]


def test_no_control_character_of_a_pod_is_in_a_note() -> None:
    events = PodEvents("node-a", "agent")
    events.note(refusal(note="no room for \x1b[2J\n"), NOW)
    (write,) = events.due(0.0)

    assert write.body["note"] == r"node node-a: no room for \x1b[2J\n"


@given(
    st.lists(st.tuples(st.integers(0, 40), st.floats(0, 30)), min_size=1, max_size=200)
)
def test_no_burst_exceeds_the_writes_per_minute_and_none_is_lost(
    storm: list[tuple[int, float]],
) -> None:
    events, at = PodEvents("node-a", "agent"), 0.0
    noted: dict[str, int] = {}
    writes: list[tuple[float, EventWrite]] = []
    for pod, pause in storm:
        at += pause
        events.note(refusal(f"pod-{pod}"), NOW)
        name = refusal(f"pod-{pod}").name
        noted[name] = noted.get(name, 0) + 1
        writes += [(at, one) for one in events.due(at)]
    # Afterwards it is quiet: within an hour all of them are written.
    for _ in range(60):
        at += 59.0
        writes += [(at, one) for one in events.due(at)]

    for begin, _ in writes:
        assert sum(begin <= time < begin + 60 for time, _ in writes) <= MOST_WRITES
    last = {one.name: one for _, one in writes}
    counts = {
        name: one.body.get("series", {"count": 1})["count"]
        for name, one in last.items()
    }
    assert counts == noted
