"""A node with the real daemon, whose system calls can be made to fail."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import signal
import sys
import sysconfig
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from zlib import crc32

import attrs
import msgspec

from nri_proto import nri_pb2
from nri_resmgr.app.plugin.translate import KUBELET_NAME
from nri_resmgr.app.running.units import ADDRESS_VARIABLE
from nri_resmgr.checkpoint.encode import CHECKPOINT_NAME
from nri_resmgr.cli.workload import Workload
from nri_resmgr.control.client import Client
from nri_resmgr.host.cgroups.finder import cgroup_of_oci, unit_of_oci
from nri_resmgr.host.cgroups.top_tier import TOP_TIER_FILE
from nri_resmgr.testing import Runtime
from nri_resmgr.testing.resctrl import Resctrl
from nri_resmgr.testing.world import World
from nri_resmgr.values import QosClass
from tests.app.class_rig import files_of
from tests.daemon.host_nodes import KERNEL
from tests.daemon.spooled import hand_over_adjustments, hand_over_configuration
from tests.faults.filtered_process import start_filtered
from tests.faults.node_kubelet import NodeKubelet, kubelet_on
from tests.faults.service_manager import ServiceManager, service_manager_at
from tests.faults.system_calls import Fault, SystemCalls
from tests.host.cpu_trees import intel_pstate, write
from tests.running.systemd_double import (
    SOCKET,
    Bus,
    SystemdDouble,
    bus_below,
    systemd_on,
)

ROOT: Final = Path(__file__).parents[2]
IDENTITY: Final = "90-resource-policy"
BUSY: Final = 90.0  # seconds for what is not measured; the machine may be busy
PATIENCE: Final = 30.0  # seconds, which the law gives to all repairs

_DOCUMENT: Final = """\
# {number}
apiVersion: config.nri/v1alpha1
kind: TopologyAwarePolicy
spec:
  reservedResources: {{cpu: "cpuset:0"}}
  cpuClasses:
  - {{name: fast, minFreq: base, freqGovernor: performance, disabledCstates: [C6]}}
  - {{name: quiet, maxFreq: 1.2GHz}}
  sharedPoolCPUClass: quiet
  defaultExclusiveCPUClass: fast
  rebalance: {{interval: 1s}}
  control:
    rdt:
      enable: true
      adoptGroups: true
      partitions:
        all: {{l3Allocation: 100%, classes: {{gold: {{l3Allocation: 50%}}}}}}
    blockio: {{enable: true, classes: {{slow: [{{Weight: {weight}}}]}}}}
"""
_CLASSES: Final = {
    "rdtclass.resource-policy.nri.io/pod": "gold",
    "blockioclass.resource-policy.nri.io/pod": "slow",
    "toptierlimit.resource-policy.nri.io/pod": "4Mi",
}
# They keep the containers that share CPUs where they are. Otherwise a rebalance would
# move them when the visitor comes, or not, so that pins would depend on its time.
_RULE: Final = """\
{container}:
- scope: {{key: name, operator: AlwaysTrue}}
  match: {{key: name, operator: Equals, values: [db]}}
"""
_AFFINITIES: Final = {
    "batch": {"resource-policy.nri.io/affinity": _RULE.format(container="batch")},
    "web": {"resource-policy.nri.io/anti-affinity": _RULE.format(container="web")},
}
LIMIT: Final = str(4 << 20)  # bytes of fast memory, as the annotation says
ADJUSTED: Final = "web"
_ADJUSTMENTS: Final = """\
# {number}
- apiVersion: config.nri/v1alpha1
  kind: Adjustment
  metadata: {{name: web}}
  spec:
    scope: [{{containers: [{{key: name, operator: Equals, values: [web]}}]}}]
    resources: {{requests: {{cpu: 500m}}, limits: {{cpu: {limit}m}}}}
