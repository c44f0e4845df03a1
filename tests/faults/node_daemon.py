"""The daemon of a node under faults."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from zlib import crc32

import attrs

from nri_resmgr.app.running.units import ADDRESS_VARIABLE
from nri_resmgr.checkpoint.encode import CHECKPOINT_NAME
from nri_resmgr.control.client import Client
from nri_resmgr.testing import Runtime
from tests.faults.filtered_process import start_filtered
from tests.faults.node_kubelet import NodeKubelet
from tests.faults.places import PROBES_PORT, ROOT, place_of
from tests.faults.service_manager import ServiceManager
from tests.faults.system_calls import Fault, SystemCalls
from tests.running.systemd_double import SOCKET, Bus, SystemdDouble

IDENTITY: Final = "90-resource-policy"
BUSY: Final = 90.0  # seconds for what is not measured; the machine may be busy

_PORT: Final = 8891

# To see when the interpreter has started, and that a configuration is read.
_ALWAYS_SEEN: Final = {"openat"}


@attrs.frozen(eq=False)
class Neighbours:
    """Other services of the node, whose sockets the daemon uses.

    Attributes:
        bus: The system bus of the host.
        systemd: On that bus.
        manager: The same systemd, which has started the daemon.
        kubelet: Knows each pod.
    """

    bus: Bus
    systemd: SystemdDouble
    manager: ServiceManager
    kubelet: NodeKubelet


class NodeDaemon:
    """The one daemon at a time, whose system calls can be made to fail.

    Args:
        folder: Of the node.
        runtime: It has to be started.
        neighbours: They have to be, too.

    Attributes:
        process: The last one; None before the first.
        calls: Its system calls.
        sees_all: Whether all of them are looked at.
    """

    def __init__(self, folder: Path, runtime: Runtime, neighbours: Neighbours) -> None:
        self._folder = folder
        self._runtime = runtime
        self._manager = neighbours.manager
        self._kubelet = neighbours.kubelet
        # Paths of sockets are short, those of folders of tests are not.
        self._bus = str((neighbours.bus.root / SOCKET).readlink())
        # Not from the log, in which lines may be missing. The port may be that of other
        # nodes and clients, whose addresses differ.
        number = crc32(bytes(folder)) % (1 << 24) | 2
        self._address = f"127.{number >> 16}.{number >> 8 & 255}.{number & 255}"
        self.process: asyncio.subprocess.Process | None = None
        self.calls: SystemCalls | None = None
        self.sees_all = True
        self._in_daemon = False
        self._log_read = 0

    @property
    def log(self) -> Path:
        """Standard error of all daemons."""
        return self._folder / "log"

    @property
    def is_up(self) -> bool:
        """Whether the daemon runs."""
        return self.process is not None and self.process.returncode is None

    async def launch(self, *faults: Fault, sees_all: bool = True) -> SystemCalls:
        """Start the daemon; return its system calls from its first import on.

        Args:
            faults: In force from the start.
            sees_all: Whether other calls are looked at: a start makes thousands.
        """
        assert not self.is_up
        self.sees_all = sees_all
        calls = {one.point.call for one in faults}
        self._in_daemon = False
        folder = self._folder
        arguments = (
            *("-m", "nri_resmgr", "run", "--host-root", str(folder / "host")),
            *("--nri-socket", str(self._runtime.socket_path)),
            *("--state-dir", str(folder / "state"), "--run-dir", str(folder / "run")),
            *("--control-socket", str(folder / "control.sock")),
            *("--config-file", str(folder / "config.yaml"), "--log-format", "json"),
            *("--spool", str(folder / "spool"), "--record", str(folder / "recording")),
            *("--http-endpoint", f"{self._address}:{_PORT}", "--verify-interval", "1"),
            *("--health-endpoint", f"{self._address}:{PROBES_PORT}"),
            *("--kubelet-dir", str(self._kubelet.folder)),
        )
        self._manager.forget()
        self.process, listener = await start_filtered(
            (sys.executable, *arguments),
            self.log,
            calls=None if sees_all else calls | _ALWAYS_SEEN,
            environment=self._manager.environment
            | {
                "PYTHONFAULTHANDLER": "1",
                ADDRESS_VARIABLE: f"unix:path={self._bus}",
            },
        )
        self.calls = SystemCalls(listener, self._place_of)
        self.calls.arm(*faults)
        self.calls.start()
        return self.calls

    def _place_of(self, path: str) -> str | None:
        path = path.removesuffix(" (deleted)")
        if not self._in_daemon:
            # Before, the interpreter starts, and finds the first line of ours.
            self._in_daemon = path.startswith(str(ROOT / "nri_resmgr" / "cli"))
        if not self._in_daemon:
            return None
        if path == self._bus:
            return "bus"
        if path == str(self._manager.path):
            return "notify"
        if path.startswith(f"{self._kubelet.folder}/"):
            return "kubelet"
        return place_of(path, str(self._folder))

    async def in_step(self, within: float = BUSY) -> None:
        """Wait until the runtime has synchronized the daemon.

        Raises:
            TimeoutError: It has not, or the daemon has ended.
        """
        assert self.process is not None
        self._runtime.roster.drop_closed()
        synchronized = asyncio.create_task(
            self._runtime.synchronized(IDENTITY, within=within)
        )
        ended = asyncio.create_task(self.process.wait())
        try:
            await asyncio.wait({synchronized, ended}, return_when="FIRST_COMPLETED")
            if not synchronized.done():
                raise TimeoutError("the daemon has ended")
            synchronized.result()
        finally:
            ended.cancel()
            synchronized.cancel()

    async def end(self, patience: float = 15.0) -> int:
        """End the daemon in order; return its exit status, below 0 for a signal."""
        assert self.process is not None
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(patience):
                return await self.process.wait()
        except TimeoutError:
            self.process.kill()
            return await self.process.wait()

    async def kill(self) -> None:
        """Kill the daemon if it runs, and let all its calls pass."""
        if self.calls is not None:
            self.calls.disarm()
        if self.is_up:
            assert self.process is not None
            self.process.kill()
            await self.process.wait()

    async def settle(self) -> None:
        """Wait until the runtime has noticed the end of the daemon."""
        with suppress(TimeoutError):
            await self._runtime.gone(IDENTITY, within=5)
        self._runtime.roster.drop_closed()

    async def ask(self) -> dict[str, Any]:
        """Ask the daemon for its state."""
        client = Client(str(self._folder / "control.sock"))
        return await asyncio.to_thread(client.get, "/v1/state")

    async def get(self, path: str) -> tuple[int, str]:
        """Get a document of metrics or health."""
        return await asyncio.to_thread(self._get, path, _PORT)

    async def probe(self, path: str) -> tuple[int, str]:
        """Get a document of health where probes get it."""
        return await asyncio.to_thread(self._get, path, PROBES_PORT)

    def _get(self, path: str, port: int) -> tuple[int, str]:
        connection = http.client.HTTPConnection(self._address, port, timeout=5)
        with contextlib.closing(connection):
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def new_lines(self) -> list[str]:
        """Return what was logged since the last call."""
        raw = self.log.read_bytes() if self.log.exists() else b""
        new, self._log_read = raw[self._log_read :], len(raw)
        return new.decode(errors="replace").splitlines()

    def checkpoint(self) -> str:
        """Return the text of the checkpoint; empty without one."""
        try:
            return (self._folder / "state" / CHECKPOINT_NAME).read_text()
        except FileNotFoundError:
            return ""

    def resources(self) -> tuple[list[str], list[str]]:
        """Return what the daemon's descriptors refer to, and its threads."""
        assert self.process is not None
        folder = Path(f"/proc/{self.process.pid}")
        links = []
        for one in (folder / "fd").iterdir():
            with suppress(FileNotFoundError):
                links.append(str(one.readlink()))
        return sorted(links), [one.name for one in (folder / "task").iterdir()]

    def watches(self) -> int:
        """Return how many files and folders the daemon watches by inotify.

        Source:
            proc(5), /proc/pid/fdinfo: a line for each.
        """
        assert self.process is not None
        found = 0
        for one in Path(f"/proc/{self.process.pid}/fdinfo").iterdir():
            with suppress(FileNotFoundError):
                found += one.read_text().count("inotify wd:")
        return found


def json_of(line: str) -> dict[str, Any] | None:
    """Return a line of the log; None if it is none."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
