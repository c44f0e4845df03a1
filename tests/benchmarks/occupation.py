"""``python -m tests.benchmarks.occupation``: what follows a Synchronize, in pieces.

The daemon, with state, published resources, metrics, control socket, log and
verification, synchronizes a node three times: as a new process, in another session, and
as a process that was started again. After each the longest callbacks of its event loop
are listed that are not requests; they are what a request may have to wait for. Requests
go on meanwhile.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import attrs

from nri_proto import nri_pb2 as pb
from nri_resmgr.host.machine.sysfs_writer import sysfs_files, write_tree
from nri_resmgr.topology import Machine
from nri_resmgr.topology.synthetic import parse_spec
from tests.benchmarks.churn import MACHINES, USUAL_CPUS
from tests.benchmarks.workload import container_of, pod_of
from tests.soak.peer import Peer
from tests.soak.test_hostile_pods import PODS, chunks, hostile, long_annotations

_PROGRAM: Final = Path(__file__).with_name("timed_loop.py")
_FOR: Final = 5.0  # seconds after a Synchronize: two looks of the verification
_PAUSE: Final = 0.003  # seconds between two requests

# What a request does itself, and reading it.
_REQUEST: Final = "_SelectorSocketTransport._read_ready"

_NAMED: Final = 5  # callbacks of a row

_MS: Final = 1e3

Pairs = list[tuple[pb.PodSandbox, pb.Container]]


@attrs.frozen
class Callback:
    """A callback of the event loop.

    Attributes:
        seconds: How long it took.
        cpu: Seconds of a CPU, which other processes of a busy machine hardly change.
    """

    seconds: float
    cpu: float
    name: str


def ordinary(count: int) -> Callable[[Machine], Pairs]:
    """Return a maker of so many pods."""
    return lambda machine: [
        (pod_of(number), container_of(number, machine)) for number in range(count)
    ]


def annotated(machine: Machine) -> Pairs:
    """Make pods with 256 KiB of annotations each."""
    return [hostile(long_annotations, number, machine) for number in range(PODS)]


NODES: Final[dict[str, Callable[[Machine], Pairs]]] = {
    "500 containers": ordinary(500),
    "5,000 containers": ordinary(5000),
    f"{PODS} pods with 256 KiB of annotations": annotated,
}


@attrs.define(eq=False)
class Node:
    """A machine of files below a folder, and its pods."""

    folder: Path
    pairs: Pairs

    @property
    def spans(self) -> Path:
        """The file with the daemon's callbacks."""
        return self.folder / "spans"

    def prepare(self, machine: Machine) -> None:
        """Write the machine, with cgroups that are not as decided."""
        write_tree(sysfs_files(machine), self.folder / "host")
        top = self.folder / "host/sys/fs/cgroup"
        top.mkdir(parents=True)
        (top / "cgroup.controllers").write_text("cpuset cpu memory\n")
        files = {"cgroup.procs": "1\n", "cgroup.events": "populated 1\nfrozen 0\n"}
        for name, text in {"cpus": "0-1", "mems": "0"}.items():
            files |= {f"cpuset.{name}": text, f"cpuset.{name}.effective": text}
        for _, container in self.pairs:
            cgroup = top / container.linux.cgroups_path.strip("/")
            cgroup.mkdir(parents=True)
            for file, text in files.items():
                (cgroup / file).write_text(text)
            # As if the daemon had published to all of them.
            (self.folder / "run/containers" / container.id).mkdir(parents=True)

    @contextmanager
    def daemon(self) -> Iterator[None]:
        """Run the daemon."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        flags = {
            "nri-socket": self.folder / "nri.sock",
            "host-root": self.folder / "host",
            "state-dir": self.folder / "state",
            "run-dir": self.folder / "run",
            "control-socket": self.folder / "control" / "socket",
            "http-endpoint": f"127.0.0.1:{port}",
            "log-to": self.folder / "log",
        }
        words = [f"--{name}={value}" for name, value in flags.items()]
        command = (sys.executable, str(_PROGRAM), str(self.spans), "run", *words)
        process = subprocess.Popen(command)
        try:
            yield
        finally:
            process.terminate()
            process.wait()

    def synchronize(self, peer: Peer) -> float:
        """Have the plugin synchronize; return when it began to answer the last part."""
        for request in chunks(self.pairs):
            begin = time.monotonic()
            assert not peer.call("Synchronize", request).why
        return begin

    def visit(self, peer: Peer) -> float:
        """Make requests for a while; return the longest time of one."""
        end, most = time.monotonic() + _FOR, 0.0
        request = pb.RunPodSandboxRequest(pod=pod_of(len(self.pairs)))
        while time.monotonic() < end:
            most = max(most, peer.call("RunPodSandbox", request).seconds)
            time.sleep(_PAUSE)
        return most

    def callbacks(self, since: float) -> Iterator[Callback]:
        """Yield what the event loop did, apart from requests."""
        for line in self.spans.read_text().splitlines():
            begin, end, cpu, name = line.split(maxsplit=3)
            # Collections are part of the callback, or request, that they run in.
            if float(begin) >= since and not name.startswith((_REQUEST, "collector")):
                seconds = float(end) - float(begin)
                yield Callback(seconds, float(cpu), name)


def measured(node: Node, machine: Machine) -> Iterator[tuple[str, float, float]]:
    """Yield what was measured, the longest request, and the time since when."""
    node.prepare(machine)
    peer = Peer(node.folder / "nri.sock")
    try:
        with node.daemon():
            for session in ("first", "next session"):
                peer.accept()
                since = node.synchronize(peer)
                yield session, node.visit(peer), since
                peer.hang_up()
        with node.daemon():
            peer.accept()
            since = node.synchronize(peer)
            yield "restarted", node.visit(peer), since
            peer.hang_up()
    finally:
        peer.close()


def main() -> None:
    """Measure each node, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3, help="(%(default)s)")
    rounds = parser.parse_args().rounds
    machine = parse_spec(MACHINES[USUAL_CPUS])
    print(f"{os.cpu_count()} CPUs, Python {sys.version.split()[0]}, {rounds} rounds\n")
    print(
        "| node | longest callback, ms of a CPU | as it took, ms | longest request, ms "
        "| the longest callbacks, ms of a CPU |"
    )
    print("|---|---|---|---|---|")
    for title, make in NODES.items():
        requests, found = list[float](), list[list[Callback]]()
        for _ in range(rounds):
            with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
                node = Node(Path(name), make(machine))
                for _, most, since in measured(node, machine):
                    requests.append(_MS * most)
                    found.append(list(node.callbacks(since)))
        print(f"| {title} | {_row(requests, found)} |")
        sys.stdout.flush()


def _row(requests: Sequence[float], found: Sequence[Sequence[Callback]]) -> str:
    cpus = [_MS * max(one.cpu for one in some) for some in found]
    took = [_MS * max(one.seconds for one in some) for some in found]
    by_name: dict[str, float] = {}
    for one in (one for some in found for one in some):
        by_name[one.name] = max(by_name.get(one.name, 0.0), _MS * one.cpu)
    longest = sorted(by_name.items(), key=lambda one: -one[1])[:_NAMED]
    return (
        f"{min(cpus):.1f} to {max(cpus):.1f} | {min(took):.1f} to {max(took):.1f} "
        f"| {min(requests):.1f} to {max(requests):.1f} "
        f"| {', '.join(f'{name} {cpu:.1f}' for name, cpu in longest)}"
    )


if __name__ == "__main__":
    main()
