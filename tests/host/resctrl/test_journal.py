"""The journal in a state directory: read by the next start, or set aside."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from nri_resmgr.host.resctrl import Journal
from nri_resmgr.host.resctrl.journal import ResctrlRecord
from nri_resmgr.host.state_dir import StateDir

RECORD = ResctrlRecord(
    made=frozenset({"gold", "silver"}),
    monitors=frozenset({"gold/mon_groups/pod1", "mon_groups/pod2"}),
    originals={"": "L3:0=fffff\n", "theirs": "L3:0=1\n"},
)


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateDir]:
    opened = StateDir.open(f"{tmp_path}/state")
    yield opened
    opened.close()


def test_the_next_start_reads_what_was_saved(state: StateDir) -> None:
    Journal(state, "boot 1").save(RECORD)

    assert Journal(state, "boot 1").load() == RECORD
    assert Journal(state, "boot 2").load() == ResctrlRecord()


def test_nothing_to_undo_needs_no_file(state: StateDir) -> None:
    journal = Journal(state, "boot 1")
    journal.save(RECORD)
    journal.save(ResctrlRecord())

    assert state.read("resctrl") is None
    assert journal.load() == ResctrlRecord()


def good(**changes: object) -> str:
    rest = {"version": 1, "place": "boot 1", "made": [], "monitors": []}
    return json.dumps({**rest, "originals": {}, **changes})


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("{", id="cut"),
        pytest.param("\udcff\n", id="no text"),
        pytest.param("[]", id="a list"),
        pytest.param(good(version=2), id="of a later version"),
        pytest.param(good(made="gold"), id="a text for a list"),
        pytest.param(good(monitors=[1]), id="a number for a name"),
        pytest.param(good(originals=[]), id="a list for a mapping"),
        pytest.param(good(originals={"": None}), id="no schemata"),
        pytest.param(good(originals={"": "L3:0=xyz\n"}), id="no number"),
        pytest.param("[" * 100_000, id="deeper than anyone goes"),
    ],
)
def test_an_invalid_journal_is_set_aside(text: str, state: StateDir) -> None:
    state.write("resctrl", text)
    journal = Journal(state, "boot 1")

    assert journal.load() == ResctrlRecord()
    assert journal.set_aside == f"{state.path}/resctrl.bad-1"
    assert state.read("resctrl.bad-1") == text
    assert state.read("resctrl") is None


def test_a_journal_writable_by_others_is_set_aside(state: StateDir) -> None:
    path = Path(state.path, "resctrl")
    Journal(state, "boot 1").save(RECORD)
    path.chmod(0o666)
    opened = Journal(state, "boot 1")

    assert opened.load() == ResctrlRecord()
    assert re.fullmatch(r".*/resctrl\.bad-1", opened.set_aside)
    assert not path.exists()


def test_only_existing_groups_have_to_be_restored() -> None:
    there = {"": 0, "gold": 0}

    assert RECORD.within(there) == ResctrlRecord(
        frozenset({"gold"}),
        frozenset({"gold/mon_groups/pod1", "mon_groups/pod2"}),
        {"": "L3:0=fffff\n"},
    )
