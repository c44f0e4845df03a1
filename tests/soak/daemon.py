"""The daemon as a process, with all that it can do besides, and how large it is."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Final

import attrs

from nri_resmgr.control.client import Client
from nri_resmgr.host.machine.sysfs_writer import sysfs_files, write_tree
from nri_resmgr.topology.synthetic import parse_spec
from tests.soak.node import MACHINE
from tests.soak.peer import Peer

NRI_SOCKET: Final = "nri.sock"

_PATIENCE: Final = 3600.0  # seconds, as the peer

# A shell that becomes the daemon, once it is in the cgroup.
_JOIN: Final = 'echo $$ > "$0"; exec "$@"'

DOCUMENTS: Final = tuple(
    "apiVersion: config.nri/v1alpha1\n"
    "kind: TopologyAwarePolicy\n"
    f"spec: {{reservedResources: {{cpu: {reserved}}}, allowLoss: true}}\n"
    for reserved in (2, 3)
)


@attrs.frozen
class Size:
    """Of a process at one time.

    Attributes:
        resident: KiB.
        files: Open ones.
        threads: All of them.
        seconds: Of a CPU that it has used so far.
    """

    resident: int
    files: int
    threads: int
    seconds: float


@attrs.frozen(eq=False)
class Daemon:
    """A daemon that is synchronized."""

    peer: Peer
    pid: int
    control: Client
    folder: Path
    port: int

    def size(self) -> Size:
        """Look at the process."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        rows = dict(line.split(":", 1) for line in status.splitlines())
        return Size(
            resident=int(rows["VmRSS"].split()[0]),
            files=len(list(Path(f"/proc/{self.pid}/fd").iterdir())),
            threads=int(rows["Threads"]),
            seconds=_cpu_seconds(self.pid),
        )

    def complaints(self) -> str:
        """Return the end of its log, which has errors only."""
        path = self.folder / "log"
        return path.read_text()[-4000:] if path.exists() else ""

    def objects(self) -> dict[str, int]:
        """Count its objects by type."""
        path = self.folder / "objects"
        path.unlink(missing_ok=True)
        os.kill(self.pid, signal.SIGRTMIN)
        until = time.monotonic() + _PATIENCE
        while not path.exists():
            assert time.monotonic() < until, "it does not count"
            self.peer.settle(0.01)
        found: dict[str, int] = json.loads(path.read_text())
        return found

    def series(self) -> int:
        """Count the time series of the metrics."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics") as answer:
            lines = answer.read().decode().splitlines()
        return sum(not line.startswith("#") for line in lines)

    def configure(self, number: int) -> None:
        """Put one of the documents in force."""
        before = self._generation()
        new = self.folder / "config.new"
        new.write_text(DOCUMENTS[number % len(DOCUMENTS)])
        new.replace(self.folder / "config")
        until = time.monotonic() + _PATIENCE
        while self._generation() == before:
            assert time.monotonic() < until, "it does not follow its file"
            self.peer.settle(0.05)

    def _generation(self) -> int:
        state = self.control.get("/v1/state")
        return int(state["configuration"]["generation"])


@contextmanager
def running(
    folder: Path,
    *,
    record_limit: str = "1Mi",
    cgroup: Path | None = None,
    peer: Peer | None = None,
    kubelet: Path | None = None,
) -> Iterator[Daemon]:
    """Run it with a checkpoint, metrics, a history, a log, and what else is given.

    Args:
        folder: For all files; an earlier daemon's checkpoint may be there.
        record_limit: Where its recording ends; empty for none.
        cgroup: Its cgroup, from its first instruction on.
        peer: One that outlives it; its socket is ``nri.sock`` in the folder.
        kubelet: The folder with the sockets of a kubelet.
    """
    host, config, port = folder / "host", folder / "config", _free_port()
    if not host.exists():
        write_tree(sysfs_files(parse_spec(MACHINE)), host)
    config.write_text(DOCUMENTS[0])
    flags = {
        "nri-socket": folder / NRI_SOCKET,
        "host-root": host,
        "config-file": config,
        "state-dir": folder / "state",
        "run-dir": folder / "run",
        "control-socket": folder / "run" / "control.sock",
        "http-endpoint": f"127.0.0.1:{port}",
        "log-to": folder / "log",
        "log-level": "error",
        "kubelet-dir": kubelet or "none",
    }
    if record_limit:
        flags |= {"record": folder / "recording", "record-limit": record_limit}
    command = [sys.executable, "-m", "tests.soak.counted", str(folder / "objects")]
    command += ["run", *(f"--{name}={value}" for name, value in flags.items())]
    if cgroup is not None:
        command = ["sh", "-c", _JOIN, str(cgroup / "cgroup.procs"), *command]
    with peer_of(folder) if peer is None else nullcontext(peer) as present:
        process = subprocess.Popen(command)
        try:
            # After thousands of containers it has to do, and the machine may, too.
            control = Client(str(flags["control-socket"]), timeout=120.0)
            yield Daemon(present, process.pid, control, folder, port)
        finally:
            present.hang_up()
            process.terminate()
            process.wait(_PATIENCE)


@contextmanager
def peer_of(folder: Path) -> Iterator[Peer]:
    """Have a runtime for daemons with their files in *folder*."""
    with closing(Peer(folder / NRI_SOCKET)) as peer:
        yield peer


def _cpu_seconds(pid: int) -> float:
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    user, system = int(stat[11]), int(stat[12])
    return (user + system) / os.sysconf("SC_CLK_TCK")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
