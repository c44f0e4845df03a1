"""``nri-resmgr demo``: the real plugin process with the test runtime."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import sys
import tempfile
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import attrs
import msgspec

from nri_resmgr.cli import run as run_command
from nri_resmgr.cli.flags import Parser
from nri_resmgr.cli.tables import format_table
from nri_resmgr.cli.workload import Workload
from nri_resmgr.daemon.defaults import DEFAULT_INDEX, DEFAULT_NAME
from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.machine.sysfs_writer import sysfs_files, write_tree
from nri_resmgr.host.tree import HostTree
from nri_resmgr.stub.transport import DEFAULT_SOCKET
from nri_resmgr.testing import Runtime
from nri_resmgr.topology import Machine
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet, HostError, InputError, QosClass
from nri_resmgr.values.counts import count_text

# Two sockets with two nodes each show more than most laptops.
SYNTHETIC: Final = "2s2n2c2t"
# At most 6 exclusive CPUs at once, a reserved and a shared one.
_ENOUGH_CPUS: Final = 8

_PAUSE: Final = 0.7  # seconds between two tables on a terminal
_LONGEST_WAIT: Final = 30.0  # seconds; on a busy machine a start takes ten
_PLUGIN: Final = f"{DEFAULT_INDEX}-{DEFAULT_NAME}"

EXCLUSIVE, SHARED, FREE = "█", "▒", "·"

_WEB = Workload("web", QosClass.BURSTABLE, 500)
_LOGS = Workload("logs", QosClass.BEST_EFFORT)
_CACHE = Workload("cache", QosClass.GUARANTEED, 2000)
_DB = Workload("db", QosClass.GUARANTEED, 4000)

_STAYING: Final = """\
The plugin keeps running. Try in another terminal:
  nri-resmgr status --control-socket {socket}
  nri-resmgr explain db --control-socket {socket}
  nri-resmgr events --control-socket {socket}
  nri-resmgr top --control-socket {socket}
Ctrl-C ends it."""

_NEXT_OF_STAYING: Final = """\
Try next:
  nri-resmgr simulate --topology 2s2n8c2t pods.yaml    your own manifests
  nri-resmgr check my.yaml                             your own configuration
  nri-resmgr run --dry-run                             on this node, changing nothing"""

_NEXT: Final = f"""\
{_NEXT_OF_STAYING}
  nri-resmgr demo --stay                               status, explain and top, live"""

_EXAMPLES: Final = """\
examples:
  nri-resmgr demo                       on this machine, or a synthetic one
  nri-resmgr demo --machine 2s2n4c2t    on a synthetic one
  nri-resmgr demo --stay                then keep it running, to try status and others
"""


@dataclass(eq=False)
class MachineTooSmall(InputError):
    """The synthetic machine cannot hold the demo's workload."""

    spec: str
    cpus: int

    def __str__(self) -> str:
        return (
            f"machine {self.spec!r} has {count_text(self.cpus, 'CPU')}; "
            f"the demo needs {_ENOUGH_CPUS} or more"
        )


@dataclass(eq=False)
class PluginTooSlow(HostError):
    """The plugin did not do in time what the demo waits for."""

    awaited: str

    def __str__(self) -> str:
        return (
            f"waited {_LONGEST_WAIT:g} s for the plugin to {self.awaited}: "
            "run the demo again when this machine is less busy"
        )


@dataclass(eq=False)
class PluginEnded(HostError):
    """The plugin has ended while the demo needs it."""

    status: int

    def __str__(self) -> str:
        return f"the plugin has ended with status {self.status}"


class DemoRow(msgspec.Struct, frozen=True):
    """A container in the table."""

    name: str
    qos: str
    asks: str
    cpus: CpuSet
    mems: str
    exclusive: bool = False


def add_arguments(parser: Parser) -> None:
    """Describe the command."""
    parser.description = (
        "Start a test runtime, the plugin and a small workload, show the CPUs of each "
        "container, and say what to try next."
    )
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "--machine",
        metavar="SPEC",
        help="a synthetic machine such as 2s2n4c2t; default is this machine, or "
        f"{SYNTHETIC} if it has fewer than {_ENOUGH_CPUS} CPUs",
    )
    parser.add_argument(
        "--stay",
        action="store_true",
        help="keep the plugin and two pods running until Ctrl-C, so that other "
        "commands can query it",
    )
    parser.add_argument(
        "--unless-socket",
        nargs="?",
        const=DEFAULT_SOCKET,
        metavar="PATH",
        help="serve the runtime at this socket instead, if the socket exists "
        f"({DEFAULT_SOCKET})",
    )


