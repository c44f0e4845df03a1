"""Removal of what a containerd leaves behind: processes, mounts, cgroups, sockets."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.real_host.cgroups import Cgroup
from tests.real_host.containerd_config import Layout
from tests.real_host.patience import wait_until


def sweep(layout: Layout, cgroup_root: str) -> None:
    """Undo everything that a dead daemon's pods left on this machine.

    Raises:
        TooSlow: A process or a cgroup would not go away.
    """
    sockets = list(_shim_sockets(layout.state))
    # Shims first: they would report the end of containers and clean up meanwhile.
    wait_until(lambda: _kill([*shim_pids(layout)]), "the last shim to end")
    wait_until(lambda: _kill([*plugin_pids(layout)]), "the last plugin to end")
    wait_until(lambda: _kill([*_member_pids(cgroup_root)]), "the last process to end")
    for mount in reversed(list(_mounts_below(layout.folder))):
        subprocess.run(["umount", "--lazy", mount], check=True)
    wait_until(lambda: remove_cgroups(cgroup_root), f"cgroups {cgroup_root} to go")
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


def _member_pids(cgroup_root: str) -> Iterator[int]:
    for folder in Cgroup(cgroup_root).folders():
        for members in folder.rglob("cgroup.procs"):
            try:
                yield from map(int, members.read_text().split())
            except OSError:
                continue  # the runtime removed it meanwhile


def _kill(pids: list[int]) -> bool:
    """Send SIGKILL; return whether no process was left."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return not pids


def _mounts_below(folder: Path) -> Iterator[str]:
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        # Field 5 is the mount point (proc_pid_mountinfo(5)).
        point = line.split()[4]
        if point.startswith(f"{folder}/"):
            yield point


def remove_cgroups(cgroup_root: str) -> bool:
    """Remove the empty folders, innermost first; return whether all are removed."""
    for top in Cgroup(cgroup_root).folders():
        below = sorted((each for each in top.rglob("*") if each.is_dir()), reverse=True)
        for folder in (*below, top):
            try:
                folder.rmdir()
            except OSError:
                return False  # EBUSY until the kernel has let the last member go
    return True


def _shim_sockets(state: Path) -> Iterator[Path]:
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
