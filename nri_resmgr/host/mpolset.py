"""The program ``mpolset``, which sets a memory policy, as a file to mount."""

from __future__ import annotations

import contextlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from nri_resmgr.host.bounded import Bound, read_file
from nri_resmgr.host.resource_files import own_folder
from nri_resmgr.values import HostError

_MIB: Final = 1 << 20
# 0.7 MiB with glibc, which is linked statically.
_PROGRAM: Final = Bound(16 * _MIB, "mpolset", "check --mpolset")

_NAME: Final = "mpolset"
_NEW: Final = ".mpolset.new"
_EXECUTABLE: Final = 0o555
_MAGIC: Final = b"\x7fELF"
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(eq=False)
class MpolsetUnusable(HostError):
    """Containers cannot be started by ``mpolset``."""

    path: str
    why: str

    def __str__(self) -> str:
        return (
            f"mpolset, which sets memory policies here, cannot be used: {self.path}: "
            f"{self.why}; to help, build it (make mpolset), name it with --mpolset, "
            "and have --run-dir on a file system without noexec"
        )


class MpolsetProgram(msgspec.Struct, frozen=True):
    """The paths of the program, here and for the runtime.

    Attributes:
        source: Its path for this daemon, as in the image; empty for none.
        run_dir: The folder of the daemon that has the same path for the runtime.
        dry_run: Whether nothing may be written.
    """

    source: str = ""
    run_dir: str = ""
    dry_run: bool = False

    def place(self) -> str:
        """Return the path for the runtime, where the program is copied if it changed.

        Raises:
            MpolsetUnusable: It is not there, is no program, or cannot be copied to a
                place where programs run.
        """
        target = f"{self.run_dir.rstrip('/')}/{_NAME}"
        if not self.source:
            raise MpolsetUnusable("--mpolset", "is empty")
        if not self.run_dir:
            raise MpolsetUnusable("--run-dir", "is empty")
        path = self.source
        try:
            facts = Path(path).stat()
            if not stat.S_ISREG(facts.st_mode):
                raise MpolsetUnusable(path, "is not a file")
            if self.dry_run:
                return target
            path = target
            if not _is_copy(target, facts):
                self._copy(facts)
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else str(error)
            raise MpolsetUnusable(path, why) from error
        return target

    def _copy(self, facts: os.stat_result) -> None:
        content = read_file(Path(self.source), _PROGRAM)
        if not content.startswith(_MAGIC):
            raise MpolsetUnusable(self.source, "is not a program")
        Path(self.run_dir).mkdir(0o755, parents=True, exist_ok=True)
        if os.statvfs(self.run_dir).f_flag & os.ST_NOEXEC:
            raise MpolsetUnusable(self.run_dir, "its file system is mounted noexec")
        with own_folder(self.run_dir) as folder:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(_NEW, dir_fd=folder)  # of a process that was killed
            with os.fdopen(os.open(_NEW, _CREATE, 0o600, dir_fd=folder), "wb") as file:
                file.write(content)
                file.flush()
                os.fchmod(file.fileno(), _EXECUTABLE)
                os.utime(file.fileno(), ns=(facts.st_mtime_ns, facts.st_mtime_ns))
            # Containers that have the old one mounted keep it.
            os.rename(_NEW, _NAME, src_dir_fd=folder, dst_dir_fd=folder)


def _is_copy(target: str, facts: os.stat_result) -> bool:
    try:
        found = os.lstat(target)
    except FileNotFoundError:
        return False
    return stat.S_ISREG(found.st_mode) and (
        (found.st_size, found.st_mtime_ns, found.st_uid)
        == (facts.st_size, facts.st_mtime_ns, os.geteuid())
    )
