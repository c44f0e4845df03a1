"""The identity of a run of the tests, by which the next one finds what it left.

A run that is killed cleans up nothing. So each run has a random name, which is in the
environment of all its processes and in the names of its cgroups, and a temporary
folder, below which all its files and mounts are. The folder has a file with the name,
which is locked as long as the run lives.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

import attrs

VARIABLE: Final = "NRI_TEST_RUN"
"""Has the name. Without our prefix, which tests remove from the environment."""

_FILE: Final = ".run"
_ENDED: Final = " ended"


@attrs.frozen
class Run:
    """A run of the tests.

    Attributes:
        name: Of no other run.
        folder: Pytest's base of temporary folders.
        ended: Whether it came to its end, so that its folder is pytest's.
    """

    name: str
    folder: Path
    ended: bool = False


def own_name(purpose: str) -> str:
    """Return a name for a cgroup of this process."""
    return f"{prefix_of(os.environ.get(VARIABLE, 'alone'))}{purpose}-{os.getpid()}"


def prefix_of(name: str) -> str:
    """Return how the names of a run's cgroups begin."""
    return f"nri-resmgr-{name}-"


def own_variables() -> dict[str, str]:
    """Return the environment of a process that shall have nothing else of ours."""
    return {name: os.environ[name] for name in (VARIABLE,) if name in os.environ}


class Registration:
    """The locked file of a live run, until `end`."""

    def __init__(self, folder: Path) -> None:
        name = secrets.token_hex(4)
        self.run = Run(name, folder)
        # Locked before it has its name: a file without a lock is a dead run's.
        new = folder / f"{_FILE}.new"
        self._file: IO[str] = new.open("w")
        _lock(self._file)
        # A forked child would have the lock after the run's end.
        os.register_at_fork(after_in_child=self._file.close)
        self._file.write(name)
        self._file.flush()
        new.rename(folder / _FILE)

    def end(self) -> None:
        """Keep the folder for the analysis of a failed test; pytest removes it later.

        What a test or an interrupted run left is removed by the next run all the same.
        """
        self._file.write(_ENDED)
        self._file.close()


@contextmanager
def dead_runs(parent: Path) -> Iterator[list[Run]]:
    """Find runs that have ended or were killed, each of them once.

    No other process finds the same meanwhile. What has ended is not found again.

    Args:
        parent: Of their folders.
    """
    opened = []
    try:
        dead = []
        for path in sorted(parent.glob(f"pytest-*[0-9]/{_FILE}")):
            try:
                file = path.open()
            except FileNotFoundError:
                continue  # the run has ended meanwhile
            opened.append(file)
            try:
                _lock(file)
            except BlockingIOError:
                continue  # it lives
            if os.fstat(file.fileno()).st_nlink:  # not removed meanwhile
                text = file.read()
                ended = text.endswith(_ENDED)
                dead.append(Run(text.removesuffix(_ENDED), path.parent, ended))
        yield dead
        for run in dead:
            if run.ended:
                (run.folder / _FILE).unlink(missing_ok=True)
    finally:
        for file in opened:
            file.close()


def _lock(file: IO[str]) -> None:
    # Not lockf(3): the lock would end when anything in the process reads the file.
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
