"""Containers that come and go on a node that stays as busy as it is."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import attrs

from nri_proto import nri_pb2 as pb
from nri_resmgr.host.machine.sysfs_writer import sysfs_files, write_tree
from nri_resmgr.stub.service import SETTLING_TIME
from nri_resmgr.topology.synthetic import parse_spec
from tests.benchmarks import measure
from tests.benchmarks.measure import ROUNDS, Command, Starts
from tests.benchmarks.peer import Peer
from tests.benchmarks.plugins import running
from tests.benchmarks.workload import container_of, mount_table, pod_of

# By their CPUs: two common servers, and one with small caches and nodes.
MACHINES: Final = {
    80: "2s20c2t memory=192Gi",
    112: "2s28c2t memory=256Gi",
    224: "2s2n28c2t memory=256Gi l3=7",
}
USUAL_CPUS: Final = 112
WARM_UP: Final = 20  # containers; the first ones warm caches
TURNOVER: Final = 200  # containers that come, and go, while it is measured
MOST_PODS: Final = 500

# As /run is.
_IN_MEMORY: Final = "/dev/shm"  # noqa: S108 - a folder of a name of our own in it

_MS: Final = 1e3


@attrs.frozen
class Figures:
    """Of one process, milliseconds; of one call the median, and the 99th percentile."""

    create: tuple[float, float]
    stop: tuple[float, float]


@attrs.frozen
class Arrival:
    """Of one process.

    Attributes:
        synchronize: What its first Synchronize took, milliseconds.
        resident: Afterwards, MiB.
        resident_later: After a turnover of containers, MiB.
    """

    synchronize: float
    resident: float
    resident_later: float


class Node:
    """A machine as files, and the messages about containers on it.

    Args:
        cpus: A key of `MACHINES`.
        root: An empty folder.
        run_dir: A folder for the resource files of containers.
        document: Content of the daemon's configuration file; none for no file.

    Attributes:
        root: The same.
    """

    def __init__(self, cpus: int, root: Path, run_dir: Path, document: str) -> None:
        self._machine = parse_spec(MACHINES[cpus])
        self.root = root
        self._run_dir = run_dir
        write_tree(sysfs_files(self._machine), root)
        table = root / "proc/1/mountinfo"
        table.parent.mkdir()
        table.write_text(mount_table(MOST_PODS))
        self._config = root.with_suffix(".conf") if document else None
        if self._config is not None:
            self._config.write_text(document)

    def command(self, daemon: str | Path, *flags: str | Path) -> Command:
        """Return how to start the daemon there, but for the socket's path."""
        roots = ("--host-root", self.root, "--run-dir", self._run_dir)
        state = ("--state-dir", self._run_dir / "state")
        config = ("--config-file", self._config) if self._config else ()
        return (daemon, *roots, *state, *config, *flags, "--nri-socket")

    def snapshot(self, containers: int) -> bytes:
        """Return a Synchronize with so many containers."""
        numbers = range(containers)
        return pb.SynchronizeRequest(
            pods=[pod_of(number) for number in numbers],
            containers=[container_of(number, self._machine) for number in numbers],
        ).SerializeToString()

    def pair(self, number: int) -> tuple[pb.PodSandbox, pb.Container]:
        """Return a pod and its container."""
        return pod_of(number), container_of(number, self._machine)

    def arrive(self, number: int, peer: Peer) -> float:
        """Start a container in a pod of its own; return what its creation took."""
        self.announce(number, peer)
        seconds = self.create(number, peer)
        pod, container = pod_of(number), container_of(number, self._machine)
        peer.call("StartContainer", _both(pod, container))
        return _MS * seconds

    def announce(self, number: int, peer: Peer) -> None:
        """Start the pod of a container."""
        peer.call("RunPodSandbox", _one(pod_of(number)))

    def create(self, number: int, peer: Peer) -> float:
        """Create a container in its pod; return the seconds that it took."""
        pod, container = pod_of(number), container_of(number, self._machine)
        return peer.call("CreateContainer", _both(pod, container))

    def leave(self, number: int, peer: Peer) -> float:
        """Stop a container, and its pod; return what its stop took."""
        pod = pod_of(number)
        container = container_of(number, self._machine)
        seconds = peer.call("StopContainer", _both(pod, container))
        peer.call("StopPodSandbox", _one(pod))
        peer.call("RemoveContainer", _both(pod, container))
        peer.call("RemovePodSandbox", _one(pod))
        return _MS * seconds

    def turn_over(self, containers: int, peer: Peer) -> Figures:
        """Let containers come and go, the oldest first."""
        first, last = containers, containers + WARM_UP + TURNOVER
        came, went = [], []
        for number in range(first, last):
            came.append(self.arrive(number, peer))
            went.append(self.leave(number - containers, peer))
        return Figures(_typical(came[WARM_UP:]), _typical(went[WARM_UP:]))


@contextmanager
def node(cpus: int, document: str = "") -> Iterator[Node]:
    """Make a machine of so many CPUs for a while."""
    with (
        tempfile.TemporaryDirectory(prefix="nri-node-") as folder,
        tempfile.TemporaryDirectory(prefix="nri-run-", dir=_IN_MEMORY) as run_dir,
    ):
        yield Node(cpus, Path(folder) / "root", Path(run_dir), document)


def churn(
    daemon: str | Path, cpus: int, containers: int, document: str = ""
) -> list[Figures]:
    """Measure creations and stops among so many containers, in several processes.

    The document is the one that the runtime hands over; none for what is built in.
    """
    with node(cpus) as here:
        command = here.command(daemon)
        return [churned(here, command, containers, document) for _ in range(ROUNDS)]


def starts(daemon: str | Path, cpus: int, *documents: str) -> Starts:
    """Start processes; the runtime hands over the documents in turn."""
    with node(cpus) as here:
        return measure.start_times(here.command(daemon), documents or ("",))


def starts_with_file(daemon: str | Path, cpus: int, document: str) -> Starts:
    """Start processes that find the document in a file."""
    with node(cpus, document) as here:
        return measure.start_times(here.command(daemon))


def arrivals(
    daemon: str | Path, cpus: int, containers: int, document: str = ""
) -> list[Arrival]:
    """Measure a start among so many containers, in several processes."""
    with node(cpus) as here:
        command = here.command(daemon)
        return [arrived(here, command, containers, document) for _ in range(ROUNDS)]


def churned(here: Node, command: Command, containers: int, document: str) -> Figures:
    """Measure creations and stops among so many containers, in one process."""
    with running(command, document=document) as plugin:
        plugin.peer.call("Synchronize", here.snapshot(containers))
        return here.turn_over(containers, plugin.peer)


def arrived(here: Node, command: Command, containers: int, document: str) -> Arrival:
    """Measure a start among so many containers, in one process."""
    with running(command, document=document) as plugin:
        synchronize = _MS * plugin.peer.call("Synchronize", here.snapshot(containers))
        time.sleep(SETTLING_TIME + 0.5)
        resident = plugin.resident
        here.turn_over(containers, plugin.peer)
        return Arrival(synchronize, resident, plugin.resident)


def _typical(times: Sequence[float]) -> tuple[float, float]:
    return statistics.median(times), statistics.quantiles(times, n=100)[-1]


def _one(pod: pb.PodSandbox) -> bytes:
    # All requests about a pod have it in the same field.
    return pb.RunPodSandboxRequest(pod=pod).SerializeToString()


def _both(pod: pb.PodSandbox, container: pb.Container) -> bytes:
    # And all about a container have both in the same two.
    return pb.CreateContainerRequest(pod=pod, container=container).SerializeToString()
