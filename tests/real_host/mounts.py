"""What a process may write to, by its mounts."""

from __future__ import annotations


def modes_of(mounts: str) -> dict[str, str]:
    """Return ``ro`` or ``rw`` by mount point, from the text of ``/proc/PID/mounts``."""
    rows = (line.split() for line in mounts.splitlines())
    return {where: options.split(",")[0] for _, where, _, options, *_ in rows}


def modes_of_cgroups(mounts: str) -> set[str]:
    """Return those of cgroups, of all hierarchies."""
    modes = modes_of(mounts).items()
    return {mode for where, mode in modes if where.startswith("/sys/fs/cgroup")}
