"""Processes of ours whose system calls can be made to fail."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, Final

import attrs

from tests.faults.system_calls import SystemCalls, numbers_of

_ROOT: Final = Path(__file__).parents[2]
_LAUNCHER: Final = str(Path(__file__).with_name("filtered.py"))
_BUSY: Final = 90.0  # seconds for a start; the machine may be busy


async def start_filtered(
    command: Collection[str],
    log: Path,
    *,
    calls: Collection[str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> tuple[asyncio.subprocess.Process, int]:
    """Start a program; return it, and the descriptor for `SystemCalls`.

    Args:
        command: The program with its arguments.
        log: Gets its output.
        calls: Those that are answered by the test; None for all.
        environment: Variables beside those of this process.
    """
    ours, theirs = socket.socketpair()
    with ours, log.open("ab") as output:
        with theirs:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-SE", _LAUNCHER, str(theirs.fileno())),
                *(numbers_of(calls), *command),
                cwd=_ROOT,
                env=os.environ | dict(environment or {}),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(theirs.fileno(),),
            )
        ours.settimeout(_BUSY)
        _, found, _, _ = await asyncio.to_thread(socket.recv_fds, ours, 1, 1)
    assert found, f"it does not start: {log}"
    return process, found[0]


@attrs.frozen(eq=False)
class FilteredProcess:
    """A process that logs JSON, with the faults of its system calls.

    Attributes:
        process: The process.
        calls: Its system calls.
        log: Its log.
    """

    process: asyncio.subprocess.Process
    calls: SystemCalls
    log: Path

    def said(self, event: str) -> list[dict[str, Any]]:
        """Return its lines of an event."""
        lines = self.log.read_text().splitlines()
        found = (json.loads(one) for one in lines if one.startswith("{"))
        return [one for one in found if one["event"] == event]

    def last_words(self) -> str:
        """Return what it has printed last."""
        return self.log.read_text().splitlines()[-1]

    async def get(self, path: str) -> tuple[int, str]:
        """Ask its ``--http-endpoint``; return the status and the text."""
        (line,) = self.said("http.listening")

        def ask() -> tuple[int, str]:
            connection = http.client.HTTPConnection(line["endpoint"], timeout=_BUSY)
            with closing(connection):
                connection.request("GET", path)
                answer = connection.getresponse()
                return answer.status, answer.read().decode()

        return await asyncio.to_thread(ask)

    async def metric(self, name: str, part: str) -> float:
        """Return the value of a metric of a part."""
        _, text = await self.get("/metrics")
        start = f'{name}{{part="{part}"}} '
        (found,) = [one for one in text.splitlines() if one.startswith(start)]
        return float(found.removeprefix(start))


@asynccontextmanager
async def filtered_process(
    command: Collection[str],
    log: Path,
    place_of: Callable[[str], str | None],
    *,
    calls: Collection[str],
    environment: Mapping[str, str],
) -> AsyncIterator[FilteredProcess]:
    """Run a program; it is killed if it still runs at the end.

    Args:
        command: The program with its arguments.
        log: Gets its output.
        place_of: See `SystemCalls`.
        calls: Those that can fail.
        environment: Variables beside those of this process.
    """
    process, listener = await start_filtered(
        command, log, calls=calls, environment=environment
    )
    answered = SystemCalls(listener, place_of)
    answered.start()
    try:
        yield FilteredProcess(process, answered, log)
    finally:
        answered.disarm()
        if process.returncode is None:
            process.kill()
        await process.wait()
