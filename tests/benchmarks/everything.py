"""The daemon with all features: state, metrics, control, verification, log, systemd."""

from __future__ import annotations

import re
import socket
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import attrs

from nri_proto import nri_pb2 as pb
from tests.benchmarks.churn import Node, node
from tests.benchmarks.measure import Command
from tests.benchmarks.plugins import Running, running

# A file to watch that says what is built in.
BUILT_IN: Final = """\
apiVersion: config.nri/v1alpha1
kind: TopologyAwarePolicy
metadata: {name: default}
spec: {reservedResources: {cpu: 750m}}
"""

_CGROUPS: Final = "sys/fs/cgroup"
_WATCHDOG: Final = "30000000"  # microseconds, as the unit in deploy/ has it
_PATIENCE: Final = 20.0  # seconds
_PAUSE: Final = 0.05  # seconds


@attrs.frozen
class Site:
    """Paths of the daemon's state, log and sockets.

    Attributes:
        folder: On a disk: state and log.
        here: The machine.
    """

    folder: Path
    here: Node

    @property
    def log(self) -> Path:
        """The log of everything on."""
        return self.folder / "log"

    @property
    def checkpoint(self) -> Path:
        """The state's file."""
        return self.folder / "state" / "policy.checkpoint"

    def everything(self, daemon: str | Path, *flags: str | Path) -> Command:
        """Return how to start the daemon with all features on, and more flags."""
        return self.here.command(
            daemon,
            *("--state-dir", self.folder / "state"),
            *("--http-endpoint", "127.0.0.1:0"),
            *("--control-socket", self.folder / "control"),
            *("--log-to", self.log),
            *flags,
        )

    def nothing(self, daemon: str | Path) -> Command:
        """Return how to start the daemon with all features off."""
        off = ("--state-dir", "--http-endpoint", "--control-socket")
        flags = [word for flag in off for word in (flag, "")]
        quiet = ("--log-level", "error", "--verify-interval", "0")
        return self.here.command(daemon, *flags, *quiet)

    def metrics(self) -> Mapping[str, float]:
        """Read the metrics of the daemon that was started last."""
        ends = re.findall(r"http\.listening +endpoint=(\S+)", self.log.read_text())
        with urllib.request.urlopen(f"http://{ends[-1]}/metrics") as answer:
            lines = answer.read().decode().splitlines()
        pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
        return {name: float(value) for name, _, value in pairs}

    def live(self, daemon: str | Path, containers: int) -> bytes:
        """Synchronize so many containers, apply the reply, and kill the daemon.

        Returns:
            A Synchronize with the containers as they are afterwards.
        """
        request = pb.SynchronizeRequest.FromString(self.here.snapshot(containers))
        with running(self.everything(daemon)) as plugin:
            plugin.peer.call("Synchronize", request.SerializeToString())
            reply = pb.SynchronizeResponse.FromString(plugin.peer.reply)
            self._await_checkpoint()
        there = {one.id: one.linux for one in request.containers}
        for update in reply.update:
            linux, sent = there[update.container_id], update.linux.resources
            linux.resources.MergeFrom(sent)
            self.write_cgroup(linux.cgroups_path, sent.cpu)
        return request.SerializeToString()

    def _await_checkpoint(self) -> None:
        deadline = time.monotonic() + _PATIENCE
        while not self.checkpoint.exists():
            assert time.monotonic() < deadline, "no checkpoint was written"
            time.sleep(_PAUSE)

    def cgroup(self, path: str) -> Path:
        """Return the folder of a cgroup."""
        return self.here.root / _CGROUPS / path.strip("/")

    def write_cgroup(self, path: str, cpu: pb.LinuxCPU) -> None:
        """Make a cgroup, or change what *cpu* says."""
        folder, files = self.cgroup(path), {}
        if not folder.exists():
            folder.mkdir(parents=True)
            files["cgroup.procs"] = "1\n"
            files["cgroup.events"] = "populated 1\nfrozen 0\n"
        # Weights are none of the topology-aware policy's business.
        for name, text in {"cpuset.cpus": cpu.cpus, "cpuset.mems": cpu.mems}.items():
            if text:
                files |= {name: text, f"{name}.effective": text}
        for name, text in files.items():
            (folder / name).write_text(text)


@contextmanager
def site(cpus: int, document: str = "") -> Iterator[Site]:
    """Make a machine with cgroups of version 2, and a folder on a disk, for a while."""
    with (
        tempfile.TemporaryDirectory(prefix="nri-site-") as folder,
        node(cpus, document) as here,
    ):
        controllers = here.root / _CGROUPS / "cgroup.controllers"
        controllers.parent.mkdir(parents=True)
        controllers.write_text("cpuset cpu memory\n")
        yield Site(Path(folder), here)


@contextmanager
def under_systemd(command: Command) -> Iterator[Running]:
    """Start a plugin as the unit in deploy/ does, but for the sandbox."""
    with (
        tempfile.TemporaryDirectory() as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ears,
    ):
        path = f"{folder}/notify"
        ears.bind(path)
        environment = {"NOTIFY_SOCKET": path, "WATCHDOG_USEC": _WATCHDOG}
        with running(command, environment=environment) as plugin:
            yield plugin
