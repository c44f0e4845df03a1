"""The irqbalance of a host: found, asked, and told what to leave alone."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from itertools import chain
from typing import Final

import msgspec

from nri_resmgr.classes.irq.irqbalance import (
    ASK,
    Bans,
    bans_of_process,
    bans_of_reply,
    requests_for,
)
from nri_resmgr.host.paths import CPU_ROOT
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.host.tree import Tree, UnreadableHostFile
from nri_resmgr.values import CpuSet, InputError

_NAME: Final = "irqbalance"
_FOLDER: Final = "/run/irqbalance"
_SOCKET: Final = ".sock"
_PATIENCE: Final = 1.0  # seconds; it answers between two rounds of work

MARK: Final = "irqbalance"
"""In the state directory: the process that was told something."""


class Irqbalance(msgspec.Struct, frozen=True):
    """A running irqbalance.

    Attributes:
        pid: Its process.
        own: What it was started with.
        socket: Where it takes requests, on the host; empty if it does not, or if
            what it was started with is kept from us.
    """

    pid: int
    own: Bans
    socket: str = ""


class Told(msgspec.Struct, frozen=True):
    """How telling irqbalance went.

    Attributes:
        pid: Whom; 0 if none runs.
        untold: Numbers of interrupts that it still moves.
        why: Why it could not be told; empty if it could.
    """

    pid: int = 0
    untold: tuple[int, ...] = ()
    why: str = ""


def find_irqbalance(tree: Tree) -> Irqbalance | None:
    """Look for a running irqbalance."""
    sockets = {
        name.removeprefix(_NAME).removesuffix(_SOCKET): f"{_FOLDER}/{name}"
        for name in tree.names(_FOLDER)
    }
    for pid in chain(sockets, _processes(tree)):
        if pid.isdecimal() and _text(tree, f"/proc/{pid}/comm") == _NAME:
            return _process(tree, pid, sockets.get(pid, ""))
    return None


def _process(tree: Tree, pid: str, place: str) -> Irqbalance:
    arguments = _text(tree, f"/proc/{pid}/cmdline")
    try:
        environ = tree.read(f"/proc/{pid}/environ") or ""
    except UnreadableHostFile:
        # What it was told before us would be lost with what we tell it.
        environ = place = ""
    return Irqbalance(
        int(pid), bans_of_process(environ, arguments, _quiet(tree)), place
    )


def ask_irqbalance(tree: Tree, found: Irqbalance) -> Bans | None:
    """Ask what it leaves alone now, by whomever it was told; None if it is silent."""
    if not found.socket:
        return None
    try:
        return bans_of_reply(_request(tree, found, ASK))
    except OSError:
        return None


class IrqbalanceLine:
    """Tells irqbalance what to leave alone, and takes it back.

    It forgets all with its process, and is told again. What it was started with is
    never taken away from it. Calls wait for it up to a second: make them in a thread.

    Args:
        tree: The host.
        state: Where it is noted that it was told something, for the next process.
    """

    def __init__(self, tree: Tree, state: StateDir) -> None:
        self._tree = tree
        self._state = state
        self._told: tuple[int, Bans] | None = None

    def tell(self, wanted: Bans) -> Told:
        """Have some things left alone, besides what it leaves alone by itself.

        Raises:
            StateUnusable: It cannot be noted; then it is not told.
        """
        found = find_irqbalance(self._tree)
        mark = self._state.read(MARK)
        if found is None:
            self._forget(mark)
            return Told()
        bans = found.own | wanted
        requests, untold = requests_for(bans, found.own)
        if self._told == (found.pid, bans):
            return Told(found.pid, untold)
        if mark != f"{found.pid}" and wanted:
            self._state.write(MARK, f"{found.pid}")
        elif mark != f"{found.pid}":
            self._forget(mark)  # that one has ended, with what it was told
            return Told(found.pid)
        if why := self._send(found, requests):
            return Told(found.pid, tuple(sorted(wanted.interrupts)), why)
        self._told = (found.pid, bans)
        if not wanted:
            self._forget(mark)
        return Told(found.pid, untold)

    def restore(self) -> Told:
        """Take back what it was told.

        Raises:
            StateUnusable: What is noted cannot be read or removed.
        """
        return self.tell(Bans())

    def _send(self, found: Irqbalance, requests: tuple[str, ...]) -> str:
        if not found.socket:
            return "it takes no requests"
        try:
            for request in requests:
                _request(self._tree, found, request)
        except OSError as error:
            return str(error.strerror or error).lower()
        return ""

    def _forget(self, mark: str | None) -> None:
        self._told = None
        if mark is not None:
            self._state.remove(MARK)


def _request(tree: Tree, found: Irqbalance, text: str) -> str:
    """Send a request; return the reply, which is over when it hangs up."""
    with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as line:
        line.settimeout(_PATIENCE)
        line.connect(f"{tree.root}{found.socket}")
        line.sendall(text.encode())
        return b"".join(_chunks(line)).decode(errors="replace")


def _chunks(line: socket.socket) -> Iterator[bytes]:
    while chunk := line.recv(4096):
        yield chunk


def _processes(tree: Tree) -> Iterator[str]:
    """Yield what may be processes; there are thousands, so only if need be."""
    yield from tree.names("/proc")


def _quiet(tree: Tree) -> CpuSet:
    """Return the CPUs that the kernel was told to keep quiet."""
    found = CpuSet()
    for name in ("isolated", "nohz_full"):
        with contextlib.suppress(InputError):  # "(null)", where there are none
            found |= CpuSet.parse(_text(tree, f"{CPU_ROOT}/{name}"))
    return found


def _text(tree: Tree, path: str) -> str:
    try:
        return tree.read(path) or ""
    except UnreadableHostFile:
        return ""
