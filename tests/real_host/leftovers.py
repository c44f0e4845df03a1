"""Removal of what a containerd leaves behind: processes, mounts, cgroups, sockets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from tests.real_host.cgroups import Cgroup
from tests.real_host.containerd_config import Layout
from tests.real_host.patience import wait_until
from tests.real_host.removal import kill, member_pids, remove_cgroups, unmount_below


def sweep(layout: Layout, cgroup_root: str) -> None:
    """Undo everything that a dead daemon's pods left on this machine.

    Raises:
        TooSlow: A process or a cgroup would not go away.
    """
    sockets = list(shim_sockets(layout.state))
    cgroups = Cgroup(cgroup_root).folders
    # Shims first: they would report the end of containers and clean up meanwhile.
    wait_until(lambda: kill([*shim_pids(layout)]), "the last shim to end")
    wait_until(lambda: kill([*plugin_pids(layout)]), "the last plugin to end")
    wait_until(lambda: kill([*member_pids(cgroups())]), "the last process to end")
    unmount_below(layout.folder)
    wait_until(lambda: remove_cgroups(cgroups()), f"cgroups {cgroup_root} to go")
    for socket in sockets:
        socket.unlink(missing_ok=True)


def shim_pids(layout: Layout) -> Iterator[int]:
    """Shims that serve this daemon, found by the address in their arguments."""
    address = str(layout.cri_socket).encode()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            program, *args = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue  # it ended meanwhile
        if b"containerd-shim" in program and address in args:
            yield int(process.name)


def plugin_pids(layout: Layout) -> Iterator[int]:
    """Plugins that this daemon launched, found by environment and directory.

    They outlive a daemon that dies.
    """
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environment = (process / "environ").read_bytes().split(b"\0")
            directory = (process / "cwd").readlink()
        except OSError:
            continue  # it ended meanwhile
        if b"NRI_PLUGIN_SOCKET=3" in environment and directory == layout.folder:
            yield int(process.name)


def shim_sockets(state: Path) -> Iterator[Path]:
    """Sockets below ``/run/containerd/s``, a folder that all daemons share."""
    for bundle in state.glob("io.containerd.runtime.v2.task/k8s.io/*"):
        for name in ("address", "bootstrap.json"):
            path = bundle / name
            if path.exists():
                yield Path(_address(path.read_text()).removeprefix("unix://"))


def _address(text: str) -> str:
    """Read either form of a bundle's address: 1.7's bare text, 2.x's JSON."""
    if not text.startswith("{"):
        return text.strip()
    address: str = json.loads(text)["address"]
    return address
