"""A run finds the earlier ones that do not live any more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.real_host.dead_runs import Swept, sweep
from tests.real_host.runs import VARIABLE, Registration, Run, dead_runs

ROOT: Final = Path(__file__).parents[2]
KILLED: Final = """
import os, sys, time
from pathlib import Path
from tests.real_host.runs import Registration
run = Registration(Path(sys.argv[1])).run
if os.fork():
    time.sleep(600)
print(run.name, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "pytest-7"
    folder.mkdir()
    return folder


def found(parent: Path) -> list[Run]:
    with dead_runs(parent) as runs:
        return runs


def test_a_live_run_is_not_found(folder: Path) -> None:
    registration = Registration(folder)
    try:
        assert found(folder.parent) == []
    finally:
        registration.end()


def test_a_run_that_has_ended_is_found_once(folder: Path) -> None:
    registration = Registration(folder)
    registration.end()

    assert found(folder.parent) == [Run(registration.run.name, folder, ended=True)]
    assert found(folder.parent) == []


@pytest.mark.process
def test_a_killed_run_is_found_beside_its_children(folder: Path) -> None:
    with subprocess.Popen(
        (sys.executable, "-c", KILLED, folder),
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        name = process.stdout.readline().strip()
        process.kill()
        process.wait()
        runs = [found(folder.parent), found(folder.parent)]

    assert runs == [[Run(name, folder)]] * 2


@pytest.mark.process
@pytest.mark.parametrize("ended", [False, True])
def test_the_folder_of_an_ended_run_is_kept(folder: Path, *, ended: bool) -> None:
    run = Run("5eed", folder, ended)
    marked = os.environ | {VARIABLE: run.name}
    with subprocess.Popen(("sleep", "600"), env=marked) as process:
        assert sweep(run) == Swept(processes=1, mounts=0, cgroups=0, sockets=0)

    assert process.returncode == -9
    assert folder.exists() is ended
