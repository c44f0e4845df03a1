"""The demo: our test runtime, the real plugin process, a real socket between."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import attrs

from nri_resmgr.cli.main import main
from nri_resmgr.cli.placements import Placement, format_placements
from nri_resmgr.cli.workload import Workload
from nri_resmgr.daemon.defaults import DEFAULT_INDEX, DEFAULT_NAME
from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.machine.sysfs_writer import sysfs_files, write_tree
from nri_resmgr.host.tree import HostTree
from nri_resmgr.testing import Runtime
from nri_resmgr.topology import Machine
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet, InputError, QosClass

# Two sockets with two nodes each show more than most laptops can.
MADE_UP: Final = "2s2n2c2t"
# Its largest moment holds 6 exclusive CPUs, beside a reserved and a shared one.
_ENOUGH_CPUS: Final = 8

_PAUSE: Final = 0.7  # seconds between pictures, for people
_PLUGIN: Final = f"{DEFAULT_INDEX}-{DEFAULT_NAME}"

_WEB = Workload("web", QosClass.BURSTABLE, 500)
_LOGS = Workload("logs", QosClass.BEST_EFFORT)
_CACHE = Workload("cache", QosClass.GUARANTEED, 2000)
_DB = Workload("db", QosClass.GUARANTEED, 4000)


@dataclass(eq=False)
class MachineTooSmall(InputError):
    """The made-up machine cannot hold the demo's workload."""

    spec: str
    cpus: int

    def __str__(self) -> str:
        return (
            f"machine {self.spec!r} has CPUs: {self.cpus}; "
            f"the demo needs {_ENOUGH_CPUS} or more"
        )


def demo(options: argparse.Namespace) -> int:
    """Serve the runtime of this machine if asked to and there, else show.

    Raises:
        MachineTooSmall: The made-up machine cannot hold the workload.
        BadMachineSpec: The text makes no machine.
    """
    path = options.unless_socket
    if path is not None and Path(path).is_socket():
        print(f"{path} is there: serving this machine's runtime; Ctrl-C ends it")
        return main(["run", "--nri-socket", path])
    if path is not None:
        print(f"No NRI socket at {path}, so here is a demo with our test runtime.\n")
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_play(options.machine))
    return 0


async def _play(spec: str | None) -> None:
    with tempfile.TemporaryDirectory(prefix="nri-resmgr-") as name:
        folder = Path(name)
        root, machine, title = _find_machine(spec, folder)
        print(f"{title}: {len(machine.online)} CPUs, {len(machine.nodes)} NUMA nodes\n")
        async with Runtime(folder) as runtime:
            show = _Show(runtime, machine, root)
            try:
                await show.play()
            finally:
                await show.end_plugin()


def _find_machine(spec: str | None, folder: Path) -> tuple[Path, Machine, str]:
    if spec is None:
        machine = read_machine(HostTree("/"))
        if len(machine.online) >= _ENOUGH_CPUS:
            return Path("/"), machine, "This machine"
    made_up = spec or MADE_UP
    machine = parse_spec(made_up)
    if len(machine.online) < _ENOUGH_CPUS:
        raise MachineTooSmall(made_up, len(machine.online))
    write_tree(sysfs_files(machine), folder / "host")
    return folder / "host", machine, f"A made-up machine, {made_up}"


@attrs.define(eq=False, repr=False)
class _Show:
    """Pods come and go; after each step, a picture of what the runtime was told."""

    runtime: Runtime
    machine: Machine
    root: Path
    running: list[Workload] = attrs.field(factory=list)
    plugin: asyncio.subprocess.Process | None = None

    async def play(self) -> None:
        """Go through the steps."""
        await self.start_plugin()
        await self.come("Two pods that share", _WEB, _LOGS)
        await self.come(
            "A Guaranteed pod with whole CPUs: the others make room", _CACHE
        )
        await self.come("A larger one", _DB)
        await self.end_plugin()
        await self.go("The plugin is killed; a pod goes meanwhile", _CACHE)
        await self.start_plugin()
        await self.picture(
            "It comes back: nothing moved, the free CPUs are shared again"
        )
        await self.go("The larger one goes, too", _DB)

    async def come(self, title: str, *workloads: Workload) -> None:
        """Start pods as the runtime does when the kubelet asks."""
        for workload in workloads:
            pod = await self.runtime.run_pod(workload.pod)
            created = await self.runtime.create_container(pod.id, workload.container)
            await self.runtime.start_container(created.container.id)
            self.running.append(workload)
        await self.picture(title)

    async def go(self, title: str, workload: Workload) -> None:
        """Stop and remove a pod."""
        await self.runtime.stop_pod(workload.pod.id)
        await self.runtime.remove_pod(workload.pod.id)
        self.running.remove(workload)
        await self.picture(title)

    async def picture(self, title: str) -> None:
        """Print what the runtime knows of its containers."""
        rows = (self._placement(workload) for workload in self.running)
        print(f"{title}\n{format_placements(self.machine, rows)}\n", flush=True)
        if sys.stdout.isatty():
            await asyncio.sleep(_PAUSE)

    def _placement(self, workload: Workload) -> Placement:
        message = self.runtime.world.containers[workload.container.id]
        cpu = message.linux.resources.cpu
        return Placement(
            name=workload.name,
            qos=workload.qos,
            asks=workload.asks,
            cpus=CpuSet.parse(cpu.cpus),
            mems=cpu.mems,
            exclusive=workload.qos is QosClass.GUARANTEED,
        )

    async def start_plugin(self) -> None:
        """Start the real daemon in a process of its own."""
        self.plugin = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "nri_resmgr", "run", "--log-level", "warning"),
            *("--nri-socket", str(self.runtime.socket_path)),
            *("--host-root", str(self.root)),
            *("--run-dir", str(self.runtime.socket_path.parent / "run")),
            *("--state-dir", str(self.runtime.socket_path.parent / "state")),
            *("--control-socket", ""),
            *("--verify-interval", "0"),  # its containers have no cgroups
        )
        await self.runtime.synchronized(_PLUGIN)

    async def end_plugin(self) -> None:
        """Kill it, as a crash would."""
        if self.plugin is not None:
            with contextlib.suppress(ProcessLookupError):
                self.plugin.kill()
            await self.plugin.wait()
            await self.runtime.gone(_PLUGIN)
            self.plugin = None