def run(options: argparse.Namespace) -> int:
    """Play the demo, or serve the runtime of this machine if its socket exists.

    Raises:
        MachineTooSmall: The synthetic machine cannot hold the workload.
        BadMachineSpec: The text is not the spec of a machine.
        PluginEnded: The plugin has ended by itself.
        PluginTooSlow: The plugin has not registered in time.
    """
    path = options.unless_socket
    if path is not None and Path(path).is_socket():
        print(f"{path} exists: serving this machine's runtime; Ctrl-C ends it")
        return _serve(path)
    if path is not None:
        print(f"No NRI socket at {path}: starting a demo with the test runtime.\n")
    with contextlib.suppress(KeyboardInterrupt, asyncio.CancelledError):
        asyncio.run(_play(options.machine, is_staying=options.stay))
    return 0


def _serve(path: str) -> int:
    parser = Parser(prog="nri-resmgr run", environment=os.environ)
    run_command.add_arguments(parser)
    return run_command.run(parser.parse_args(["--nri-socket", path]))


async def _play(spec: str | None, *, is_staying: bool) -> None:
    _end_with_sigterm()
    with tempfile.TemporaryDirectory(prefix="nri-resmgr-") as name:
        folder = Path(name)
        root, machine, title = _find_machine(spec, folder)
        print(
            f"{title}: {count_text(len(machine.online), 'CPU')}, "
            f"{count_text(len(machine.nodes), 'NUMA node')}\n"
        )
        async with Runtime(folder) as runtime:
            show = _Show(runtime, machine, root)
            if is_staying:
                show.control_socket = str(folder / "control.sock")
            try:
                await show.play()
                if is_staying:
                    await show.stay()
            finally:
                await show.end_plugin()
    print(_NEXT_OF_STAYING if is_staying else _NEXT)


def _end_with_sigterm() -> None:
    """Have SIGTERM end the present task as Ctrl-C does, and its plugin with it."""
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - called in a coroutine
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)


def _find_machine(spec: str | None, folder: Path) -> tuple[Path, Machine, str]:
    if spec is None:
        machine = read_machine(HostTree("/"))
        if len(machine.online) >= _ENOUGH_CPUS:
            return Path("/"), machine, "This machine"
    chosen = spec or SYNTHETIC
    machine = parse_spec(chosen)
    if len(machine.online) < _ENOUGH_CPUS:
        raise MachineTooSmall(chosen, len(machine.online))
    write_tree(sysfs_files(machine), folder / "host")
    return folder / "host", machine, f"A synthetic machine, {chosen}"


