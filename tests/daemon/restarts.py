"""The real daemon, which is killed and started again while the runtime goes on."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import attrs
import msgspec

from nri_resmgr.app.plugin.translate import KUBELET_NAME
from nri_resmgr.checkpoint.encode import CHECKPOINT_NAME
from nri_resmgr.cli.workload import Workload
from nri_resmgr.host.machine.sysfs_writer import sysfs_files, write_tree
from nri_resmgr.testing import Runtime, plugin_process
from nri_resmgr.topology.synthetic import parse_spec
from tests.waiting import until

PLUGIN: Final = "90-resource-policy"


@attrs.frozen(eq=False)
class Node:
    """A runtime, and the folders of the daemons that come and go.

    Attributes:
        runtime: Goes on all the time.
        folder: Has ``state`` and ``log`` of the daemon, and ``host``.
    """

    runtime: Runtime
    folder: Path

    @property
    def checkpoint(self) -> Path:
        return self.folder / "state" / CHECKPOINT_NAME

    @asynccontextmanager
    async def daemon(self, *flags: str) -> AsyncIterator[asyncio.subprocess.Process]:
        """Run the daemon until the end of the block, or until it is killed in it.

        Each has a log of its own: a killed one may not have written its last lines.
        """
        (self.folder / "log").unlink(missing_ok=True)
        command = (sys.executable, "-m", "nri_resmgr", "run", *self.flags, *flags)
        # The machine may be busy with other tests.
        async with plugin_process(
            self.runtime, *command, identity=PLUGIN, within=60
        ) as process:
            yield process
        await until(lambda: PLUGIN not in self.runtime.plugins)

    @property
    def flags(self) -> tuple[str, ...]:
        return (
            *("--nri-socket", str(self.runtime.socket_path)),
            *("--host-root", str(self.folder / "host"), "--control-socket", ""),
            *("--state-dir", str(self.folder / "state")),
            *("--run-dir", str(self.folder / "run")),
            *("--log-format", "json", "--log-to", str(self.folder / "log")),
        )

    def said(self, event: str) -> list[dict[str, Any]]:
        """What the last daemon has logged of one kind."""
        whole, _, _ = (self.folder / "log").read_text().rpartition("\n")
        lines = map(json.loads, whole.splitlines())
        return [line for line in lines if line["event"] == event]

    async def says(self, event: str) -> dict[str, Any]:
        """Wait until it has logged one, and return the last one."""
        await until(lambda: bool(self.said(event)))
        return self.said(event)[-1]

    async def written(self) -> None:
        """Wait until the state of now is in the file."""
        await until(lambda: self.kept() == set(self.runtime.world.containers))

    def kept(self) -> set[str]:
        """The containers in the file."""
        if not self.checkpoint.exists():
            return set()
        records = map(json.loads, self.checkpoint.read_text().splitlines()[1:])
        return {key for table, key, _ in records if table == "container"}

    async def command(self, *flags: str) -> tuple[int, str]:
        """Run a daemon that ends by itself; return its status and what it says."""
        words = [sys.executable, "-m", "nri_resmgr", "run", *self.flags, *flags]
        done = await asyncio.to_thread(
            subprocess.run, words, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stderr

    async def come(self, workload: Workload, number: int = 0) -> str:
        """Run the container of a workload, the first one or a later one."""
        world = self.runtime.world
        if workload.pod.id not in world.pods:
            await self.runtime.run_pod(workload.pod)
        key = f"{workload.container.id}-{number}"
        labels = {KUBELET_NAME: workload.name}
        container = msgspec.structs.replace(workload.container, id=key, labels=labels)
        await self.runtime.create_container(workload.pod.id, container)
        await self.runtime.start_container(key)
        return key

    async def go(self, container: str) -> None:
        await self.runtime.stop_container(container)
        await self.runtime.remove_container(container)

    def cpus(self) -> dict[str, str]:
        """What runs, and where."""
        return {
            key: one.linux.resources.cpu.cpus
            for key, one in self.runtime.world.containers.items()
        }


@asynccontextmanager
async def node(folder: Path, machine: str = "2s1n4c1t") -> AsyncIterator[Node]:
    """Set up a node of a machine that is made up."""
    write_tree(sysfs_files(parse_spec(machine)), folder / "host")
    async with Runtime(folder) as runtime:
        yield Node(runtime, folder)
