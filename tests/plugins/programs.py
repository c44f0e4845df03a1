"""Plugins as processes: started by hand, or by the test runtime from its folder."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from nri_resmgr.cli.install import Folders, install
from nri_resmgr.stub import Identity
from nri_resmgr.testing import Runtime, RuntimeOptions
from tests.test_runtime.launching import launching

REPOSITORY = Path(__file__).parents[2]
PLUGINS = REPOSITORY / "plugins"
SAMPLES = REPOSITORY / "conf.d"


def run_to_end(program: Path, *arguments: str) -> tuple[int, str]:
    """Run a plugin that has to end by itself; return status and standard error."""
    done = subprocess.run(
        [sys.executable, program, *arguments],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.stdout == ""
    return done.returncode, done.stderr


@asynccontextmanager
async def running(
    program: Path, *arguments: str, log: Path | None = None
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a plugin; at the end it gets SIGTERM and has to end well.

    Args:
        program: Its file or folder.
        arguments: Its flags.
        log: A file for its standard error.
    """
    command = (sys.executable, str(program), *arguments)
    async with running_command(*command, log=log) as process:
        yield process


@asynccontextmanager
async def running_command(
    *command: str, log: Path | None = None
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a plugin by all words of its command, as `running` does."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        async with asyncio.timeout(20):
            await process.wait()
    assert process.stderr is not None
    said = (await process.stderr.read()).decode()
    _keep(said, log)
    assert (process.returncode, "Traceback" in said) == (0, False)


def _keep(text: str, log: Path | None) -> None:
    if log is not None:
        log.write_text(text)


def installed(program: Path, name: str, config: str, directory: Path) -> RuntimeOptions:
    """Install a plugin under index 10; return a runtime's options to launch it."""
    folders = Folders(directory / "plugins", directory / "conf.d")
    document = directory / f"{name}.yaml"
    document.write_text(config)
    install(str(program), Identity(name, "10"), folders, document)
    return launching(directory)


async def check_dropped(
    directory: Path, options: RuntimeOptions, sentence: str
) -> None:
    """Check that a runtime drops the one plugin that it launches, and logs why."""
    async with Runtime(directory, options=options) as runtime:
        assert runtime.plugins == ()
    said = (directory / "output").read_text()

    # The runtime logs this, and kills the plugin, perhaps before that says a word.
    assert sentence in str(runtime.dropped[0])
    assert "Traceback" not in said
