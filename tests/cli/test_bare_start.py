"""``nri-resmgr`` without arguments: help for a person, the plugin for a runtime."""

from __future__ import annotations

import asyncio
import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from nri_resmgr.testing import Runtime
from tests.cli.command import ROOT

pytestmark = pytest.mark.process

COMMAND = (sys.executable, "-m", "nri_resmgr")
CLEAN = {"PYTHONPATH": str(ROOT), "NRI_RESMGR_STATE_DIR": ""}


def read_all(terminal: int) -> str:
    found = b""
    with suppress(OSError):  # EIO: the other end is closed
        while piece := os.read(terminal, 1 << 16):
            found += piece
    return found.decode().replace("\r\n", "\n")


def started_on_a_terminal(
    *words: str, environment: dict[str, str]
) -> tuple[int, str, str]:
    """Return the status, and what it writes to a terminal and to standard error."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        (*COMMAND, *words),
        env=CLEAN | environment,
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        os.close(theirs)
        shown = read_all(ours)
        os.close(ours)
        _, complaint = process.communicate(timeout=60)
    return process.returncode, shown, complaint


def test_on_a_terminal_it_prints_help() -> None:
    status, shown, complaint = started_on_a_terminal(environment={})

    assert (status, complaint) == (0, "")
    assert shown.startswith("usage: nri-resmgr [-h] [--version] COMMAND ...\n")
    assert "\n  nri-resmgr run  " in shown


@pytest.mark.parametrize(
    ("words", "environment"),
    [
        pytest.param((), {"NRI_PLUGIN_SOCKET": "77"}, id="launched by a runtime"),
        pytest.param((), {"NRI_PLUGIN_NAME": "a"}, id="a part of a launch"),
        pytest.param(("--nri-socket=/none",), {}, id="a flag of run"),
        pytest.param(("run",), {"NRI_RESMGR_NRI_SOCKET": "/none"}, id="run"),
    ],
)
def test_on_a_terminal_a_launch_or_a_flag_serves_the_runtime(
    words: tuple[str, ...], environment: dict[str, str]
) -> None:
    other = {"NRI_RESMGR_NRI_SOCKET": "/none", "NRI_RESMGR_CONTROL_SOCKET": ""}
    status, shown, complaint = started_on_a_terminal(
        *words, environment=other | environment
    )

    assert status != 0
    assert shown == ""
    assert complaint.splitlines()[-1].startswith("nri-resmgr: ")


async def test_without_a_terminal_it_serves_the_runtime(tmp_path: Path) -> None:
    async with Runtime(tmp_path) as runtime:
        process = await asyncio.create_subprocess_exec(
            *COMMAND,
            env=CLEAN
            | {
                "NRI_RESMGR_NRI_SOCKET": str(runtime.socket_path),
                "NRI_RESMGR_RUN_DIR": str(tmp_path / "run"),
                "NRI_RESMGR_CONTROL_SOCKET": "",
                "NRI_RESMGR_LOG_LEVEL": "warning",
            },
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            await runtime.synchronized("90-resource-policy")
        finally:
            process.terminate()
            shown, _ = await process.communicate()

    assert (process.returncode, shown) == (0, b"")


@pytest.mark.parametrize("missing", ["stdin", "stdout"])
def test_a_terminal_at_one_end_only_is_no_person(missing: str, tmp_path: Path) -> None:
    """As in a script: `nri-resmgr > log`, or `nri-resmgr < /dev/null`."""
    ours, theirs = pty.openpty()
    stdin = subprocess.DEVNULL if missing == "stdin" else theirs
    stdout = subprocess.DEVNULL if missing == "stdout" else theirs
    done = subprocess.run(
        COMMAND,
        env=CLEAN | {"NRI_RESMGR_NRI_SOCKET": str(tmp_path / "none")},
        stdin=stdin,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=60,
    )
    os.close(theirs)
    shown = read_all(ours)
    os.close(ours)

    assert done.returncode == 1
    assert "usage" not in shown
