"""Finds the container runtime of a node by its process, socket or unit."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

import msgspec

from nri_resmgr.host.tree import HostTree, UnreadableHostFile
from nri_resmgr.values.errors import HostError, InputError

CONTAINERD: Final = "containerd"
CRIO: Final = "crio"

_NAMES: Final = (CONTAINERD, CRIO)
_SOCKET: Final = "/run/{0}/{0}.sock"
_UNIT: Final = "/etc/systemd/system/multi-user.target.wants/{}.service"
_NRI_SOCKET: Final = "/run/nri/nri.sock"  # also below /var
_LISTENING: Final = "00010000"  # linux/net.h, __SO_ACCEPTCON

# dockerd starts a containerd of its own, which no kubelet uses.
_OF_DOCKER: Final = "/docker/"


@dataclass(eq=False)
class NoRuntime(HostError):
    """The node has no runtime that we know."""

    def __str__(self) -> str:
        return (
            "no containerd and no CRI-O found, neither a process nor a socket nor an "
            "enabled unit; name one with --containerd or --crio"
        )


@dataclass(eq=False)
class TwoRuntimes(InputError):
    """The node has both runtimes."""

    containerd: str
    crio: str

    def __str__(self) -> str:
        return (
            f"both runtimes are here: containerd ({self.containerd}) and CRI-O "
            f"({self.crio}); say which one the kubelet uses: --containerd or --crio"
        )


class FoundRuntime(msgspec.Struct, frozen=True):
    """A runtime of the node.

    Attributes:
        name: ``containerd`` or ``crio``: the name of its process and its unit.
        why: How it was found.
        arguments: The arguments of its process, if it runs.
    """

    name: str
    why: str
    arguments: tuple[str, ...] = ()

    def flag(self, *names: str) -> str:
        """Return the value of a flag; empty if it is not given.

        >>> FoundRuntime("crio", "", ("-c", "/a", "--config-dir=/b")).flag("-c")
        '/a'
        """
        for word, after in pairwise((*self.arguments, "")):
            name, sign, value = word.partition("=")
            if name in names:
                return value if sign else after
        return ""


def find_runtime(tree: HostTree, chosen: str | None) -> FoundRuntime:
    """Find the runtime that the kubelet uses, or *chosen* if the command line has one.

    A process has precedence over a socket, which may be stale, and a socket over
    an enabled unit.

    Raises:
        NoRuntime: No runtime was found.
        TwoRuntimes: Both were found in the same way.
    """
    running = {one.name: one for one in _processes(tree)}
    if chosen:
        arguments = running[chosen].arguments if chosen in running else ()
        return FoundRuntime(chosen, "named on the command line", arguments)
    sockets, units = _existing(tree, "socket", _SOCKET), _existing(tree, "unit", _UNIT)
    for found in (running, sockets, units):
        if len(found) > 1:
            raise TwoRuntimes(found[CONTAINERD].why, found[CRIO].why)
        for one in found.values():
            return one
    raise NoRuntime


def is_nri_on(tree: HostTree) -> bool:
    """Return whether a process listens on the default NRI socket."""
    try:
        # Of process 1: this process may have another network namespace.
        text = tree.read("/proc/1/net/unix") or ""
    except UnreadableHostFile:
        return False
    rows = (line.split() for line in text.splitlines())
    return any(
        row[3:4] == [_LISTENING] and row[-1].endswith(_NRI_SOCKET) for row in rows
    )


def _processes(tree: HostTree) -> Iterator[FoundRuntime]:
    for pid in tree.names("/proc"):
        if not pid.isdecimal():
            continue
        name = tree.read(f"/proc/{pid}/comm")
        if name in _NAMES and _is_hosts(tree, pid):
            words = (tree.read(f"/proc/{pid}/cmdline") or "").split("\0")
            found = FoundRuntime(name, f"process {pid}", tuple(filter(None, words[1:])))
            if _OF_DOCKER not in found.flag("-c", "--config"):
                yield found


def _is_hosts(tree: HostTree, pid: str) -> bool:
    """Return whether a process is root's and does not run in a container."""
    proc = Path(f"{tree.root}/proc")
    try:
        if (proc / pid).stat().st_uid not in (0, os.geteuid()):
            return False
        namespace, first = ((proc / one / "ns/pid").readlink() for one in (pid, "1"))
    except OSError:  # not visible without root
        return True
    return namespace == first


def _existing(tree: HostTree, kind: str, pattern: str) -> dict[str, FoundRuntime]:
    paths = {name: pattern.format(name) for name in _NAMES}
    return {
        name: FoundRuntime(name, f"{kind} {path}")
        for name, path in paths.items()
        if os.path.lexists(tree.root + path)
    }
