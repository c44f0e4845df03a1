"""Which runtime the node has, and how that is known."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Final

import msgspec

from nri_resmgr.cli.enable_runtime_errors import NoRuntime, TwoRuntimes
from nri_resmgr.host.tree import HostTree, UnreadableHostFile

CONTAINERD: Final = "containerd"
CRIO: Final = "crio"

_NAMES: Final = (CONTAINERD, CRIO)
_NRI_SOCKET: Final = "/run/nri/nri.sock"  # with or without /var before
_LISTENING: Final = "00010000"  # linux/net.h, __SO_ACCEPTCON

# dockerd starts a containerd of its own, which no kubelet talks to.
_OF_DOCKER: Final = "/docker/"


class FoundRuntime(msgspec.Struct, frozen=True):
    """A runtime of the node.

    Attributes:
        name: ``containerd`` or ``crio``, as its process and its unit are called.
        why: How it is known.
        arguments: Those of its process, if it runs.
    """

    name: str
    why: str
    arguments: tuple[str, ...] = ()

    def flag(self, *names: str) -> str:
        """Return the value of a flag; nothing if it is not given.

        >>> FoundRuntime("crio", "", ("-c", "/a", "--config-dir=/b")).flag("-c")
        '/a'
        """
        for word, after in pairwise((*self.arguments, "")):
            name, sign, value = word.partition("=")
            if name in names:
                return value if sign else after
        return ""


def find_runtime(tree: HostTree, asked: str | None) -> FoundRuntime:
    """Find the runtime that the kubelet uses.

    What runs goes before a socket, which may be an old one, and that before an
    enabled unit.

    Args:
        tree: The host's files.
        asked: The user's word on it, if there is one.

    Raises:
        NoRuntime: There is no sign of any.
        TwoRuntimes: The best sign is there for both.
    """
    running = {one.name: one for one in _processes(tree)}
    if asked:
        arguments = running[asked].arguments if asked in running else ()
        return FoundRuntime(asked, "named on the command line", arguments)
    for found in (running, _sockets(tree), _units(tree)):
        if len(found) > 1:
            raise TwoRuntimes(found[CONTAINERD].why, found[CRIO].why)
        for one in found.values():
            return one
    raise NoRuntime


def is_nri_on(tree: HostTree) -> bool:
    """Tell whether somebody listens for plugins where runtimes do by default."""
    try:
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
    """Tell a runtime from one in a container, and from anybody's program so called."""
    proc = Path(f"{tree.root}/proc")
    try:
        if (proc / pid).stat().st_uid not in (0, os.geteuid()):
            return False
        own, first = ((proc / one / "ns/pid").readlink() for one in (pid, "1"))
    except OSError:  # not for us to see
        return True
    return own == first


def _sockets(tree: HostTree) -> Mapping[str, FoundRuntime]:
    paths = {name: f"/run/{name}/{name}.sock" for name in _NAMES}
    return _existing(tree, paths, "socket")


def _units(tree: HostTree) -> Mapping[str, FoundRuntime]:
    folder = "/etc/systemd/system/multi-user.target.wants"
    return _existing(
        tree, {name: f"{folder}/{name}.service" for name in _NAMES}, "unit"
    )


def _existing(
    tree: HostTree, paths: Mapping[str, str], kind: str
) -> Mapping[str, FoundRuntime]:
    return {
        name: FoundRuntime(name, f"{kind} {path}")
        for name, path in paths.items()
        if os.path.lexists(tree.root + path)
    }
