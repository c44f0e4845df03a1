"""Removal of processes, mounts and cgroups that nothing looks after any more."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path


def kill(pids: Iterable[int]) -> bool:
    """Send SIGKILL; return whether no process was left."""
    found = list(pids)
    for pid in found:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return not found


def member_pids(cgroups: Iterable[Path]) -> Iterator[int]:
    """Processes in cgroups and below them, but for those of another pid namespace."""
    for folder in cgroups:
        for members in folder.rglob("cgroup.procs"):
            try:
                found = map(int, members.read_text().split())
            except OSError:
                continue  # the runtime removed it meanwhile
            # Version 2 calls processes that are not visible here 0: as a target of
            # kill(2), that is all processes of our own group.
            yield from filter(None, found)


def thaw(cgroups: Iterable[Path]) -> None:
    """Let frozen processes run on, in cgroups and below them: version 1 kills none."""
    for top in cgroups:
        for name, text in (("freezer.state", "THAWED"), ("cgroup.freeze", "0")):
            for file in top.rglob(name):
                with suppress(OSError):
                    file.write_text(text)


def remove_cgroups(cgroups: Iterable[Path]) -> bool:
    """Remove the empty folders, innermost first; return whether all are removed."""
    for top in cgroups:
        below = sorted((each for each in top.rglob("*") if each.is_dir()), reverse=True)
        for folder in (*below, top):
            try:
                folder.rmdir()
            except FileNotFoundError:
                continue
            except OSError:
                return False  # EBUSY until the kernel has let the last member go
    return True


def unmount_below(folder: Path) -> int:
    """Unmount everything below a folder; return how much that was."""
    points = [point for _, _, point in mounts() if point.startswith(f"{folder}/")]
    for point in reversed(points):
        subprocess.run(["umount", "--lazy", point], check=True)
    return len(points)


def mounts(process: str = "self") -> Iterator[tuple[str, str, str]]:
    """Device, folder in its file system and mount point of what a process sees.

    Source:
        proc_pid_mountinfo(5).
    """
    text = Path("/proc", process, "mountinfo").read_text(errors="surrogateescape")
    for line in text.splitlines():
        _, _, device, root, point, *_ = line.split(" ")
        yield device, root, point
