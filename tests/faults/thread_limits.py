"""Limits on the threads of a daemon, which hold for nothing else."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import attrs
import pytest

from tests.real_host.runs import own_name


@attrs.frozen
class UserLimit:
    """A limit on the threads of the daemon's user (RLIMIT_NPROC).

    Attributes:
        user: A user without other processes.
    """

    user: int

    def set(self, pid: int) -> None:
        """Let the daemon start no thread."""
        set_limit(pid, self.user, "nproc", 1)

    def lift(self, pid: int) -> None:
        """Let it start threads again."""
        set_limit(pid, self.user, "nproc", None)


@attrs.frozen
class CgroupLimit:
    """A limit on the threads of the daemon's cgroup, as that of a pod is (pids.max).

    Attributes:
        cgroup: An empty one.
    """

    cgroup: Path
    user: int = 0

    def set(self, pid: int) -> None:
        """Let the daemon start no thread."""
        (self.cgroup / "cgroup.procs").write_text(str(pid))
        (self.cgroup / "pids.max").write_text("1")  # those that run go on

    def lift(self, _: int) -> None:
        """Let it start threads again."""
        (self.cgroup / "pids.max").write_text("max")


Limit: TypeAlias = UserLimit | CgroupLimit


def as_user(user: int) -> tuple[str, ...]:
    """Return a prefix to run as another user, with the right to open all files."""
    if not user:
        return ()
    return (
        *("setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"),
        *("--inh-caps=-all,+dac_override", "--ambient-caps=-all,+dac_override"),
    )


def set_limit(pid: int, user: int, what: str, most: int | None) -> None:
    """Set a limit of a process of a user; None for as much as there is."""
    # The process has inherited the upper limit of this one.
    _, top = resource.getrlimit(getattr(resource, f"RLIMIT_{what.upper()}"))
    soft = most or ("unlimited" if top == resource.RLIM_INFINITY else top)
    command = ("prlimit", "--pid", str(pid), f"--{what}={soft}:")
    subprocess.run((*as_user(user), *command), check=True)


@contextmanager
def pids_cgroup() -> Iterator[Path]:
    """Have a cgroup with the pids controller, of version 1 or 2."""
    top = Path("/sys/fs/cgroup")
    unified = (top / "cgroup.controllers").exists()
    cgroup = (top if unified else top / "pids") / own_name("faults")
    try:
        if unified:
            (top / "cgroup.subtree_control").write_text("+pids")
        cgroup.mkdir()
    except OSError as error:
        pytest.skip(f"no cgroup with the pids controller: {error}")
    try:
        yield cgroup
    finally:
        cgroup.rmdir()


@contextmanager
def threads_limit(kind: str) -> Iterator[Limit]:
    """Have a limit of the kind ``user`` or ``cgroup``."""
    if os.geteuid() or not shutil.which("setpriv") or not shutil.which("prlimit"):
        pytest.skip("only root can run a daemon as another user, or in a cgroup")
    if kind == "user":
        yield UserLimit(50_000 + os.getpid() % 10_000)
        return
    with pids_cgroup() as cgroup:
        yield CgroupLimit(cgroup)
