"""The journal of Speed Select keeps what it was given, and nothing without sense."""

from __future__ import annotations

from pathlib import Path

import pytest

from nri_resmgr.host.speed_select.journal import NAME, SstJournal
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.topology.speed_select import Clos, ClosOrder, Feature, Punit
from nri_resmgr.values import CpuSet, KiloHertz

PUNIT = Punit(
    *(1, 2, CpuSet.parse("0-3")),
    turbo=Feature.UNSUPPORTED,
    power=Feature.ON,
    order=ClosOrder.ORDERED,
    clos=(
        Clos(15, KiloHertz(800_000), None, CpuSet.parse("0,3")),
        Clos(0, None, KiloHertz(2_000_000), CpuSet.parse("1-2")),
    ),
)


@pytest.fixture
def state(tmp_path: Path) -> StateDir:
    return StateDir.open(str(tmp_path / "state"))


def test_the_next_process_reads_the_journal(state: StateDir) -> None:
    SstJournal(state, "boot").write((PUNIT,))

    assert SstJournal(state, "boot").read() == (PUNIT,)
    assert SstJournal(state, "another").read() == ()


def test_nothing_to_keep_leaves_no_file(state: StateDir) -> None:
    journal = SstJournal(state, "boot")
    journal.write((PUNIT,))
    journal.write(())

    assert state.read(NAME) is None
    assert (journal.read(), journal.set_aside) == ((), "")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("[]", id="a list"),
        pytest.param('{"format": 2, "boot": "boot", "punits": []}', id="a later one"),
        pytest.param('{"format": 1, "boot": "boot", "punits": [{}]}', id="no punit"),
        pytest.param(
            '{"format": 1, "boot": "boot", "punits": [{"package": -1, "id": 0, "cpus":'
            ' "", "turbo": "on", "power": "on", "order": "ordered", "clos": []}]}',
            id="no package",
        ),
        pytest.param(
            '{"format": 1, "boot": "boot", "punits": [{"package": 0, "id": 0, "cpus":'
            ' "a", "turbo": "on", "power": "on", "order": "ordered", "clos": []}]}',
            id="no CPUs",
        ),
        pytest.param(
            '{"format": 1, "boot": "boot", "punits": [{"package": 0, "id": 0, "cpus":'
            ' "0", "turbo": "on", "power": "on", "order": "ordered", "clos": [[1]]}]}',
            id="no class of service",
        ),
    ],
)
def test_an_invalid_journal_is_set_aside(text: str, state: StateDir) -> None:
    state.write(NAME, text)
    journal = SstJournal(state, "boot")

    assert journal.read() == ()
    assert journal.set_aside == f"{state.path}/{NAME}.bad-1"
    assert state.read(NAME) is None
