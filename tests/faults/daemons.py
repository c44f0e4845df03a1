"""Daemons of the fork server on the test runtime, to be killed and started again."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Final

import attrs

from nri_resmgr.control.client import Client
from nri_resmgr.host.machine.sysfs_writer import sysfs_files, write_tree
from nri_resmgr.testing import Runtime
from nri_resmgr.topology.synthetic import parse_spec
from tests.faults.trigger import Trigger

ROOT: Final = Path(__file__).parents[2]
IDENTITY: Final = "90-resource-policy"

PATIENCE: Final = 30.0  # seconds; the machine may be busy with other tests

# A checkpoint is written at most 0.1 s after the one before.
_REST: Final = 0.13  # seconds without a step, after which nothing more comes by itself
_LOOK: Final = 0.02  # seconds between two looks at the steps


class Daemons:
    """A fork server; see `tests.faults.fork_server`."""

    def __init__(self, orders: IO[bytes], answers: IO[bytes]) -> None:
        self._orders = orders
        self._answers = answers.fileno()
        self._read = b""

    async def fork(self, order: dict[str, Any]) -> int:
        """Start a daemon; return its process id."""
        self._orders.write(json.dumps(order).encode() + b"\n")
        self._orders.flush()
        return int(await asyncio.wait_for(self.line(), PATIENCE))

    async def line(self) -> str:
        """Wait for the server's next line."""
        # Not in a thread: one that waits would keep a failed test from its end.
        while b"\n" not in self._read:
            await self._readable()
            data = os.read(self._answers, 4096)
            assert data, "the fork server has ended"
            self._read += data
        line, _, self._read = self._read.partition(b"\n")
        return line.decode()

    async def _readable(self) -> None:
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        loop.add_reader(self._answers, ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(self._answers)


@contextmanager
def fork_server(*prefix: str) -> Iterator[Daemons]:
    """Have a server of its own; it ends with the block.

    Args:
        prefix: A command that runs it.
    """
    with subprocess.Popen(
        (*prefix, sys.executable, "-m", "tests.faults.fork_server"),
        cwd=ROOT,
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stdout.readline(), "the fork server did not start"
        try:
            yield Daemons(server.stdin, server.stdout)
        finally:
            server.kill()  # and its daemon with it


@attrs.define(eq=False)
class Place:
    """A runtime, and the one daemon on it at a time.

    Attributes:
        daemons: Start it.
        folder: For all of its files.
        runtime: It has to be started.
        machine: As for `nri_resmgr.topology.synthetic.parse_spec`.
        trigger: Counts the daemon's steps, and may kill it.
        watched: Whether steps are counted: that takes half of the daemon's speed.
        flags: More of them.
        socket: Another one than the runtime's, for a proxy between.
        slow: Seconds that each write of a checkpoint takes.
        clock: A file whose text is added to the time of day, seconds; None without.
    """

    daemons: Daemons
    folder: Path
    runtime: Runtime
    machine: str
    watched: bool = False
    flags: tuple[str, ...] = ()
    socket: Path | None = None
    slow: float = 0.0
    clock: Path | None = None
    trigger: Trigger = attrs.field(init=False)
    pid: int = attrs.field(default=0, init=False)
    statuses: list[int] = attrs.field(factory=list, init=False)
    _end: asyncio.Task[str] | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        host = self.folder / "host"
        if not host.exists():
            write_tree(sysfs_files(parse_spec(self.machine)), host)
        self.trigger = Trigger(self.folder / "trigger")

    @property
    def config(self) -> Path:
        """The daemon's document."""
        return self.folder / "config.yaml"

    @property
    def log(self) -> Path:
        """Its log, as lines of JSON."""
        return self.folder / "log"

    @property
    def is_up(self) -> bool:
        """Whether it runs."""
        return self._end is not None and not self._end.done()

    def write_config(self, text: str) -> None:
        """Give it another document, as a whole."""
        new = self.folder / "config.new"
        new.write_text(text)
        new.rename(self.config)

    async def start(self) -> None:
        """Start it, and wait until it is in step with the runtime or has ended."""
        await self.launch()
        await self.in_step()

    async def launch(self) -> None:
        """Start it."""
        assert not self.is_up
        folder = self.folder
        arguments = (
            *("run", "--host-root", str(folder / "host")),
            *("--nri-socket", str(self.socket or self.runtime.socket_path)),
            *("--state-dir", str(folder / "state"), "--run-dir", str(folder / "run")),
            *("--control-socket", str(folder / "control.sock")),
            *("--config-file", str(self.config), "--log-format", "json"),
            *self.flags,
        )
        order = {
            "arguments": arguments,
            "output": str(self.log),
            "slow": self.slow,
            "clock": str(self.clock or ""),
            "trigger": str(folder / "trigger") if self.watched else "",
        }
        self.trigger.reset()
        self.pid = await self.daemons.fork(order)
        self._end = asyncio.create_task(self.daemons.line())

    async def in_step(self) -> None:
        """Wait until the runtime has synchronized it, or it has ended."""
        self.runtime.roster.drop_closed()
        synchronized = asyncio.create_task(
            self.runtime.synchronized(IDENTITY, within=PATIENCE)
        )
        await asyncio.wait(
            {synchronized, self._ending()}, return_when="FIRST_COMPLETED"
        )
        if synchronized.done():
            synchronized.result()
        synchronized.cancel()

    async def ended(self) -> int:
        """Wait for its end; return its exit status, below 0 for a signal."""
        status = int(await asyncio.wait_for(asyncio.shield(self._ending()), PATIENCE))
        self.statuses.append(status)
        await self.runtime.gone(IDENTITY, within=PATIENCE)
        self.runtime.roster.drop_closed()
        return status

    async def kill(self, number: int = signal.SIGKILL) -> int:
        """Send a signal, if it is not dead already, and wait for the end."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)
        return await self.ended()

    async def rested(self) -> None:
        """Wait until it does nothing by itself any more, or has ended."""
        loop = asyncio.get_running_loop()
        steps, since = self.trigger.count, loop.time()
        while self.is_up and loop.time() < since + _REST:
            await asyncio.wait({self._ending()}, timeout=_LOOK)
            if steps != (now := self.trigger.count):
                steps, since = now, loop.time()

    async def state(self) -> dict[str, Any]:
        """Return what it has granted: CPUs, memory, pools and containers."""
        whole = await self.ask()
        for one in whole["containers"]:
            # Requests have fewer fields of a container than Synchronize has.
            del one["created"], one["started"]
            # A decision may be on its way to the runtime for some milliseconds.
            one.pop("delivery", None)
        whole["containers"] = {one["id"]: one for one in whole["containers"]}
        for pool in whole["pools"]:
            pool["containers"].sort()
        whole["pools"] = {one["name"]: one for one in whole["pools"]}
        parts = ("policy", "cpus", "nodes", "pools", "containers")
        return {part: whole[part] for part in parts}

    async def ask(self) -> dict[str, Any]:
        """Return its whole state; it may have to come up first."""
        client = Client(str(self.folder / "control.sock"))
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    return await asyncio.to_thread(client.get, "/v1/state")
                except Exception:
                    if not self.is_up:
                        raise
                await asyncio.sleep(0.01)

    def logged(self, event: str) -> int:
        """Count the lines of its log about an event."""
        return self.log.read_text().count(f'"event": "{event}"')

    async def ending(self, within: float) -> None:
        """Wait for its end, but not for long."""
        await asyncio.wait({self._ending()}, timeout=within)

    def pins(self) -> dict[str, tuple[str, str, int]]:
        """Return where the runtime has the running containers."""
        _, there = self.runtime.world.snapshot()
        found = {one.id: one.linux.resources.cpu for one in there}
        return {
            key: (cpu.cpus, cpu.mems, cpu.shares.value) for key, cpu in found.items()
        }

    def _ending(self) -> asyncio.Task[str]:
        assert self._end is not None
        return self._end
