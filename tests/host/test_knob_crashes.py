"""A real process is killed at each of its writes; the next one puts all back."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from nri_resmgr.host.state_dir import StateDir
from tests.host.knob_kernel import DEFAULT, GOVERNOR, IRQ, MAX, MIN
from tests.host.knobs_on_disk import knobs_on_disk

pytestmark = pytest.mark.process


CHECKOUT = Path(__file__).parents[2]
ORIGINALS = {
    MIN: "800000",
    MAX: "3500000",
    GOVERNOR: "powersave",
    IRQ: "0-3",
    DEFAULT: "f",
    "/proc/sys/kernel/random/boot_id": "5f0c",
}

# Taken, changed, partly given back.
WISHES = (
    {MIN: "4000000", MAX: "4200000", GOVERNOR: "performance"},
    {MIN: "900000", MAX: "1000000", IRQ: "0-1", DEFAULT: "3"},
    {IRQ: "0"},
)

# Journal, maximum, minimum, governor; journal, governor back, minimum, maximum,
# interrupt, mask, journal; mask, minimum, maximum back, interrupt, journal.
WRITES = 16


def host(root: Path) -> dict[str, str]:
    return {path: (root / path[1:]).read_text().strip() for path in ORIGINALS}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for path, text in ORIGINALS.items():
        file = tmp_path / "host" / path[1:]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")
    return tmp_path / "host"


def run(root: Path, left: int, when: str) -> subprocess.CompletedProcess[str]:
    folder, wishes = f"{root.parent}/state", json.dumps(WISHES)
    command = ["-m", "tests.host.knob_child", f"{root}", folder, f"{left}", when]
    return subprocess.run(
        [sys.executable, *command, wishes],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("when", ["early", "late"])
@pytest.mark.parametrize("left", range(WRITES))
def test_after_a_kill_at_any_write_all_files_are_restored(
    root: Path, left: int, when: str
) -> None:
    ended = run(root, left, when)
    state = StateDir.open(f"{root.parent}/state")
    report = knobs_on_disk(root, state).apply({})
    state.close()

    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert (host(root), report.failed) == (ORIGINALS, ())
    assert list((root.parent / "state").iterdir()) == []


def test_the_writes_are_as_many_as_there_are_kills(root: Path) -> None:
    ended = run(root, -1, "late")

    assert (ended.stdout.strip(), ended.stderr) == (str(WRITES), "")
    assert host(root) == ORIGINALS | {IRQ: "0"}


def test_after_a_kill_desired_values_are_kept(root: Path) -> None:
    run(root, 5, "late")
    state = StateDir.open(f"{root.parent}/state")
    report = knobs_on_disk(root, state).apply(WISHES[0])
    state.close()

    assert host(root) == ORIGINALS | WISHES[0]
    assert report.failed == ()
