"""Events of a trial: once for a document, and later for what is different in it."""

from __future__ import annotations

from nri_resmgr.app.configuration.status import Document, DocumentSource, WouldChange
from nri_resmgr.app.configuration.trials import MOST_SHOWN, TrialEvents
from nri_resmgr.app.observing.history import History
from nri_resmgr.policy.events import Pin
from nri_resmgr.values import CpuSet, NodeSet


def document(text: str = "spec: {mode: DryRun}") -> Document:
    return Document(text, DocumentSource.CLUSTER, "StaticPolicy kube-system/default")


def change(name: str, now: str, then: str) -> WouldChange:
    pins = (Pin(CpuSet.parse(cpus), NodeSet.of(0)) for cpus in (now, then))
    return WouldChange(name, f"default/pod/{name}", *pins)


class Tried:
    """Trials, and the events that follow from each."""

    def __init__(self) -> None:
        self.history = History()
        self.trials = TrialEvents()
        self.trials.events = self.history

    def events(self, found: Document, *changes: WouldChange) -> list[tuple[str, ...]]:
        last = self.history.last
        self.trials.note(found, changes)
        rows = self.history.since(last, 1000)
        return [(row.kind, row.title, row.why) for row in rows]


def test_a_trial_has_an_event_and_one_for_each_container() -> None:
    tried = Tried()

    assert tried.events(
        document(), change("a", "0-1", "2-3"), change("b", "0", "")
    ) == [
        (
            "configuration.tried",
            "StaticPolicy kube-system/default",
            "would change 2 containers",
        ),
        ("container.would-change", "default/pod/a", "CPUs 0-1 to 2-3"),
        ("container.would-change", "default/pod/b", "CPUs 0 to any"),
    ]


def test_a_later_trial_has_events_for_differences_only() -> None:
    tried, one = Tried(), change("a", "0-1", "2-3")
    tried.events(document(), one)

    assert tried.events(document(), one) == []
    other = change("a", "0-1", "4-5")
    assert tried.events(document(), other) == [
        ("container.would-change", "default/pod/a", "CPUs 0-1 to 4-5")
    ]
    (row,) = tried.events(document())
    assert row[2] == "would change no container"
    # It came back.
    assert len(tried.events(document(), other)) == 2


def test_another_document_or_a_new_trial_has_all_events_again() -> None:
    tried, one = Tried(), change("a", "0-1", "2-3")
    first = tried.events(document(), one)

    assert tried.events(document("another"), one) == first
    tried.trials.end()
    assert tried.events(document("another"), one) == first


def test_a_trial_that_changes_many_containers_names_some() -> None:
    tried = Tried()
    changes = [change(str(number), "0", "1") for number in range(MOST_SHOWN + 1)]

    rows = tried.events(document(), *changes)

    assert rows[0][2] == "would change 101 containers; the first 100 follow"
    assert len(rows) == 1 + MOST_SHOWN
