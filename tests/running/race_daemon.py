"""The daemon as a process that may be killed, or kill itself, and started again."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from nri_resmgr.control.client import AnswerLost, Client
from nri_resmgr.testing import Runtime
from tests.daemon.daemon_process import IDENTITY
from tests.faults.trigger import Trigger
from tests.real_host.patience import patience

_ROOT: Final = Path(__file__).parents[2]
_START: Final = 60.0  # seconds; it only guards against hangs
# In the emulated machine a daemon that has just started may answer later than the 10 s
# that the client waits.
_TRIES: Final = 3


@attrs.frozen
class ProcessSize:
    """Size of a process: resident KiB, open files and threads."""

    resident: int
    files: int
    threads: int


class RaceDaemon:
    """A daemon on the test runtime, with state that outlives it.

    Args:
        runtime: Started.
        folder: For its socket, state and log.
        root: The root of the host.
        document: Its configuration.
        flags: After ``run``.

    Attributes:
        config: Its configuration file.
        control: Its control socket.
        session: Number of its present session; 0 while there is none.
    """

    def __init__(
        self, runtime: Runtime, folder: Path, root: Path, document: str, *flags: str
    ) -> None:
        self.config = folder / "config.yaml"
        self.config.write_text(document)
        self.log = folder / "daemon.log"
        self.session = 0
        self._runtime = runtime
        self.control = folder / "run" / "control.sock"
        options = {
            "nri-socket": runtime.socket_path,
            "host-root": root,
            "config-file": self.config,
            "state-dir": folder / "state",
            "run-dir": folder / "run",
            "control-socket": self.control,
            "log-format": "json",
            "log-to": self.log,
        }
        given = (f"--{name}={value}" for name, value in options.items())
        file = folder / "trigger"
        self._trigger = Trigger(file)
        program = ("tests.running.killed_daemon", str(file))
        self._command = (sys.executable, "-m", *program, "run", *given, *flags)
        self._process: asyncio.subprocess.Process | None = None
        self._is_killed = False
        self._client = Client(str(self.control))
        self._sessions = itertools.count(1)

    async def start(self) -> None:
        """Start it, and wait until the runtime has synchronized it."""
        self._is_killed = False
        self._trigger.reset()
        self._process = await asyncio.create_subprocess_exec(
            *self._command, cwd=_ROOT, env=os.environ | {"PYTHONUNBUFFERED": "1"}
        )
        await self._runtime.synchronized(IDENTITY, within=patience(_START))
        async with asyncio.timeout(patience(_START)):
            while not await self._answers():  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.05)
        self.session = next(self._sessions)

    @property
    def is_running(self) -> bool:
        """Whether its process has not ended yet."""
        return self._process is not None and self._process.returncode is None

    def drifted(self) -> set[str]:
        """Return the containers whose CPUs or nodes were not as decided, by the log."""
        text = self.log.read_text()
        lines = text[: text.rfind("\n") + 1].splitlines()
        found = (json.loads(one) for one in lines if "container.drifted" in one)
        return {one["container"] for one in found if one["kinds"] != "shares"}

    def send_kill(self) -> None:
        """Kill it, as a lack of memory does."""
        self.session = 0
        if self.is_running and not self._is_killed:
            self._is_killed = True
            assert self._process is not None
            # Not by the process' own method, which could take the exit status that
            # asyncio waits for.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGKILL)

    def kill_after(self, writes: int) -> None:
        """Have it kill itself after so many more writes of CPU sets."""
        self.session = 0
        self._trigger.arm(writes + 1, signal.SIGKILL)

    async def killed(self) -> None:
        """Wait until it is killed, or has killed itself."""
        while self.is_running and not self._is_killed:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.001)

    async def kill(self) -> None:
        """Kill it, and wait until it has ended."""
        self.send_kill()
        if self._process is not None:
            await self._process.wait()
        self._process = None

    async def get(self, path: str) -> Mapping[str, Any]:
        """Query its control socket."""
        for _ in range(_TRIES - 1):
            with contextlib.suppress(AnswerLost):
                return await asyncio.to_thread(self._client.get, path)
        return await asyncio.to_thread(self._client.get, path)

    async def post(self, path: str) -> Mapping[str, Any]:
        """Change something by its control socket."""
        return await asyncio.to_thread(self._client.post, path)

    async def rows(self) -> dict[str, Mapping[str, Any]]:
        """Return the containers as it has decided, by their ids."""
        state = await self.get("/v1/state")
        return {one["id"]: one for one in state["containers"]}

    def size(self) -> ProcessSize:
        """Look at the process."""
        assert self._process is not None
        folder = Path(f"/proc/{self._process.pid}")
        lines = (folder / "status").read_text().splitlines()
        rows = dict(line.split(":", 1) for line in lines)
        return ProcessSize(
            resident=int(rows["VmRSS"].split()[0]),
            files=len(list((folder / "fd").iterdir())),
            threads=int(rows["Threads"]),
        )

    def log_end(self) -> str:
        """Return the end of its log."""
        return self.log.read_text()[-3000:] if self.log.exists() else ""

    async def _answers(self) -> bool:
        try:
            await self.get("/v1/state")
        except Exception:  # noqa: BLE001 - whichever: it has not begun to serve
            return False
        return True
