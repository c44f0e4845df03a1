"""The runtime's files: read from the host, changed in one step, the original kept."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from nri_resmgr.cli.enable_runtime_errors import UnusableConfig
from nri_resmgr.runtimes.errors import NotToml
from nri_resmgr.runtimes.switch import Change, ConfigFile

_OTHERS_WRITE: Final = 0o022
_MODE: Final = 0o644
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LABEL: Final = "security.selinux"


class HostFolder:
    """The files of the host, by the paths that they have there.

    Args:
        root: Where the host's root is seen.
    """

    def __init__(self, root: str) -> None:
        self._root = os.path.realpath(root).rstrip("/")

    def read(self, path: str) -> ConfigFile | None:
        """Return a file; None if it is missing.

        Raises:
            UnusableConfig: It is no regular file, or leads out of the host.
            NotToml: It is not UTF-8.
        """
        real = os.path.realpath(self._root + path)
        if not real.startswith(f"{self._root}/"):
            raise UnusableConfig(path, "leads out of the host's root")
        with _telling(path):
            if not os.path.lexists(self._root + path):
                return None
            if not stat.S_ISREG(Path(real).stat().st_mode):
                raise UnusableConfig(path, "is no regular file")
            content = Path(real).read_bytes()
        try:
            return ConfigFile(path, content.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise NotToml(path, f"not UTF-8 at byte {error.start}") from None

    def glob(self, pattern: str) -> list[str]:
        """Return the files that a pattern takes, as Go's filepath.Glob does."""
        below = pattern.lstrip("/").replace("**", "*")
        with _telling(pattern):
            found = sorted(Path(self._root or "/").glob(below))
        return [str(path).removeprefix(self._root) for path in found]

    def below(self, folder: str) -> list[str]:
        """Return all files below a folder, in the order of Go's filepath.Walk."""
        walked = os.walk(self._root + folder)
        paths = [f"{where}/{name}" for where, _, names in walked for name in names]
        found = [path.removeprefix(self._root) for path in paths]
        return sorted(found, key=lambda path: path.split("/"))

    def judge(self, path: str) -> None:
        """See that a file, there or not, is for us alone to change.

        Raises:
            UnusableConfig: A part of its path is a link, or it or its folder is
                somebody else's, or others may write to it.
        """
        here = self._root + path
        if os.path.realpath(here) != here:
            raise UnusableConfig(
                path, f"is a link to {os.path.realpath(here)}; change that file by hand"
            )
        for one in (Path(here), Path(here).parent):
            with _telling(path), contextlib.suppress(FileNotFoundError):
                _judge(str(one).removeprefix(self._root) or "/", one.stat())

    def apply(self, change: Change, backup: str = "") -> None:
        """Write what a change says; whoever reads sees the old file or the new one.

        Args:
            change: What is to be.
            backup: What the original is to be called; nothing for files of ours. It
                is kept once, and never written again. Where it has the text that is
                to be, it is put back as it was.

        Raises:
            UnusableConfig: It cannot be written, or changed meanwhile.
        """
        self.judge(change.path)
        now = self.read(change.path)
        if (now and now.text) != change.before:
            raise UnusableConfig(change.path, "was changed meanwhile; try again")
        here, kept = Path(self._root + change.path), Path(self._root + backup)
        with _telling(change.path):
            if change.after is None:
                here.unlink()
            elif change.is_edit and self._is_kept(backup, change.after):
                kept.rename(here)
            else:
                draft = _draft(here, change.after)
                if change.is_edit and not os.path.lexists(kept):
                    # The file itself: bytes, owner, mode, times.
                    kept.hardlink_to(here)
                draft.rename(here)
            _sync(here.parent)

    def _is_kept(self, backup: str, text: str) -> bool:
        kept = self.read(backup)
        return kept is not None and kept.text == text


def _draft(here: Path, text: str) -> Path:
    here.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    # No pattern such as *.toml takes it. CRI-O reads whatever is in its folder; one
    # write makes it empty or whole, and it may read both.
    draft = here.with_name(f".{here.name}.nri-resmgr")
    draft.unlink(missing_ok=True)  # of one that was killed
    fd = os.open(draft, _NEW, 0o600)
    try:
        os.write(fd, text.encode())
        _like(fd, here)
        os.fsync(fd)
    finally:
        os.close(fd)
    return draft


def _like(fd: int, path: Path) -> None:
    """Give a file the owner, mode and SELinux label of another one, if there is one."""
    try:
        old = path.stat()
    except FileNotFoundError:
        os.fchmod(fd, _MODE)
        return
    os.fchown(fd, old.st_uid, old.st_gid)
    os.fchmod(fd, stat.S_IMODE(old.st_mode))
    with contextlib.suppress(OSError):  # there are no labels
        os.setxattr(fd, _LABEL, os.getxattr(path, _LABEL))


def _judge(path: str, found: os.stat_result) -> None:
    if found.st_uid != os.geteuid():
        why = f"belongs to user {found.st_uid}, not to {os.geteuid()}, who runs this"
        raise UnusableConfig(path, why)
    if stat.S_IMODE(found.st_mode) & _OTHERS_WRITE:
        raise UnusableConfig(path, f"can be written by others; chmod go-w {path}")


def _sync(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextlib.contextmanager
def _telling(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise UnusableConfig(path, f"cannot be used: {why}") from None
