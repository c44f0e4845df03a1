"""A node with cgroups, a simulated resctrl, and our plugin with its reconcilers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import attrs

from nri_proto import NriLevel
from nri_resmgr.app.classes.blockio.files import BlockIoFiles
from nri_resmgr.app.classes.blockio.record import BlockIoRecord
from nri_resmgr.app.classes.rdt.groups import RdtGroups
from nri_resmgr.app.classes.rdt.writer import RdtWriter
from nri_resmgr.app.plugin.changes.reconfiguration import reconfigure
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.classes.rdt import ROOT_CLASS
from nri_resmgr.classes.rdt.capabilities import BandwidthMode
from nri_resmgr.daemon.parts import Reconcilers
from nri_resmgr.host.resctrl import Journal, RdtControl, ResctrlOptions
from nri_resmgr.host.tree import HostTree
from nri_resmgr.policies import parse_config
from nri_resmgr.stub import Container, Pod
from nri_resmgr.stub.model import LinuxContainer
from nri_resmgr.testing import CreateResult, Runtime, running_plugin
from nri_resmgr.testing.resctrl import Faults, Hardware, Resctrl
from nri_resmgr.topology.synthetic import parse_spec
from tests.app.node import SAFE, Node, asking_for, config
from tests.app.ready_target import ReadyTarget
from tests.host.resctrl.kept import Kept
from tests.waiting import until

PERIOD: Final = 0.2  # seconds

# 20 ways, 16 closids, percent of bandwidth.
HARDWARE = Hardware()

CGROUPS = {
    "cgroup.controllers": "cpu io memory",
    "kubepods/io.stat": "",
    "kubepods/io.max": "",
    "kubepods/io.weight": "",
}


def files_of(folder: Path, files: Mapping[str, str]) -> None:
    """Write files below a folder."""
    for name, text in files.items():
        path = folder / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@attrs.define
class Rig:
    """The parts.

    Attributes:
        node: The runtime and the plugin.
        host: The root of the host's files.
        resctrl: What the kernel has of groups.
        kept: What outlives the plugin.
        is_killed: Whether the plugin ends without a chance to take anything back.
    """

    node: Node
    host: Path
    resctrl: Resctrl
    kept: Kept
    is_killed: bool = False

    async def create(
        self,
        name: str,
        annotations: Mapping[str, str] = {},
        *,
        cpus: float = 1,
        labels: Mapping[str, str] = {},
    ) -> CreateResult:
        """Create a pod and its container, whose process does not run yet."""
        runtime = self.node.runtime
        if f"pod-{name}" not in runtime.world.pods:
            pod = Pod(
                id=f"pod-{name}",
                uid=f"uid-{name}",
                name=name,
                namespace="default",
                annotations=annotations,
                labels=labels,
            )
            await runtime.run_pod(pod)
        linux = LinuxContainer(
            resources=asking_for(cpus), cgroups_path=f"/kubepods/{name}"
        )
        return await runtime.create_container(
            f"pod-{name}", Container(id=name, name=name, linux=linux)
        )

    def appear(self, name: str, *tasks: int, group: str = "") -> None:
        """Let the runtime make a container's cgroup, and the kernel its threads."""
        files = {"cgroup.procs": "", "io.stat": "", "io.max": "", "io.weight": ""}
        lines = "".join(f"{one}\n" for one in tasks)
        self.write_cgroup(name, files | {"cgroup.threads": lines})
        for one in tasks:
            self.resctrl.start(one)
            if group:
                self.resctrl.write(f"{group}/tasks", str(one))

    def write_cgroup(self, name: str, files: Mapping[str, str]) -> None:
        """Write files of a container's cgroup."""
        files_of(self.host / "sys/fs/cgroup/kubepods" / name, files)

    def cgroup_file(self, name: str, file: str) -> str:
        """Read a file of a container's cgroup."""
        path = self.host / "sys/fs/cgroup/kubepods" / name / file
        return path.read_text()

    def tasks(self, group: str = "") -> str:
        """Return the threads of a group, on one line; nothing if it is gone."""
        path = f"{group}/tasks" if group else "tasks"
        try:
            return " ".join(self.resctrl.read(path).split())
        except FileNotFoundError:
            return ""

    def schemata(self, group: str) -> list[str]:
        """Return what a group has, without the kernel's blanks."""
        text = self.resctrl.read(f"{group}/schemata")
        return [line.replace(" ", "") for line in text.splitlines()]

    def groups(self) -> list[str]:
        """Return the groups that there are."""
        others = {"info", "mon_groups", "mon_data"}
        return [
            name
            for name in self.resctrl.names("")
            if name not in others and self.tasks_file(name)
        ]

    def tasks_file(self, group: str) -> bool:
        """Return whether a name is of a group."""
        try:
            return "tasks" in self.resctrl.names(group)
        except OSError:
            return False

    def reconfigure(self, spec: str) -> None:
        """Put another document in force."""
        reconfigure(self.node.plugin, parse_config(config(spec)))

    async def compared(self) -> None:
        """Wait until all containers have been compared once more."""
        groups = self.node.plugin.class_hosts.rdt
        before = len(self.tasks().split())
        self.resctrl.start(99_999)  # which is counted at the end of a step
        await until(
            lambda: (
                ROOT_CLASS in groups.groups
                and groups.groups[ROOT_CLASS].threads == before + 1
            )
        )

    async def settled(self) -> None:
        """Wait until the groups are what the configuration says, or cannot be."""
        await until(lambda: self.node.plugin.class_hosts.rdt.is_settled)


