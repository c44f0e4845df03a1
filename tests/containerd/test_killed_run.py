"""The run after a killed one removes what that had left, and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import attrs
import pytest

from tests.real_host.absent import give_up
from tests.real_host.binaries import binaries, offered_versions
from tests.real_host.cgroups import folders_named
from tests.real_host.dead_runs import processes_of, shim_sockets_below
from tests.real_host.debian import PackageUnavailable
from tests.real_host.patience import wait_until
from tests.real_host.removal import kill, member_pids, mounts
from tests.real_host.runs import VARIABLE, Run, prefix_of

# One at a time: the run after one would remove what the other has left, too.
pytestmark = [
    pytest.mark.containerd,
    pytest.mark.timeout(600),
    pytest.mark.xdist_group("killed-runs"),
]

ROOT: Final = Path(__file__).parents[2]
UNENDING: Final = "tests/containerd/unending.py"
NEXT: Final = "tests/real_host/test_cache.py"


@attrs.frozen
class Left:
    """Processes, mounts and cgroups that a run has left on this machine."""

    processes: frozenset[int]
    mounts: tuple[str, ...]
    cgroups: tuple[Path, ...]

    @classmethod
    def of(cls, run: Run) -> Left:
        """Look for it."""
        points = (point for _, _, point in mounts())
        return cls(
            frozenset(processes_of(run)),
            tuple(one for one in points if one.startswith(str(run.folder))),
            tuple(folders_named(f"{prefix_of(run.name)}*")),
        )


NOTHING: Final = Left(frozenset(), (), ())


@contextmanager
def started(ready: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start pytest as `make test` does, not as a part of this run."""
    own = {VARIABLE, "TMPDIR", "PYTEST_CURRENT_TEST"}
    others = {
        name: text
        for name, text in os.environ.items()
        if name not in own and not name.startswith("PYTEST_XDIST")
    }
    with subprocess.Popen(
        (sys.executable, "-m", "pytest", "-q", "-n", "1", *arguments),
        cwd=ROOT,
        env=others | {"NRI_RESMGR_TEST_READY": str(ready)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def runs(pid: int) -> bool:
    """Whether a process has not ended; one that its parent has not noticed has."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() != b""
    except OSError:
        return False


def only_the_first(controller: int, run: Run) -> None:
    """End the process that a user sees, and no other."""
    kill([controller])


def everything(controller: int, run: Run) -> None:
    """End the containers, too, as the kernel does for lack of memory."""
    cgroups = folders_named(f"{prefix_of(run.name)}*")
    kill({controller, *processes_of(run), *member_pids(cgroups)})


@pytest.fixture(autouse=True)
def _can_run() -> None:
    try:
        binaries(offered_versions()[0])
    except PackageUnavailable as reason:
        give_up(f"containerd: {reason}")


@pytest.mark.parametrize("end", [only_the_first, everything])
def test_the_next_run_removes_it(
    end: Callable[[int, Run], None], tmp_path: Path
) -> None:
    ready = tmp_path / "ready"
    with started(ready, UNENDING) as killed:
        wait_until(lambda: ready.exists() or killed.poll() is not None, "a run", 120)
        assert ready.exists(), killed.communicate()[0].decode()
        about: dict[str, Any] = json.loads(ready.read_text())
        run = Run(about["name"], Path(about["folder"]))
        sockets = [*shim_sockets_below(run.folder)]
        before = Left.of(run)
        end(killed.pid, run)
    assert about["service"] in before.processes
    assert sockets
    assert Left.of(run).mounts
    assert Left.of(run).cgroups

    with started(ready, NEXT) as following:
        printed, _ = following.communicate()

    assert f"left by {run.folder}: " in printed.decode()
    assert " passed in" in printed.decode()
    assert Left.of(run) == NOTHING
    assert not [one for one in before.processes if runs(one)]
    assert not [one for one in sockets if one.exists()]
    assert not run.folder.exists()
    # This run, which lives, has been beside it.
    assert Path(os.environ["TMPDIR"], ".run").read_text() == os.environ[VARIABLE]
