"""Finds irqbalance, reads its bans, and sends it ours."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from itertools import chain
from typing import Final

import msgspec

from nri_resmgr.classes.irq.irqbalance import (
    Bans,
    bans_of_process,
    requests_for,
)
from nri_resmgr.host.bounded import IRQBALANCE_REPLY, read_whole, reason
from nri_resmgr.host.fields import text_or_nothing
from nri_resmgr.host.paths import CPU_ROOT
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.host.tree import Tree, UnreadableHostFile
from nri_resmgr.values import CpuSet, InputError

_NAME: Final = "irqbalance"
_FOLDER: Final = "/run/irqbalance"
_SOCKET: Final = ".sock"
_TIMEOUT: Final = 1.0  # seconds; irqbalance replies between two of its rounds

MARK: Final = "irqbalance"
"""File in the state directory with the pid of the irqbalance that has our bans."""


class Irqbalance(msgspec.Struct, frozen=True):
    """A running irqbalance.

    Attributes:
        own: Bans of its command line and environment.
        socket: Path of its control socket on the host; empty if there is none, or if
            its own bans cannot be read.
    """

    pid: int
    own: Bans
    socket: str = ""


class IrqbalanceResult(msgspec.Struct, frozen=True):
    """Result of sending bans to irqbalance.

    Attributes:
        pid: Process id; 0 if none runs.
        unbanned: Numbers of interrupts that it still moves.
        why: Why the bans could not be sent; empty if they were.
    """

    pid: int = 0
    unbanned: tuple[int, ...] = ()
    why: str = ""


def find_irqbalance(tree: Tree) -> Irqbalance | None:
    """Find a running irqbalance."""
    sockets = {
        name.removeprefix(_NAME).removesuffix(_SOCKET): f"{_FOLDER}/{name}"
        for name in tree.names(_FOLDER)
    }
    for pid in chain(sockets, _processes(tree)):
        if pid.isdecimal() and text_or_nothing(tree, f"/proc/{pid}/comm") == _NAME:
            return _process(tree, pid, sockets.get(pid, ""))
    return None


def _process(tree: Tree, pid: str, place: str) -> Irqbalance:
    arguments = text_or_nothing(tree, f"/proc/{pid}/cmdline")
    try:
        environ = tree.read(f"/proc/{pid}/environ") or ""
    except UnreadableHostFile:
        # Requests replace its own bans, which must therefore be known.
        environ = place = ""
    return Irqbalance(
        int(pid), bans_of_process(environ, arguments, _quiet(tree)), place
    )


class IrqbalanceClient:
    """Sends bans of CPUs and interrupts to irqbalance, and removes them.

    A restarted irqbalance gets them again. Its own bans always stay. Calls wait up to a
    second for a reply: make them in a thread.

    The state directory keeps which process has our bans, so that the next daemon can
    remove them.
    """

    def __init__(self, tree: Tree, state: StateDir) -> None:
        self._tree = tree
        self._state = state
        self._last_sent: tuple[int, Bans] | None = None

    def send_bans(self, wanted: Bans) -> IrqbalanceResult:
        """Send bans, in addition to irqbalance's own ones.

        Raises:
            StateUnusable: The pid cannot be saved; nothing was sent.
        """
        found = find_irqbalance(self._tree)
        mark = self._state.read(MARK)
        if found is None:
            self._forget(mark)
            return IrqbalanceResult()
        bans = found.own | wanted
        requests, unbanned = requests_for(bans, found.own)
        if self._last_sent == (found.pid, bans):
            return IrqbalanceResult(found.pid, unbanned)
        if mark != f"{found.pid}" and wanted:
            self._state.write(MARK, f"{found.pid}")
        elif mark != f"{found.pid}":
            self._forget(mark)  # the process with our bans has ended
            return IrqbalanceResult(found.pid)
        if why := self._send(found, requests):
            return IrqbalanceResult(found.pid, tuple(sorted(wanted.interrupts)), why)
        self._last_sent = (found.pid, bans)
        if not wanted:
            self._forget(mark)
        return IrqbalanceResult(found.pid, unbanned)

    def restore(self) -> IrqbalanceResult:
        """Remove our bans.

        Raises:
            StateUnusable: The saved pid cannot be read or removed.
        """
        return self.send_bans(Bans())

    def _send(self, found: Irqbalance, requests: tuple[str, ...]) -> str:
        if not found.socket:
            return "irqbalance has no control socket, or its own bans cannot be read"
        try:
            for request in requests:
                _request(self._tree, found, request)
        except OSError as error:
            return reason(error)
        return ""

    def _forget(self, mark: str | None) -> None:
        self._last_sent = None
        if mark is not None:
            self._state.remove(MARK)


def _request(tree: Tree, found: Irqbalance, text: str) -> str:
    """Send a request; return the reply, which ends with the connection."""
    with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as line:
        line.settimeout(_TIMEOUT)
        line.connect(f"{tree.root}{found.socket}")
        line.sendall(text.encode())
        return read_whole(line.recv, IRQBALANCE_REPLY).decode(errors="replace")


def _processes(tree: Tree) -> Iterator[str]:
    """Yield names of processes; a generator, as listing thousands is rarely needed."""
    yield from tree.names("/proc")


def _quiet(tree: Tree) -> CpuSet:
    """Return the CPUs of ``isolcpus=`` and ``nohz_full=``, which irqbalance skips."""
    found = CpuSet()
    for name in ("isolated", "nohz_full"):
        with contextlib.suppress(InputError):  # "(null)", where there are none
            found |= CpuSet.parse(text_or_nothing(tree, f"{CPU_ROOT}/{name}"))
    return found
