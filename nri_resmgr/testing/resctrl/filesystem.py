"""A resctrl file system without the hardware, which behaves as the kernel's does."""

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
from nri_resmgr.testing.resctrl.lines import Refused
from nri_resmgr.testing.resctrl.listing import MONITORS, Folder, folders_of
from nri_resmgr.testing.resctrl.state import ROOT, Place, State

_MOUNT_POINT: Final = "/sys/fs/resctrl"
_VENDORS: Final = {"Intel": "GenuineIntel", "AMD": "AuthenticAMD"}


class Command(msgspec.Struct, frozen=True):
    """Something that a program did, or tried.

    Attributes:
        what: ``write``, ``mkdir`` or ``rmdir``.
        path: Where.
        text: What was written.
        locked: Whether the program had the lock.
    """

    what: str
    path: str
    text: str = ""
    locked: bool = False


class Resctrl:
    """Groups in memory, with the methods by which `RdtControl` uses the real ones.

    A plain directory takes any text and any number of groups. This one refuses what
    the kernel refuses, in its words, and moves threads.

    Attributes:
        state: What the kernel knows; tests may look, and change it as others would.
        commands: What was done to it.
        faults: To let some of that fail.
        broken: Errno by the path of files that cannot be read.
        locked_by_others: Whether nobody else gets the lock.
    """

    def __init__(self, hardware: Hardware | None = None) -> None:
        self.hardware = hardware or Hardware()
        self.root = _MOUNT_POINT
        self.state = State(self.hardware)
        self.commands: list[Command] = []
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

    def write(self, path: str, text: str) -> None:
        """Write a file of a group."""
        folder, _, name = path.rpartition("/")
        with self._command("write", path, text):
            place = self._place(folder)
            if place is None or name not in self._folders[folder]:
                raise Refused(errno.ENOENT)
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
                    raise Refused(errno.EACCES)

    def mkdir(self, path: str) -> None:
        """Make a group."""
        folder, _, name = path.rpartition("/")
        with self._command("mkdir", path):
            if "\n" in name:
                raise Refused(errno.EINVAL)
            if name in self._folders.get(folder, {}):
                raise Refused(errno.EEXIST)
            parent = self._place(folder.removesuffix(MONITORS).rstrip("/"))
            if not folder:
                self.state.make_group(name)
            elif folder.endswith(MONITORS) and parent is not None and not parent[1]:
                self.state.make_monitor(parent[0], name)
            else:
                known = folder in self._folders
                raise Refused(errno.EPERM if known else errno.ENOENT)

    def rmdir(self, path: str) -> None:
        """Remove a group; nothing keeps the kernel from that."""
        with self._command("rmdir", path):
            place = self._place(path)
            if place is None:
                known = path in self._folders
                raise Refused(errno.EPERM if known else errno.ENOENT)
            if place == ROOT:
                raise Refused(errno.EBUSY)
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
        """Start a thread, where its parent is; one of the system's without one."""
        self.state.threads[task] = self.state.threads.get(parent, ROOT)

    def end(self, task: int) -> None:
        """End a thread."""
        del self.state.threads[task]

    def count(self, folder: str, cache: int, event: str, value: int | str) -> None:
        """Let a counter of a group say something: a number, or ``Unavailable``."""
        place = self._place(folder)
        if place is None:
            raise _error(errno.ENOENT)
        self.state.counts[place, cache, event] = value

    def picture(self) -> dict[str, str]:
        """Return all that a program can change, by path: to compare as a whole."""
        shown = ("schemata", "mode", "tasks", "cpus_list")
        return {
            f"{folder}/{name}".lstrip("/"): reader()
            for folder, files in self._folders.items()
            for name, reader in files.items()
            if name in shown and reader is not None
        }

    def write_out(self, root: Path) -> None:
        """Write everything as plain files below a folder that stands for a host.

        Nothing refuses anything there. The table of mounts and ``/proc/cpuinfo`` are
        written, too.
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
        self.commands.append(Command(what, path, text, self._locked))
        self._status = "ok"
        self.faults.step()
        try:
            yield
        except Refused as refusal:
            self._status = refusal.status
            raise _error(refusal.number) from refusal
        if what != "write":
            self._index = None

    def _place(self, folder: str) -> Place | None:
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
