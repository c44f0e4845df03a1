"""Removal of what killed runs of the tests left on this machine."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs
import pytest

from tests.real_host.cache import remove_parts
from tests.real_host.cgroups import folders_named
from tests.real_host.leftovers import shim_sockets
from tests.real_host.patience import TooSlow, wait_until
from tests.real_host.removal import (
    kill,
    member_pids,
    mounts,
    remove_cgroups,
    thaw,
    unmount_below,
)
from tests.real_host.runs import VARIABLE, Registration, Run, dead_runs, prefix_of

_TASKS: Final = "io.containerd.runtime.v2.task"


def begin_run(config: pytest.Config) -> None:
    """Remove what earlier runs left, and register this one.

    Workers, and runs that tests start, belong to the run that has begun.
    """
    if VARIABLE in os.environ:
        return
    # Pytest has no public name for its folder before the first test, and only that one
    # is removed by pytest when it is old.
    folder = config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # noqa: SLF001
    with dead_runs(folder.parent) as found:
        for run in found:
            try:
                done = str(sweep(run))
            except TooSlow as why:
                # The folder of a killed run stays, so that the next one tries again.
                done = f"not all could be removed: {why}"
            if done:
                config.get_terminal_writer().line(f"left by {run.folder}: {done}")
    remove_parts()
    registration = Registration(folder)
    config.add_cleanup(registration.end)
    os.environ[VARIABLE] = registration.run.name
    # So that what tests make beside their own folders is found, too.
    os.environ["TMPDIR"] = str(folder)
    tempfile.tempdir = None


@attrs.frozen
class Swept:
    """How much a run had left; empty as a text if that is nothing."""

    processes: int
    mounts: int
    cgroups: int
    sockets: int

    def __str__(self) -> str:
        counts = attrs.asdict(self).items()
        return ", ".join(f"{count} {name}" for name, count in counts if count)


def sweep(run: Run) -> Swept:
    """End all processes of a run that is dead, and remove all that it made.

    Raises:
        TooSlow: A process or a cgroup would not go away.
    """
    sockets = [one for one in shim_sockets_below(run.folder) if one.exists()]
    killed: set[int] = set()

    def cgroups() -> list[Path]:
        return folders_named(f"{prefix_of(run.name)}*")

    def ended() -> bool:
        thaw(cgroups())
        found = {*processes_of(run), *member_pids(cgroups())}
        killed.update(found)
        return kill(found)

    wait_until(ended, f"processes of {run.folder} to end")
    mounted, groups = unmount_below(run.folder), cgroups()
    wait_until(lambda: remove_cgroups(groups), f"cgroups of {run.folder} to go")
    for socket in sockets:
        socket.unlink(missing_ok=True)
    if not run.ended:
        shutil.rmtree(run.folder, ignore_errors=True)
    return Swept(len(killed), mounted, len(groups), len(sockets))


def processes_of(run: Run) -> Iterator[int]:
    """Processes that a run started, and those that they started."""
    marked = f"{VARIABLE}={run.name}".encode()
    place = _place(run.folder)
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environment = (process / "environ").read_bytes().split(b"\0")
            if marked in environment or _is_inside(process.name, run.folder, place):
                yield int(process.name)
        except OSError:
            continue  # it ended meanwhile


def _is_inside(process: str, folder: Path, place: tuple[str, str]) -> bool:
    """Whether a process sees a part of the folder at another path.

    Programs in containers and services of a systemd have an environment of their own,
    but mounts that nothing else has. A copy of our mounts is no sign.
    """
    namespace = Path("/proc", process, "ns", "mnt")
    if namespace.readlink() == Path("/proc/self/ns/mnt").readlink():
        return False
    return any(
        device == place[0]
        and root.startswith(f"{place[1]}/")
        and not point.startswith(f"{folder}/")
        for device, root, point in mounts(process)
    )


def _place(folder: Path) -> tuple[str, str]:
    """Return a folder's device and its path in that file system."""
    over = [
        (point, device, root)
        for device, root, point in mounts()
        if folder.is_relative_to(point)
    ]
    # The last one of several at a point covers the others.
    point, device, root = max(reversed(over), key=lambda one: len(one[0]))
    return device, str(Path(root, folder.relative_to(point)))


def shim_sockets_below(folder: Path) -> Iterator[Path]:
    """Sockets of the shims of all containerds below a folder."""
    for tasks in folder.rglob(_TASKS):
        yield from shim_sockets(tasks.parent)