@attrs.define(eq=False, repr=False)
class _Show:
    """Starts and stops pods, and prints after each step the pinning of containers."""

    runtime: Runtime
    machine: Machine
    root: Path
    control_socket: str = ""  # a daemon of this machine may use the default
    running: list[Workload] = attrs.field(factory=list)
    plugin: asyncio.subprocess.Process | None = None

    async def play(self) -> None:
        """Run all steps."""
        await self.start_plugin()
        await self.start("Two pods with shared CPUs", _WEB, _LOGS)
        await self.start(
            "A Guaranteed pod with exclusive CPUs: the others lose these", _CACHE
        )
        await self.start("A larger one", _DB)
        await self.end_plugin()
        await self.stop("The plugin is killed, and a pod ends meanwhile", _CACHE)
        await self.start_plugin()
        await self.show(
            "The plugin restarts: nothing moves, the free CPUs are shared again"
        )
        await self.stop("The larger one ends as well", _DB)

    async def stay(self) -> None:
        """Keep two pods and the plugin until a signal, or until the plugin ends."""
        await self.start("The larger one comes back", _DB)
        print(_STAYING.format(socket=self.control_socket), flush=True)
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, ended.set)
        status = await self._plugin_status_before(ended.wait())
        # Ctrl-C at a terminal ends both.
        if status and not ended.is_set():
            raise PluginEnded(status)
        print()

    async def start(self, title: str, *workloads: Workload) -> None:
        """Start pods as a runtime does for the kubelet."""
        for workload in workloads:
            pod = await self.runtime.run_pod(workload.pod)
            created = await self.runtime.create_container(pod.id, workload.container)
            await self.runtime.start_container(created.container.id)
            self.running.append(workload)
        await self.show(title)

    async def stop(self, title: str, workload: Workload) -> None:
        """Stop and remove a pod."""
        await self.runtime.stop_pod(workload.pod.id)
        await self.runtime.remove_pod(workload.pod.id)
        self.running.remove(workload)
        await self.show(title)

    async def show(self, title: str) -> None:
        """Print the pinning that the runtime has of its containers."""
        rows = (self._row(workload) for workload in self.running)
        print(f"{title}\n{format_placements(self.machine, rows)}\n", flush=True)
        if sys.stdout.isatty():
            await asyncio.sleep(_PAUSE)

    def _row(self, workload: Workload) -> DemoRow:
        message = self.runtime.world.containers[workload.container.id]
        cpu = message.linux.resources.cpu
        return DemoRow(
            name=workload.name,
            qos=workload.qos,
            asks=workload.asks,
            cpus=CpuSet.parse(cpu.cpus),
            mems=cpu.mems,
            exclusive=workload.qos is QosClass.GUARANTEED,
        )

    async def start_plugin(self) -> None:
        """Start the daemon in a process of its own."""
        self.plugin = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "nri_resmgr", "run", "--log-level", "warning"),
            *("--nri-socket", str(self.runtime.socket_path)),
            *("--host-root", str(self.root)),
            *("--run-dir", str(self.runtime.socket_path.parent / "run")),
            *("--state-dir", str(self.runtime.socket_path.parent / "state")),
            *("--control-socket", self.control_socket),
            # Its containers have no cgroups.
            *("--verify-interval", "0"),
            *("--apply-updates", "runtime"),
        )
        try:
            synchronized = self.runtime.synchronized(_PLUGIN, _LONGEST_WAIT)
            status = await self._plugin_status_before(synchronized)
        except TimeoutError:
            raise PluginTooSlow("register with the test runtime") from None
        if status is not None:
            raise PluginEnded(status)

    async def _plugin_status_before(
        self, awaited: Coroutine[Any, Any, object]
    ) -> int | None:
        """Wait; return the plugin's exit status if it ends first, otherwise None."""
        assert self.plugin is not None  # noqa: S101 - it was started
        ended = asyncio.create_task(self.plugin.wait())
        done = asyncio.create_task(awaited)
        try:
            await asyncio.wait((ended, done), return_when=asyncio.FIRST_COMPLETED)
            if done.done():
                await done
                return None
            return ended.result()
        finally:
            ended.cancel()
            done.cancel()

    async def end_plugin(self) -> None:
        """Kill the daemon, as in a crash."""
        if self.plugin is not None:
            with contextlib.suppress(ProcessLookupError):
                self.plugin.kill()
            await self.plugin.wait()
            # Until the runtime has noticed, it would still send requests to it.
            try:
                await self.runtime.gone(_PLUGIN, _LONGEST_WAIT)
            except TimeoutError:
                raise PluginTooSlow("leave the test runtime") from None
            self.plugin = None


def format_placements(machine: Machine, rows: Iterable[DemoRow]) -> str:
    """Format a table with a map of the machine's CPUs, node by node.

    >>> from nri_resmgr.topology.synthetic import parse_spec
    >>> row = DemoRow("db", "Guaranteed", "1 CPU", CpuSet.of(1), "0", exclusive=True)
    >>> print(format_placements(parse_spec("1s1n2c1t"), [row]))
    container  qos         asks   memory  CPUs  map
    db         Guaranteed  1 CPU  0       1     ·█
    """
    header = ("container", "qos", "asks", "memory", "CPUs", "map")
    return format_table(header, (_cells(machine, row) for row in rows))


def _cells(machine: Machine, row: DemoRow) -> tuple[str, ...]:
    drawn = EXCLUSIVE if row.exclusive else SHARED
    cpus = row.cpus or machine.online  # not pinned: anywhere
    groups = (
        "".join(drawn if cpu in cpus else FREE for cpu in node)
        for node in machine.node_cpus
    )
    return (
        row.name,
        row.qos,
        row.asks,
        row.mems,
        str(row.cpus) or "any",
        " ".join(groups),
    )
