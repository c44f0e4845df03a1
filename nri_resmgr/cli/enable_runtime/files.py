"""The runtime's files: read from the host, and replaced atomically with a backup."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nri_resmgr.host.bounded import DOCUMENT, read_file, reason
from nri_resmgr.runtimes.errors import NotToml
from nri_resmgr.runtimes.switch import ConfigFile, FileChange
from nri_resmgr.values.errors import HostError

_OTHERS_WRITE: Final = 0o022
_MODE: Final = 0o644
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LABEL: Final = "security.selinux"


@dataclass(eq=False)
class UnusableConfig(HostError):
    """A file of the runtime cannot be read or written, or others can change it."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"{self.path} {self.why}"


class HostFolder:
    """The files of the host, by their paths on the host.

    Args:
        root: Where the host's root is mounted.

    Attributes:
        root: The same; empty for the root of this system.
    """

    def __init__(self, root: str) -> None:
        self.root = os.path.realpath(root).rstrip("/")

    def read(self, path: str) -> ConfigFile | None:
        """Return a file; None if it is missing.

        Raises:
            UnusableConfig: It is not a regular file, or leads out of the host.
            NotToml: It is not UTF-8.
        """
        real = os.path.realpath(self.root + path)
        if not real.startswith(f"{self.root}/"):
            raise UnusableConfig(path, "leads out of the host's root")
        with _usable(path):
            if not os.path.lexists(self.root + path):
                return None
            if not stat.S_ISREG(Path(real).stat().st_mode):
                raise UnusableConfig(path, "is not a regular file")
            content = read_file(Path(real), DOCUMENT)
        try:
            return ConfigFile(path, content.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise NotToml(path, f"not UTF-8 at byte {error.start}") from None

    def glob(self, pattern: str) -> list[str]:
        """Return the files that match a pattern, as Go's filepath.Glob does."""
        below = pattern.lstrip("/").replace("**", "*")
        with _usable(pattern):
            found = sorted(Path(self.root or "/").glob(below))
        return [str(path).removeprefix(self.root) for path in found]

    def below(self, folder: str) -> list[str]:
        """Return all files below a folder, in the order of Go's filepath.Walk."""
        walked = os.walk(self.root + folder)
        paths = [f"{where}/{name}" for where, _, names in walked for name in names]
        found = [path.removeprefix(self.root) for path in paths]
        return sorted(found, key=lambda path: path.split("/"))

    def check(self, path: str) -> None:
        """Check that only this user can change a file, which may be missing.

        Raises:
            UnusableConfig: A part of its path is a link, or the file or its folder has
                another owner or is writable by others.
        """
        here = self.root + path
        if os.path.realpath(here) != here:
            raise UnusableConfig(
                path, f"is a link to {os.path.realpath(here)}; change that file by hand"
            )
        for one in (Path(here), Path(here).parent):
            with _usable(path), contextlib.suppress(FileNotFoundError):
                _check_owner(str(one).removeprefix(self.root) or "/", one.stat())

    def apply(self, change: FileChange, backup: str = "") -> None:
        """Apply a change; readers see either the old file or the new one.

        The original of an edited file is kept at *backup*, which is written once and
        never overwritten. If it has the new text, it is renamed to the file again.

        Raises:
            UnusableConfig: It cannot be written, or was changed in the meantime.
        """
        self.check(change.path)
        now = self.read(change.path)
        if (now and now.text) != change.before:
            raise UnusableConfig(change.path, "was changed in the meantime; try again")
        here, kept = Path(self.root + change.path), Path(self.root + backup)
        original = self.read(backup) if change.is_edit else None
        with _usable(change.path):
            if change.after is None:
                here.unlink()
            elif original and original.text == change.after:
                kept.rename(here)
            else:
                draft = _draft(here, change.after)
                if change.is_edit and not os.path.lexists(kept):
                    # A link keeps the file itself: bytes, owner, mode, times.
                    kept.hardlink_to(here)
                draft.rename(here)
            _sync(here.parent)


def _draft(here: Path, text: str) -> Path:
    here.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    # No pattern such as *.toml matches the name. CRI-O reads all files of its folder;
    # after a single write the draft is empty or whole, and it may read both.
    draft = here.with_name(f".{here.name}.nri-resmgr")
    draft.unlink(missing_ok=True)  # left by a killed process
    # Private until it has the owner and mode of the original.
    fd = os.open(draft, _NEW, 0o600)
    try:
        os.write(fd, text.encode())
        _copy_metadata(fd, here)
        os.fsync(fd)
    finally:
        os.close(fd)
    return draft


def _copy_metadata(fd: int, path: Path) -> None:
    """Copy owner, mode and SELinux label of *path*, if it exists."""
    try:
        old = path.stat()
    except FileNotFoundError:
        os.fchmod(fd, _MODE)
        return
    os.fchown(fd, old.st_uid, old.st_gid)
    os.fchmod(fd, stat.S_IMODE(old.st_mode))
    with contextlib.suppress(OSError):  # no SELinux
        os.setxattr(fd, _LABEL, os.getxattr(path, _LABEL))


def _check_owner(path: str, found: os.stat_result) -> None:
    if found.st_uid != os.geteuid():
        why = f"belongs to user {found.st_uid}; run this command as that user"
        raise UnusableConfig(path, why)
    if stat.S_IMODE(found.st_mode) & _OTHERS_WRITE:
        raise UnusableConfig(path, f"is writable by others; run chmod go-w {path}")


def _sync(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextlib.contextmanager
def _usable(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UnusableConfig(path, f"cannot be used: {reason(error)}") from None
