"""The real daemon on the test runtime, as a process, with its log in a file."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs

from nri_resmgr.cli.workload import Workload
from nri_resmgr.host.machine.sysfs_writer import sysfs_files, write_tree
from nri_resmgr.testing import Runtime, plugin_process
from nri_resmgr.topology import Machine

IDENTITY = "90-resource-policy"


@attrs.frozen(eq=False)
class RunningDaemon:
    """A daemon that the runtime has synchronized."""

    runtime: Runtime
    process: asyncio.subprocess.Process
    log: Path

    def lines(self) -> list[dict[str, Any]]:
        """What it has logged so far."""
        text = self.log.read_text() if self.log.exists() else ""
        whole = text[: text.rfind("\n") + 1]  # it may be writing one
        return [json.loads(line) for line in whole.splitlines()]

    async def line(self, event: str, number: int = 0) -> dict[str, Any]:
        """Wait for a line of the log, after *number* others like it."""
        async with asyncio.timeout(60):  # the machine may be busy with other tests
            while True:
                found = [line for line in self.lines() if line["event"] == event]
                if len(found) > number:
                    return found[number]
                await asyncio.sleep(0.02)

    async def place(self, workload: Workload) -> None:
        """Run a pod with its container, as a kubelet would."""
        pod = await self.runtime.run_pod(workload.pod)
        await self.runtime.create_container(pod.id, workload.container)


@asynccontextmanager
async def daemon(
    folder: Path,
    machine: Machine,
    *flags: str,
    before: Callable[[Path], object] = lambda _: None,
    environment: Mapping[str, str] | None = None,
    prefix: tuple[str, ...] = (),
) -> AsyncIterator[RunningDaemon]:
    """Run it on *machine*, with its log as JSON lines.

    Args:
        folder: For the host's files, the socket, and the log.
        machine: Written out as the host's sysfs.
        flags: After ``run``.
        before: Given the host's root before the start.
        environment: Beside that of this process.
        prefix: A command that becomes the daemon.
    """
    root, log = folder / "host", folder / "log"
    write_tree(sysfs_files(machine), root)
    before(root)
    async with Runtime(folder) as runtime:
        given = (f"{name}={text}" for name, text in (environment or {}).items())
        command = (
            *(*prefix, "env", *given),
            *(sys.executable, "-m", "nri_resmgr", "run", "--log-format", "json"),
            *("--nri-socket", str(runtime.socket_path), "--host-root", str(root)),
            *("--log-to", str(log), *flags),
        )
        async with plugin_process(
            # The machine may be busy with other tests.
            runtime,
            *command,
            identity=IDENTITY,
            within=60,
        ) as process:
            yield RunningDaemon(runtime, process, log)
