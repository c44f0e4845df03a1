"""The processes that are measured, installed and started as a user would."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

import attrs

from tests.benchmarks.peer import Peer
from tests.benchmarks.process import resident

# Does nothing, through the whole stub.
NOOP = """
import sys
from nri_resmgr.stub import PluginFlags, serve

class Noop:
    def synchronize(self, pods, containers):
        pass

    def create_container(self, pod, container):
        pass

serve(Noop(), name="noop", index="10", flags=PluginFlags(socket=sys.argv[1]))
"""

# What any Python can do: bytes back as they came, through asyncio.
ECHO = """
import asyncio, sys

class Echo(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.transport.write(data)

async def main():
    loop = asyncio.get_running_loop()
    await loop.create_unix_connection(Echo, sys.argv[1])
    await asyncio.Event().wait()

asyncio.run(main())
"""


@attrs.frozen
class Programs:
    """The project in an environment without development tools.

    Attributes:
        python: Its interpreter.
        noop: A plugin whose handlers do nothing.
        daemon: The launcher that ``nri-resmgr install`` writes.
        echo: A bare server: the least time of a round trip.
        state: The daemon's state directory.
    """

    python: Path
    noop: Path
    daemon: Path
    echo: Path
    state: Path

    @classmethod
    def install(cls, folder: Path, source: Path, extra: str = "") -> Programs:
        """Install *source* and its dependencies below *folder*.

        Args:
            folder: Where they are for as long as they are measured.
            source: The project.
            extra: Such as ``[kubelet]``.
        """
        venv.create(folder / "venv", with_pip=True)
        python = folder / "venv" / "bin" / "python"
        _run(python, "-m", "pip", "install", "--quiet", f"{source}{extra}")
        places = ("--plugin-dir", folder / "plugins", "--config-dir", folder / "conf.d")
        _run(python.with_name("nri-resmgr"), "install", *places)
        noop, echo = folder / "noop.py", folder / "echo.py"
        noop.write_text(NOOP)
        echo.write_text(ECHO)
        daemon = folder / "plugins" / "90-resource-policy"
        return cls(python, noop, daemon, echo, folder / "state")


@attrs.frozen
class Running:
    """A plugin process that is registered and configured.

    Attributes:
        begun: When the process was started, on ``time.perf_counter``.
        start: Seconds from there to RegisterPlugin.
        configured: Seconds from there to the answer of Configure.
    """

    peer: Peer
    pid: int
    begun: float
    start: float
    configured: float

    @property
    def resident(self) -> float:
        """Resident memory, MiB."""
        return resident(self.pid)


@contextmanager
def running(
    command: Sequence[str | Path],
    document: str = "",
    environment: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Running]:
    """Start a plugin; the path of the socket is appended to the command.

    Configure sends the document.
    """
    with tempfile.TemporaryDirectory() as name, Peer(Path(name) / "s") as peer:
        start = time.perf_counter()
        process = subprocess.Popen(
            (*command, str(Path(name) / "s")),
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            registered, configured = peer.accept(document)
            yield Running(
                peer, process.pid, start, registered - start, configured - start
            )
        finally:
            process.kill()
            process.wait()


def _run(*command: str | Path) -> None:
    subprocess.run(command, check=True, stdout=sys.stderr)