@asynccontextmanager
async def running_rig(
    folder: Path,
    spec: str,
    resctrl: Resctrl | None = None,
    kept: Kept | None = None,
    level: NriLevel = SAFE,
) -> AsyncIterator[Rig]:
    """Start the plugin on a machine; at the end it takes everything back.

    Args:
        folder: For everything.
        spec: A whole document, or the spec of a topology-aware policy.
        resctrl: What is there before the plugin.
        kept: What an earlier one has left.
        level: The runtime's.
    """
    host, reconcilers = folder / "host", Reconcilers()
    files_of(host / "sys/fs/cgroup", CGROUPS)
    plugin = ResourcePolicy(
        parse_spec("1s2n4c1t"),
        parse_config(spec if "kind:" in spec else config(spec)),
        tree=HostTree(str(host)),
        observers=reconcilers.observers,
    )
    async with (
        Runtime(folder, level) as runtime,
        running_plugin(runtime, plugin, "90-resource-policy") as stub,
    ):
        plugin.use_update_sender(stub.updates)
        node = Node(runtime, plugin, stub, folder / "run")
        kernel = resctrl or Resctrl(HARDWARE)
        rig = Rig(node, host, kernel, kept or Kept(Faults()))
        beside = run_reconcilers(reconcilers, rig)
        try:
            yield rig
        finally:
            for one in beside:
                one.cancel()
            if not rig.is_killed:
                reconcilers.close()


def run_reconcilers(
    reconcilers: Reconcilers, rig: Rig
) -> tuple[asyncio.Task[None], ...]:
    """Run them as the daemon does, with another resctrl and shorter periods."""
    plugin, kept = rig.node.plugin, rig.kept

    def opened(options: ResctrlOptions) -> RdtControl:
        journal = Journal(kept, "this boot")
        return RdtControl(rig.resctrl, journal, BandwidthMode.PERCENT, options)

    hosts = plugin.class_hosts
    writer = RdtWriter(HostTree(str(rig.host)), hosts.rdt, opened)
    rdt = RdtGroups(plugin, hosts.rdt, writer, PERIOD)
    record = BlockIoRecord(kept)
    record.load(hosts.blockio)
    blockio = BlockIoFiles(plugin, hosts.blockio_writer, record, PERIOD)
    return (
        asyncio.create_task(reconcilers.rdt.run(ReadyTarget(rdt))),
        asyncio.create_task(reconcilers.blockio.run(ReadyTarget(blockio))),
    )
