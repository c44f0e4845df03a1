"""Whether the host or the runtime sets a scheduling class, and failures to do so."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from structlog.testing import capture_logs

from nri_proto import NriLevel
from nri_resmgr.app.classes.scheduling import SchedulingSetter
from nri_resmgr.app.classes.setter import NewContainer, NotSetOnHost
from nri_resmgr.host.tree import HostTree
from nri_resmgr.policy.decision import Decision
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.simple import SimpleState
from nri_resmgr.stub import Container, ContainerAdjustment, Pod
from nri_resmgr.stub.model import (
    IoPriority,
    IoPriorityClass,
    Scheduler,
)
from nri_resmgr.stub.model import SchedulerPolicy as NriPolicy
from nri_resmgr.stub.runtime_info import RuntimeInfo
from nri_resmgr.values.scheduling import (
    IoClass,
    SchedulingClass,
    SchedulingPolicy,
)

OLD: Final = NriLevel(0, 8)
NEW: Final = NriLevel(0, 11)
SLOW: Final = SchedulingClass(
    name="slow",
    policy=SchedulingPolicy.BATCH,
    nice=5,
    io_class=IoClass.IDLE,
)
BEGUN: Final = NewContainer(
    Pod(),
    Container("c1"),
    ContainerSpec("c1", title="default/web/c", cgroup="/kubepods/c1"),
)
EMPTY: Final = SimpleState()
NOTHING: Final = ContainerAdjustment()
PLAIN: Final = (os.SCHED_OTHER, os.nice(0))  # a child inherits it
SET: Final = (os.SCHED_BATCH, 5)

# Whether it is sent to the runtime, and how the process is scheduled.
BY_RUNTIME: Final = (True, PLAIN)
BY_HOST: Final = (False, SET)


@pytest.fixture
def child() -> Iterator[int]:
    process = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    yield process.pid
    process.communicate()


@pytest.fixture
def tree(tmp_path: Path, child: int) -> HostTree:
    """A host of cgroup v2 whose one container is the child."""
    top = tmp_path / "sys/fs/cgroup"
    folder = top / "kubepods/c1"
    folder.mkdir(parents=True)
    (top / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    for name in ("cgroup.procs", "cgroup.threads"):
        (folder / name).write_text(f"{child}\n")
    return HostTree(str(tmp_path))


def setter(by: str, level: NriLevel | None, tree: HostTree | None) -> SchedulingSetter:
    return SchedulingSetter(RuntimeInfo(level=level), by, tree)


def scheduled(pid: int) -> tuple[int, int]:
    return os.sched_getscheduler(pid), os.getpriority(os.PRIO_PROCESS, pid)


def io_priority(pid: int) -> str:
    if not shutil.which("ionice"):
        pytest.skip("ionice of util-linux is missing")
    words = ["ionice", "-p", str(pid)]
    done = subprocess.run(words, capture_output=True, check=True, text=True)
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("by", "level", "expected"),
    [
        pytest.param("auto", OLD, BY_HOST, id="auto, and the runtime cannot"),
        pytest.param("auto", NEW, BY_RUNTIME, id="auto, and the runtime can"),
        pytest.param("auto", None, BY_RUNTIME, id="auto, and an unknown runtime"),
        pytest.param("host", NEW, BY_HOST, id="the host, though the runtime could"),
        pytest.param("runtime", NEW, BY_RUNTIME, id="the runtime"),
        pytest.param("runtime", OLD, (False, PLAIN), id="the runtime, which cannot"),
    ],
)
def test_either_the_host_or_the_runtime_sets_the_class(
    tree: HostTree,
    child: int,
    by: str,
    level: NriLevel | None,
    expected: tuple[bool, tuple[int, int]],
) -> None:
    one = setter(by, level, tree)
    with capture_logs():
        adjustment = one.add_class(NOTHING, SLOW)
        one.start(BEGUN, Decision(EMPTY, (), scheduling=SLOW))

    assert (adjustment != NOTHING, scheduled(child)) == expected


def test_the_host_sets_the_part_that_the_runtime_cannot(
    tree: HostTree, child: int
) -> None:
    one = setter("auto", NriLevel(0, 10), tree)
    one.start(BEGUN, Decision(EMPTY, (), scheduling=SLOW))

    priority = IoPriority(IoPriorityClass.IDLE)
    assert one.add_class(NOTHING, SLOW) == NOTHING.set_io_priority(priority)
    assert (scheduled(child), io_priority(child)) == (SET, "none: prio 0")


def test_the_runtime_is_sent_both_where_it_can(tree: HostTree) -> None:
    found = setter("auto", NEW, tree).add_class(NOTHING, SLOW)

    scheduler = Scheduler(policy=NriPolicy.BATCH, nice=5)
    priority = IoPriority(IoPriorityClass.IDLE)
    assert found == NOTHING.set_scheduler(scheduler).set_io_priority(priority)


@pytest.mark.parametrize("by", ["auto", "host", "runtime"])
def test_without_a_class_nothing_is_done(tree: HostTree, child: int, by: str) -> None:
    setter(by, OLD, tree).start(BEGUN, Decision(EMPTY, ()))

    assert scheduled(child) == PLAIN


GONE: Final = "there is no process in its cgroup /kubepods/c1"


def test_a_failure_to_set_the_class_on_the_host_fails_the_start(
    tmp_path: Path,
) -> None:
    one = setter("host", OLD, HostTree(str(tmp_path)))

    with pytest.raises(NotSetOnHost) as found:
        one.start(BEGUN, Decision(EMPTY, (), scheduling=SLOW))

    assert str(found.value) == f"default/web/c: {GONE}"


def test_in_auto_mode_a_class_that_cannot_be_set_does_not_fail_the_start(
    tmp_path: Path,
) -> None:
    one = setter("auto", OLD, HostTree(str(tmp_path)))

    with capture_logs() as logs:
        one.start(BEGUN, Decision(EMPTY, (), scheduling=SLOW))

    assert logs == [
        {
            "event": "scheduling.not-set",
            "log_level": "warning",
            "title": "default/web/c",
            "why": GONE,
        }
    ]


def test_a_part_that_is_refused_takes_the_other_back(
    tree: HostTree, child: int
) -> None:
    odd = SchedulingClass(
        name="odd",
        policy=SchedulingPolicy.DEADLINE,
        runtime=2_000_000,
        deadline=1_000_000,
        period=1_000_000,
        io_class=IoClass.IDLE,
    )

    with pytest.raises(NotSetOnHost):
        setter("host", OLD, tree).start(BEGUN, Decision(EMPTY, (), scheduling=odd))

    assert (scheduled(child), io_priority(child)) == (PLAIN, "none: prio 0")
