"""Why a launched plugin ended is logged, though its standard error is /dev/null."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from nri_resmgr.cli.launcher import launcher_text
from tests.stub.programs import program

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount"),
    pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare(1)"),
]

# Only in its mount namespace the journal is a folder of the test.
WITH_JOURNAL = """
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/journal
mount --bind "$1" /run/systemd/journal
shift
exec "$@" 2>/dev/null
"""
IDLE = "class Idle:\n    def stop_container(self, pod, container): ...\n"

BUILDING = f"""
{IDLE}
class Building(Idle):
    @property
    def run_pod_sandbox(self):
        ContainerAdjustment().set_cpus('0')

serve(Building(), index='10', socket='/nowhere')
"""


def logged_by(command: list[str | Path], folder: Path) -> tuple[int, list[str]]:
    """Run a program with a journal; return its status and the messages there."""
    folder.mkdir()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as journal:
        journal.bind(str(folder / "socket"))
        journal.setblocking(False)
        words = ("unshare", "--mount", "sh", "-ec", WITH_JOURNAL, "sh", folder)
        done = subprocess.run(
            [*map(str, words), *map(str, command)],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        if "unshare" in done.stderr or "mount" in done.stderr:
            pytest.skip(f"namespaces are not allowed here: {done.stderr}")
        found = []
        while True:
            try:
                found.append(journal.recv(1 << 16).decode(errors="replace"))
            except BlockingIOError:
                return done.returncode, found


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        pytest.param(
            f"{IDLE}\nserve(Idle(), index='10', socket='/nowhere/nri.sock')",
            1,
            "cannot connect to the NRI socket /nowhere/nri.sock",
            id="an error of the host",
        ),
        pytest.param(
            "class Idle:\n    def stop_containr(self): ...\nserve(Idle(), index='10')",
            2,
            "did you mean stop_container()?",
            id="a mistake in a handler",
        ),
        pytest.param(
            f"{IDLE}\nserve(Idle(), index='10', options=1 / 0)",
            1,
            "ZeroDivisionError: division by zero",
            id="an exception before it serves",
        ),
        pytest.param(
            f"{IDLE}\nserve(Idle(), index='10', socket='/x', options=7)",
            1,
            "AttributeError: 'int' object has no attribute",
            id="an exception while it serves",
        ),
    ],
)
def test_the_last_words_of_an_installed_plugin_are_in_the_journal(
    body: str, status: int, sentence: str, tmp_path: Path
) -> None:
    path = program(tmp_path / "hello.py", body)
    launcher = tmp_path / "10-hello"
    launcher.write_text(launcher_text(path))
    ended, found = logged_by([sys.executable, "-IS", launcher], tmp_path / "journal")

    assert ended == status
    assert len(found) == 1
    assert sentence in found[0]
    assert str(path) in found[0]


def test_a_warning_of_a_plugin_of_its_own_is_in_the_journal(tmp_path: Path) -> None:
    """Here without `install`: the program itself is in the runtime's folder."""
    path = program(tmp_path / "10-own", BUILDING)
    _, found = logged_by([path], tmp_path / "journal")

    before, _, _ = path.read_text().partition("ContainerAdjustment().set_cpus")
    line = 1 + before.count("\n")
    assert f"{path}:{line}: DiscardedResult: the result of set_cpus()" in found[0]
    assert "cannot connect" in found[1]


def test_the_last_words_of_a_launched_daemon_are_in_the_journal(tmp_path: Path) -> None:
    words = ["-m", "nri_resmgr", "run", "--config-file", "/nowhere.yaml"]
    status, found = logged_by([sys.executable, *words], tmp_path / "journal")

    assert status != 0
    assert "MESSAGE=nri-resmgr: " in found[-1]
    assert "/nowhere.yaml" in found[-1]
