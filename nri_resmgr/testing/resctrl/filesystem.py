"""A resctrl file system in memory with the behaviour of the kernel's."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from nri_resmgr.testing.resctrl.faults import Faults
from nri_resmgr.testing.resctrl.hardware import Hardware
from nri_resmgr.testing.resctrl.lines import KernelRefusal
from nri_resmgr.testing.resctrl.listing import MONITORS, Folder, folders_of
from nri_resmgr.testing.resctrl.state import ROOT, GroupKey, State

_MOUNT_POINT: Final = "/sys/fs/resctrl"
_VENDORS: Final = {"Intel": "GenuineIntel", "AMD": "AuthenticAMD"}


class Operation(msgspec.Struct, frozen=True):
    """An operation that a program attempted.

    Attributes:
        what: ``write``, ``mkdir`` or ``rmdir``.
        locked: Whether the program held the lock.
    """

    what: str
    path: str
    text: str = ""
    locked: bool = False


class Resctrl:
    """A simulated resctrl file system with the operations that `RdtControl` uses.

    Unlike a plain directory it rejects what the kernel rejects, with the same messages,
    and moves threads.

    Attributes:
        state: Groups and threads; tests may read and change them.
        broken: Errno by path of files that cannot be read.
        locked_by_others: Whether another program holds the lock.
    """

    def __init__(self, hardware: Hardware | None = None) -> None:
        self.hardware = hardware or Hardware()
        self.root = _MOUNT_POINT
        self.state = State(self.hardware)
        self.commands: list[Operation] = []
        self.faults = Faults()
        self.broken: dict[str, int] = {}
        self.locked_by_others = False
        self._locked = False
        self._status = "ok"
        self._index: Mapping[str, Folder] | None = None

    def read(self, path: str) -> str:
        """Read a file."""
        folder, _, name = path.rpartition("/")
        if path in self.broken:
            raise _error(self.broken[path])
        files = self._folders.get(folder)
        if files is None or name not in files:
            raise _error(errno.ENOENT if self._is_folder(folder) else errno.ENOTDIR)
        reader = files[name]
        if reader is None:
            raise _error(errno.EISDIR)
        return reader()

    def names(self, path: str) -> tuple[str, ...]:
        """List a folder."""
        if path in self.broken:
            raise _error(self.broken[path])
        if path not in self._folders:
            folder, _, name = path.rpartition("/")
            is_file = name in self._folders.get(folder, {})
            raise _error(errno.ENOTDIR if is_file else errno.ENOENT)
        return tuple(sorted(self._folders[path]))

    def exists(self, path: str) -> bool:
        """Look for a file or folder."""
        folder, _, name = path.rpartition("/")
        for one in (path, folder):
            if one in self.broken:
                raise _error(self.broken[one])
        return path in self._folders or name in self._folders.get(folder, {})

    def write(self, path: str, text: str) -> None:
        """Write a file of a group."""
        folder, _, name = path.rpartition("/")
        with self._command("write", path, text):
            place = self._place(folder)
            if place is None or name not in self._folders[folder]:
                raise KernelRefusal(errno.ENOENT)
            group = self.state.groups[place[0]]
            match name:
                case "tasks":
                    self.state.move(place, text)
                case "schemata":
                    self.state.set_schemata(place[0], text)
                case "mode":
                    self.state.set_mode(place[0], text.strip())
                case "cpus_list" if not place[1]:
                    group.cpus = text.strip()
                case _:
                    raise KernelRefusal(errno.EACCES)

    def mkdir(self, path: str) -> None:
        """Create a group."""
        folder, _, name = path.rpartition("/")
        with self._command("mkdir", path):
            if "\n" in name:
                raise KernelRefusal(errno.EINVAL)
            if name in self._folders.get(folder, {}):
                raise KernelRefusal(errno.EEXIST)
            parent = self._place(folder.removesuffix(MONITORS).rstrip("/"))
            if not folder:
                self.state.make_group(name)
            elif folder.endswith(MONITORS) and parent is not None and not parent[1]:
                self.state.make_monitor(parent[0], name)
            else:
                known = folder in self._folders
                raise KernelRefusal(errno.EPERM if known else errno.ENOENT)

    def rmdir(self, path: str) -> None:
        """Remove a group; the kernel never refuses that."""
        with self._command("rmdir", path):
            place = self._place(path)
            if place is None:
                known = path in self._folders
                raise KernelRefusal(errno.EPERM if known else errno.ENOENT)
            if place == ROOT:
                raise KernelRefusal(errno.EBUSY)
            if place[1]:
                self.state.remove_monitor(*place)
            else:
                self.state.remove_group(place[0])

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Take the lock."""
        if self.locked_by_others or self._locked:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        self._locked = True
        try:
            yield
        finally:
            self._locked = False

    def start(self, task: int, parent: int = 0) -> None:
        """Start a thread in its parent's group; in the root group without a parent."""
        self.state.threads[task] = self.state.threads.get(parent, ROOT)

    def end(self, task: int) -> None:
        """End a thread."""
        del self.state.threads[task]

    def count(self, folder: str, cache: int, event: str, value: int | str) -> None:
        """Set a counter of a group to a number, or a word such as ``Unavailable``."""
        place = self._place(folder)
        if place is None:
            raise _error(errno.ENOENT)
        self.state.counts[place, cache, event] = value

    def picture(self) -> dict[str, str]:
        """Return the texts of all files that a program can change, by path."""
        shown = ("schemata", "mode", "tasks", "cpus_list")
        return {
            f"{folder}/{name}".lstrip("/"): reader()
            for folder, files in self._folders.items()
            for name, reader in files.items()
            if name in shown and reader is not None
        }

    def write_out(self, root: Path) -> None:
        """Write everything as plain files below a folder that serves as host root.

        The mount table and ``/proc/cpuinfo`` are written, too.
        """
        for folder, files in self._folders.items():
            place = root / self.root.lstrip("/") / folder
            place.mkdir(parents=True, exist_ok=True)
            for name, reader in files.items():
                if reader is not None:
                    (place / name).write_text(reader())
        proc = root / "proc"
        proc.mkdir(exist_ok=True)
        options = ",".join(["rw", "relatime", *sorted(self.hardware.options)])
        row = f"resctrl {self.root} resctrl {options} 0 0\n"
        (proc / "mounts").write_text(f"proc /proc proc rw 0 0\n{row}")
        throttle = self.hardware.throttle
        vendor = _VENDORS[throttle.kind if throttle else "Intel"]
        (proc / "cpuinfo").write_text(f"processor\t: 0\nvendor_id\t: {vendor}\n")

    @contextlib.contextmanager
    def _command(self, what: str, path: str, text: str = "") -> Iterator[None]:
        self.commands.append(Operation(what, path, text, self._locked))
        self._status = "ok"
        self.faults.step()
        try:
            yield
        except KernelRefusal as refusal:
            self._status = refusal.status
            raise _error(refusal.number) from refusal
        if what != "write":
            self._index = None

    def _place(self, folder: str) -> GroupKey | None:
        group, monitor = folder, ""
        if folder.startswith(f"{MONITORS}/") or f"/{MONITORS}/" in folder:
            group, _, monitor = folder.rpartition("/")
            group = group.removesuffix(MONITORS).rstrip("/")
        known = self.state.groups.get(group)
        if known is None or (monitor and monitor not in known.monitors):
            return None
        return group, monitor

    def _is_folder(self, folder: str) -> bool:
        parent, _, name = folder.rpartition("/")
        return folder in self._folders or name not in self._folders.get(parent, {})

    @property
    def _folders(self) -> Mapping[str, Folder]:
        if self._index is None:
            self._index = folders_of(self.state, lambda: f"{self._status}\n")
        return self._index


def _error(number: int) -> OSError:
    return OSError(number, os.strerror(number))
