"""Scheduling classes on processes of this machine, as other programs see them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from nri_resmgr.host.cgroups.threads import UnseenThreads
from nri_resmgr.host.scheduling import (
    SchedulingRefused,
    forget_io_priority,
    set_io_priority,
    set_scheduler,
)
from nri_resmgr.host.tree import HostTree
from nri_resmgr.values.scheduling import (
    IoClass,
    SchedulingClass,
    SchedulingFlag,
    SchedulingPolicy,
)

FOLDER: Final = "/cgroup"
INHERITED: Final = os.nice(0)  # the nice value of a child

# A process of several threads, the last of which says that it is there.
_FAMILY: Final = """
import sys, threading
threads = [threading.Thread(target=sys.stdin.read) for _ in range(2)]
for one in threads:
    one.start()
print("ready", flush=True)
"""


@pytest.fixture
def child() -> Iterator[int]:
    process = subprocess.Popen(
        [sys.executable, "-c", _FAMILY],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    yield process.pid
    process.communicate()


def threads_of(child: int) -> list[int]:
    return sorted(int(one.name) for one in Path(f"/proc/{child}/task").iterdir())


@pytest.fixture
def tree(tmp_path: Path, child: int) -> HostTree:
    """A cgroup that has the child in it."""
    folder = tmp_path / FOLDER.strip("/")
    folder.mkdir()
    lines = "".join(f"{one}\n" for one in threads_of(child))
    (folder / "cgroup.threads").write_text(lines)
    (folder / "cgroup.procs").write_text(f"{child}\n")
    return HostTree(str(tmp_path))


def policies(child: int) -> set[tuple[int, int]]:
    """Return policy and nice value of each thread, by other calls than ours."""
    return {
        (os.sched_getscheduler(one), os.getpriority(os.PRIO_PROCESS, one))
        for one in threads_of(child)
    }


def io_priorities(child: int) -> set[str]:
    if not shutil.which("ionice"):
        pytest.skip("ionice of util-linux is missing")
    return {
        subprocess.run(
            ["ionice", "-p", str(one)], capture_output=True, check=True, text=True
        ).stdout.strip()
        for one in threads_of(child)
    }


@pytest.mark.parametrize(
    ("scheduling", "expected"),
    [
        pytest.param(
            SchedulingClass(name="x", policy=SchedulingPolicy.BATCH, nice=7),
            (os.SCHED_BATCH, 7),
            id="a batch job, with nice",
        ),
        pytest.param(
            SchedulingClass(name="x", policy=SchedulingPolicy.IDLE),
            (os.SCHED_IDLE, INHERITED),
            id="what may starve",
        ),
        pytest.param(
            SchedulingClass(
                name="x",
                policy=SchedulingPolicy.OTHER,
                nice=3,
                flags=(SchedulingFlag.RESET_ON_FORK,),
            ),
            (os.SCHED_OTHER | os.SCHED_RESET_ON_FORK, 3),
            id="a flag",
        ),
    ],
)
def test_all_threads_have_the_scheduling_of_the_class(
    tree: HostTree, child: int, scheduling: SchedulingClass, expected: tuple[int, int]
) -> None:
    assert set_scheduler(tree, FOLDER, scheduling) == len(threads_of(child))
    assert policies(child) == {expected}


@pytest.mark.parametrize(
    ("scheduling", "expected"),
    [
        pytest.param(
            SchedulingClass(name="x", io_class=IoClass.BEST_EFFORT, io_priority=6),
            "best-effort: prio 6",
            id="best effort",
        ),
        pytest.param(
            SchedulingClass(name="x", io_class=IoClass.IDLE), "idle", id="idle"
        ),
    ],
)
def test_all_threads_have_the_io_priority_of_the_class(
    tree: HostTree, child: int, scheduling: SchedulingClass, expected: str
) -> None:
    assert set_io_priority(tree, FOLDER, scheduling) == len(threads_of(child))
    assert io_priorities(child) == {expected}

    forget_io_priority(tree, FOLDER, scheduling)
    assert io_priorities(child) == {"none: prio 0"}


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(set_scheduler, id="the scheduler"),
        pytest.param(set_io_priority, id="the I/O priority"),
    ],
)
def test_values_that_a_class_does_not_set_stay(
    tree: HostTree, child: int, act: Callable[[HostTree, str, SchedulingClass], int]
) -> None:
    before = policies(child), io_priorities(child)

    assert act(tree, FOLDER, SchedulingClass(name="x")) == 0
    assert (policies(child), io_priorities(child)) == before


def test_only_the_first_threads_have_deadlines(tree: HostTree, child: int) -> None:
    # Each needs time of its own that is set aside.
    deadline = SchedulingClass(
        name="x",
        policy=SchedulingPolicy.DEADLINE,
        runtime=1_000_000,
        deadline=10_000_000,
        period=10_000_000,
    )
    try:
        count = set_scheduler(tree, FOLDER, deadline)
    except SchedulingRefused as error:
        pytest.skip(f"not here: {error}")

    assert count == 1
    others = [one for one in threads_of(child) if one != child]
    assert {os.sched_getscheduler(one) for one in others} == {os.SCHED_OTHER}


def test_a_class_that_the_kernel_refuses_is_reported(tree: HostTree) -> None:
    # There is no time for that in its period.
    impossible = SchedulingClass(
        name="odd",
        policy=SchedulingPolicy.DEADLINE,
        runtime=20_000_000,
        deadline=10_000_000,
        period=10_000_000,
    )

    with pytest.raises(SchedulingRefused) as found:
        set_scheduler(tree, FOLDER, impossible)

    assert str(found.value) == "scheduler of scheduling class 'odd': Invalid argument"


def test_threads_that_have_ended_are_skipped(tree: HostTree, child: int) -> None:
    path = Path(tree.root, FOLDER.strip("/"), "cgroup.threads")
    gone = subprocess.Popen(["true"])
    gone.wait()
    path.write_text(f"{path.read_text()}{gone.pid}\n")
    batch = SchedulingClass(name="x", policy=SchedulingPolicy.BATCH)

    set_scheduler(tree, FOLDER, batch)

    assert policies(child) == {(os.SCHED_BATCH, 0)}


def test_processes_of_another_pid_namespace_are_an_error(tmp_path: Path) -> None:
    folder = tmp_path / FOLDER.strip("/")
    folder.mkdir()
    (folder / "cgroup.threads").write_text("0\n")
    batch = SchedulingClass(name="x", policy=SchedulingPolicy.BATCH)

    with pytest.raises(UnseenThreads):
        set_scheduler(HostTree(str(tmp_path)), FOLDER, batch)