"""
_PORT: Final = 8891
_PROBES: Final = 8892  # port of liveness and readiness
_TIMES: Final = "".join(f"cpu{cpu} 1 0 1 7 1 0 0 0 0 0\n" for cpu in range(8))
_CGROUPS: Final = "sys/fs/cgroup"

# One for each sort of CPUs, and the one that comes and goes.
RESIDENTS: Final = (
    Workload("db", QosClass.GUARANTEED, 1000),
    Workload("web", QosClass.BURSTABLE, 500),
    Workload("batch", QosClass.BEST_EFFORT),
)
BESIDE_PROBE: Final = RESIDENTS[-1]  # loses CPUs to the probe, by the cgroup
VISITOR: Final = Workload("visitor", QosClass.GUARANTEED, 1000)
PROBE: Final = Workload("probe", QosClass.GUARANTEED, 2000)

_LIBRARIES: Final = tuple(
    {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib")}
    | {str(ROOT / "nri_resmgr"), str(ROOT / "nri_proto")}
)
_SLICES: Final = {
    QosClass.GUARANTEED: "kubepods.slice",
    QosClass.BURSTABLE: "kubepods-burstable.slice",
    QosClass.BEST_EFFORT: "kubepods-besteffort.slice",
}

# To see when the interpreter has started, and that a configuration is read.
_ALWAYS_SEEN: Final = {"openat"}

Pins = Mapping[str, tuple[str, str]]


class UpdatedWorld(World):
    """The pods and containers of the runtime, with those that were updated."""

    def __init__(self) -> None:
        super().__init__()
        self.updated: set[str] = set()

    def update(
        self, container_id: str, changes: nri_pb2.LinuxResources, *, all_fields: bool
    ) -> None:
        """See `World.update`."""
        super().update(container_id, changes, all_fields=all_fields)
        self.updated.add(container_id)


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


class FaultyNode:
    """A runtime, a host of files, and the one daemon on it at a time.

    Args:
        folder: For all files.
        runtime: It has to be started.
        neighbours: They have to be, too.
    """

    def __init__(self, folder: Path, runtime: Runtime, neighbours: Neighbours) -> None:
        self.folder = folder
        self.runtime = runtime
        self.systemd = neighbours.systemd
        self.manager = neighbours.manager
        self.kubelet = neighbours.kubelet
        # Paths of sockets are short, those of folders of tests are not.
        self._bus = str((neighbours.bus.root / SOCKET).readlink())
        self.world = runtime.world = UpdatedWorld()
        self.number = 0  # of the document
        self.adjusted = 0  # number of the adjustments
        (folder / "spool").mkdir(0o755)
        # Not from the log, in which lines may be missing. The port may be that of other
        # nodes and clients, whose addresses differ.
        number = crc32(bytes(folder)) % (1 << 24) | 2
        self.address = f"127.{number >> 16}.{number >> 8 & 255}.{number & 255}"
        self.process: asyncio.subprocess.Process | None = None
        self.calls: SystemCalls | None = None
        self.sees_all = True
        self._in_daemon = False
        self._log_read = 0
        self._recorded: dict[str, tuple[str, str, int, int]] = {}
        write(folder / "host", intel_pstate() | KERNEL | {"/proc/stat": _TIMES})
        resctrl = Resctrl()
        resctrl.mkdir("gold")
        resctrl.write_out(folder / "host")
        top = {"cgroup.controllers": "cpuset cpu io memory\n", "cgroup.procs": "1\n"}
        files_of(folder / "host" / _CGROUPS, top)
        self.write_document()
        self.write_adjustments()

    @property
    def log(self) -> Path:
        """Standard error of all daemons."""
        return self.folder / "log"

    @property
    def is_up(self) -> bool:
        """Whether the daemon runs."""
        return self.process is not None and self.process.returncode is None

    @property
    def document(self) -> str:
        """The present configuration."""
        return _DOCUMENT.format(number=self.number, weight=self._weight)

    @property
    def _weight(self) -> int:
        """Weight of block I/O in the present configuration; another one each time."""
        return 50 + 10 * (self.number % 3)

    def write_document(self) -> None:
        """Write another document, which means the same."""
        self.number += 1
        new = self.folder / "config.new"
        new.write_text(self.document)
        new.rename(self.folder / "config.yaml")

    @property
    def adjustments(self) -> str:
        """The present adjustments of the cluster."""
        return _ADJUSTMENTS.format(number=self.adjusted, limit=self._limit)

    @property
    def _limit(self) -> int:
        """Thousandths of a CPU; not two in turn, of which one may not be written."""
        return 700 + 100 * (self.adjusted % 3)

    @property
    def wanted_quota(self) -> str:
        """The line of ``cpu.max`` that the adjusted container should have."""
        return f"{100 * self._limit} 100000"

    def write_adjustments(self) -> None:
        """Have the cluster adjust a container otherwise, as its agent does."""
        self.adjusted += 1
        folder = self.folder / "spool"
        hand_over_adjustments(folder, self.adjustments)
        # It is read, and does not count beside a file.
        hand_over_configuration(folder, self.document, generation=self.adjusted)

    def set_online(self, cpus: str) -> None:
        """Have the host take other CPUs online and offline."""
        new = self.folder / "online"
        new.write_text(f"{cpus}\n")
        new.rename(self.folder / "host/sys/devices/system/cpu/online")

    def quota(self) -> str:
        """Return the line of ``cpu.max`` that the adjusted container has."""
        return _first_line(self._cgroup_of(ADJUSTED) / "cpu.max")

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
        folder = self.folder
        arguments = (
            *("-m", "nri_resmgr", "run", "--host-root", str(folder / "host")),
            *("--nri-socket", str(self.runtime.socket_path)),
            *("--state-dir", str(folder / "state"), "--run-dir", str(folder / "run")),
            *("--control-socket", str(folder / "control.sock")),
            *("--config-file", str(folder / "config.yaml"), "--log-format", "json"),
            *("--spool", str(folder / "spool"), "--record", str(folder / "recording")),
            *("--http-endpoint", f"{self.address}:{_PORT}", "--verify-interval", "1"),
            *("--health-endpoint", f"{self.address}:{_PROBES}"),
            *("--kubelet-dir", str(self.kubelet.folder)),
        )
        self.manager.forget()
        self.process, listener = await start_filtered(
            (sys.executable, *arguments),
            self.log,
            calls=None if sees_all else calls | _ALWAYS_SEEN,
            environment=self.manager.environment
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
        if path == str(self.manager.path):
            return "notify"
        if path.startswith(f"{self.kubelet.folder}/"):
            return "kubelet"
        return place_of(path, str(self.folder))

    async def in_step(self, within: float = BUSY) -> None:
        """Wait until the runtime has synchronized the daemon.

        Raises:
            TimeoutError: It has not, or the daemon has ended.
        """
        assert self.process is not None
        self.runtime.roster.drop_closed()
        synchronized = asyncio.create_task(
            self.runtime.synchronized(IDENTITY, within=within)
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

    async def settle(self) -> None:
        """Wait until the runtime has noticed the end of the daemon."""
        with suppress(TimeoutError):
            await self.runtime.gone(IDENTITY, within=5)
        self.runtime.roster.drop_closed()

    async def place(self, workload: Workload) -> None:
        """Run a pod with its container, as a kubelet would."""
        name = workload.name
        annotations = _CLASSES | _AFFINITIES.get(name, {})
        pod = msgspec.structs.replace(workload.pod, id=name, annotations=annotations)
        if name not in self.runtime.world.pods:
            self.kubelet.admit(workload)
            await self.runtime.run_pod(pod)
        assert workload.container.linux
        linux = msgspec.structs.replace(
            workload.container.linux,
            cgroups_path=_cgroups_path(workload),
        )
        container = msgspec.structs.replace(
            workload.container, id=name, labels={KUBELET_NAME: name}, linux=linux
        )
        await self.runtime.create_container(name, container)
        self.write_cgroups()
        await self.runtime.start_container(name)

    async def remove(self, name: str) -> None:
        """Stop a pod and remove it, whatever is there of it."""
        if name in self.runtime.world.pods:
            await self.runtime.stop_pod(name)
            await self.runtime.remove_pod(name)
            self.kubelet.forget(name)
        self.write_cgroups()

    def pins(self) -> Pins:
        """Return CPUs and memory nodes that containers have in their cgroups."""
        self.write_cgroups()
        return {
            name: (
                _first_line(folder / "cpuset.cpus"),
                _first_line(folder / "cpuset.mems"),
            )
            for name in self.runtime.world.containers
            if (folder := self._cgroup_of(name)).exists()
        }

    def write_cgroups(self) -> None:
        """Do as the runtime: write what its record has got since it wrote last.

        An update is written also if its values are those of the record: the daemon may
        have written others meanwhile, and then have failed to write.
        """
        updated = set(self.world.updated)
        self.world.updated.clear()
        for name, one in self.runtime.world.containers.items():
            folder = self._cgroup_of(name)
            cpu = one.linux.resources.cpu
            recorded = (cpu.cpus, cpu.mems, cpu.shares.value, cpu.quota.value)
            is_same = self._recorded.get(name) == recorded and name not in updated
            if folder.exists() and is_same:
                continue
            self._recorded[name] = recorded
            weight = 1 + ((cpu.shares.value - 2) * 9999) // 262142
            number = sum(name.encode())
            files = {
                "cgroup.procs": f"{number}\n",
                "cgroup.threads": f"{number}\n",
                "cgroup.events": "populated 1\nfrozen 0\n",
                "cpuset.cpus": f"{cpu.cpus or '0-7'}\n",
                "cpuset.mems": f"{cpu.mems or '0-1'}\n",
                "cpu.weight": f"{max(weight, 1)}\n",
                "cpu.max": f"{cpu.quota.value or 'max'} 100000\n",
            }
            if not folder.exists():
                files |= {"io.stat": "", "io.weight": "default 100\n"}
                files |= {TOP_TIER_FILE: "-1\n"}
            for file, text in files.items():
                _replace(folder / file, text)
            # What is written is in force, as in the kernel.
            for file in ("cpuset.cpus", "cpuset.mems"):
                effective = folder / f"{file}.effective"
                if not effective.is_symlink():
                    effective.symlink_to(file)
        known = {one.id for one in self.runtime.world.containers.values()}
        for gone in (*RESIDENTS, VISITOR, PROBE):
            folder = self._cgroup(_cgroups_path(gone))
            if gone.name not in known and folder.exists():
                for each in folder.iterdir():
                    each.unlink()
                folder.rmdir()

    def _cgroup_of(self, name: str) -> Path:
        return self._cgroup(self.runtime.world.containers[name].linux.cgroups_path)

    def _cgroup(self, path: str) -> Path:
        return self.folder / "host" / _CGROUPS / cgroup_of_oci(path)

    def limits(self) -> Mapping[str, str]:
        """Return the limits of fast memory that containers have, in bytes."""
        return {
            name: _first_line(self._cgroup_of(name) / TOP_TIER_FILE)
            for name in self.runtime.world.containers
        }

    def weights(self) -> Mapping[str, str]:
        """Return the weights of block I/O that containers have."""
        return {
            name: _first_line(self._cgroup_of(name) / "io.weight")
            for name in self.runtime.world.containers
        }

    @property
    def wanted_weight(self) -> str:
        """The weight of block I/O that containers have by the present configuration.

        A runtime sets it when it creates one, which this one does not; the daemon does
        for those that run when another configuration comes.

        Source:
            systemd, ``BFQ_WEIGHT`` in src/shared/cgroup-setup.h; runc has the same.
        """
        return str(1 + (self._weight - 10) * 9999 // 990)

    def unit_cpus(self, name: str) -> str:
        """Return the CPUs that the daemon has set last in the unit of a container."""
        path = self.runtime.world.containers[name].linux.cgroups_path
        calls = self.systemd.values(unit_of_oci(path))
        return calls[-1]["AllowedCPUs"] if calls else ""

    async def ask(self) -> dict[str, Any]:
        """Ask the daemon for its state."""
        client = Client(str(self.folder / "control.sock"))
        return await asyncio.to_thread(client.get, "/v1/state")

    async def get(self, path: str) -> tuple[int, str]:
        """Get a document of metrics or health."""
        return await asyncio.to_thread(self._get, path, _PORT)

    async def probe(self, path: str) -> tuple[int, str]:
        """Get a document of health where probes get it."""
        return await asyncio.to_thread(self._get, path, _PROBES)

    def _get(self, path: str, port: int) -> tuple[int, str]:
        connection = http.client.HTTPConnection(self.address, port, timeout=5)
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
            return (self.folder / "state" / CHECKPOINT_NAME).read_text()
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


def _cgroups_path(workload: Workload) -> str:
    # As with the driver systemd: the daemon sets the values of units, too.
    return f"{_SLICES[workload.qos]}:cri:{workload.name}"


def place_of(path: str, folder: str) -> str:
    """Sort a path, or another object, by what the daemon uses it for."""
    if path.startswith("["):
        name, _, port = path.strip("[]").partition(":")
        return "probes" if port == str(_PROBES) else name
    if found := next((place for part, place in _PARTS if part in path), None):
        return found
    if path.startswith(folder):
        first = path[len(folder) :].lstrip("/")
        places = (place for start, place in _PLACES if first.startswith(start))
        return next(places, "folder")
    if path.startswith(_LIBRARIES) or path.endswith((".py", ".pth")):
        return "import"
    if path.startswith(("anon_inode:", "pipe:", "/dev/")):
        return "internal"
    return "system"


# The library for D-Bus is imported with the first unit that is set.
_PARTS: Final = (
    (f"/{TOP_TIER_FILE}", "top-tier"),
    ("/jeepney", "bus-library"),
    ("/systemd_bus.", "bus-library"),
)

_PLACES: Final = (
    ("state", "state"),
    ("spool", "spool"),
    ("config", "configuration"),
    ("host/sys/fs/cgroup", "cgroups"),
    ("host/sys/fs/resctrl", "resctrl"),
    ("host/proc/stat", "cpu-time"),
    ("host", "host"),
    ("run", "published"),
    ("recording", "recording"),
    ("control.sock", "control"),
    ("nri.sock", "nri"),
    ("log", "log"),
)


def _first_line(path: Path) -> str:
    """Read a value. The daemon writes as to the kernel, and a longer one had more."""
    return path.read_text().partition("\n")[0]


def _replace(path: Path, text: str) -> None:
    with suppress(FileNotFoundError):
        if path.read_text() == text:
            return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@asynccontextmanager
async def faulty_node(folder: Path) -> AsyncIterator[FaultyNode]:
    """Have a node with a runtime; no daemon outlives the block."""
    folder.mkdir()  # noqa: ASYNC240 - nothing else runs yet
    # The path of a socket has 107 characters at most, and pytest's folders are long.
    with (
        TemporaryDirectory(prefix="bus-") as short,
        bus_below(Path(short)) as bus,
        service_manager_at(Path(short, "notify")) as manager,
    ):
        async with (
            Runtime(folder) as runtime,
            systemd_on(bus) as systemd,
            kubelet_on(Path(short, "kubelet")) as kubelet,
        ):
            neighbours = Neighbours(bus, systemd, manager, kubelet)
            node = FaultyNode(folder, runtime, neighbours)
            try:
                yield node
            finally:
                if node.calls is not None:
                    node.calls.disarm()
                if node.is_up:
                    assert node.process is not None
                    node.process.kill()
                    await node.process.wait()


def json_of(line: str) -> dict[str, Any] | None:
    """Return a line of the log; None if it is none."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
