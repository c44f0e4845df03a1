"""``nri-resmgr demo`` on machines that people make up."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from tests.cli.command import ROOT, nri_resmgr
from tests.cli.test_examples import examples_in, parses
from tests.waiting import until

pytestmark = pytest.mark.process


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        pytest.param(
            "1s7c",
            "nri-resmgr: machine '1s7c' has 7 CPUs; the demo needs 8 or more\n",
            id="one CPU too few",
        ),
        pytest.param(
            "bogus",
            "nri-resmgr: bad machine spec at 'bogus': "
            "want a shape such as 2s2d2n4c2t\n",
            id="no machine",
        ),
    ],
)
def test_an_unsuitable_machine_is_reported(spec: str, sentence: str) -> None:
    done = nri_resmgr("demo", "--machine", spec)

    assert (done.returncode, done.stdout, done.stderr) == (2, "", sentence)


def test_the_smallest_machine_holds_the_workload() -> None:
    done = nri_resmgr("demo", "--machine", "1s8c")

    assert (done.returncode, done.stderr) == (0, "")
    assert "The larger one ends as well" in done.stdout


def test_it_says_what_to_try_next() -> None:
    done = nri_resmgr("demo", "--machine", "1s8c")

    last = done.stdout.partition("\nTry next:\n")[2]
    tried = list(examples_in(f"\nexamples:\n{last}"))
    assert [words[0] for words in tried] == ["simulate", "check", "run", "demo"]
    assert [words for words in tried if not parses(words)] == []


@asynccontextmanager
async def demo(folder: Path, *flags: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "nri_resmgr", "demo", "--machine", "1s8c", *flags),
        env={"PYTHONPATH": str(ROOT), "TMPDIR": str(folder)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(120):
            yield process
    finally:
        # Its plugin, too, which would have its output open for ever.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def shown_until(process: asyncio.subprocess.Process, line: str) -> str:
    assert process.stdout is not None
    return (await process.stdout.readuntil(f"{line}\n".encode())).decode()


def children_of(process: asyncio.subprocess.Process) -> list[int]:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return [int(child) for child in children.read_text().split()]


def plugin_of(process: asyncio.subprocess.Process) -> int:
    (child,) = children_of(process)
    return child


def has_plugin(process: asyncio.subprocess.Process) -> bool:
    """Return whether the plugin's program runs: before exec, the demo waits for it."""
    return any(
        b"--nri-socket" in Path(f"/proc/{child}/cmdline").read_bytes()
        for child in children_of(process)
    )


def is_alive(process: int) -> bool:
    return Path(f"/proc/{process}").exists()


def is_empty(folder: Path) -> bool:
    return not list(folder.iterdir())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_demo_that_stays_answers_until_a_signal(
    number: signal.Signals, tmp_path: Path
) -> None:
    async with demo(tmp_path, "--stay") as process:
        shown = await shown_until(process, "Ctrl-C ends it.")
        plugin = plugin_of(process)
        tried = re.findall(r"^  nri-resmgr (.*)$", shown, re.MULTILINE)
        answers = {}
        for name, *words in map(str.split, tried):
            once = ["--once"] if name == "top" else []  # no terminal, where q ends it
            answers[name] = await asyncio.to_thread(nri_resmgr, name, *words, *once)
        process.send_signal(number)
        last, complaint = await process.communicate()

    assert {name: (one.returncode, one.stderr) for name, one in answers.items()} == (
        dict.fromkeys(("status", "explain", "events", "top"), (0, ""))
    )
    assert "policy         TopologyAwarePolicy" in answers["status"].stdout
    assert answers["explain"].stdout.startswith("default/db/db\n  decided  CPUs ")
    assert " container.placed " in answers["events"].stdout
    assert "\nA default/db/db " in answers["top"].stdout
    assert (process.returncode, complaint) == (0, b"")
    assert b"\nTry next:\n" in last
    assert not is_alive(plugin)
    assert is_empty(tmp_path)


async def test_a_demo_that_stays_reports_the_end_of_its_plugin(tmp_path: Path) -> None:
    async with demo(tmp_path, "--stay") as process:
        await shown_until(process, "Ctrl-C ends it.")
        os.kill(plugin_of(process), signal.SIGKILL)
        last, complaint = await process.communicate()

    assert (process.returncode, last) == (1, b"")
    assert complaint == b"nri-resmgr: the plugin has ended with status -9\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        pytest.param(
            signal.SIGSTOP,
            "waited 30 s for the plugin to register with the test runtime: "
            "run the demo again when this machine is less busy",
            id="hangs",
        ),
        pytest.param(signal.SIGKILL, "the plugin has ended with status -9", id="ends"),
    ],
)
async def test_a_plugin_that_does_not_register_is_reported(
    number: signal.Signals, sentence: str, tmp_path: Path
) -> None:
    async with demo(tmp_path) as process:
        await until(lambda: has_plugin(process))
        plugin = plugin_of(process)
        os.kill(plugin, number)
        _, complaint = await process.communicate()

    assert (process.returncode, complaint.decode()) == (1, f"nri-resmgr: {sentence}\n")
    assert not is_alive(plugin)
    assert is_empty(tmp_path)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_ends_the_demo_and_its_plugin(
    number: signal.Signals, tmp_path: Path
) -> None:
    async with demo(tmp_path) as process:
        await until(lambda: has_plugin(process))
        plugin = plugin_of(process)
        os.kill(plugin, signal.SIGSTOP)  # so that the demo cannot go on
        process.send_signal(number)
        _, complaint = await process.communicate()

    assert (process.returncode, complaint) == (0, b"")
    assert not is_alive(plugin)
    assert is_empty(tmp_path)
