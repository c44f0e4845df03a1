"""All threads of a container are moved, however they come and go meanwhile."""

from __future__ import annotations

import errno
import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from nri_resmgr.classes.rdt.plan import Plan
from nri_resmgr.classes.rdt.settings import ROOT_CLASS
from nri_resmgr.host.cgroups.threads import UnseenThreads, threads_of
from nri_resmgr.host.resctrl.errors import GroupRefused, UnknownGroup
from nri_resmgr.host.resctrl.threads import TooManyForks
from nri_resmgr.host.tree import HostTree
from nri_resmgr.testing.resctrl import Resctrl
from tests.host.resctrl.kept import World


@pytest.fixture
def world() -> World:
    world = World()
    world.control.apply(Plan({"gold": "", "silver": ""}))
    world.control.monitor("pod1", "gold")
    for task in (10, 11, 12):
        world.resctrl.start(task)
    world.resctrl.commands.clear()
    return world


def forking(resctrl: Resctrl, looks: int) -> Callable[[], list[int]]:
    """Return a container whose first thread forks before each of some looks at it.

    A look sees the new thread one look later.
    """
    ids = itertools.count(100)

    def threads() -> list[int]:
        nonlocal looks
        seen = [one for one in resctrl.state.threads if one >= 10]
        if looks:
            looks -= 1
            resctrl.start(next(ids), parent=10)
        return seen

    return threads


def test_every_thread_is_moved_once(world: World) -> None:
    moved = world.control.move(lambda: [10, 11], "gold")
    again = world.control.move(lambda: [10, 11, 12], "gold")

    assert (moved, again) == (2, 1)
    assert world.control.tasks("gold") == {10, 11, 12}
    assert world.commands == ["write gold/tasks"] * 3
    assert [one.text for one in world.resctrl.commands] == ["10\n", "11\n", "12\n"]


def test_threads_that_are_made_meanwhile_are_moved_too(world: World) -> None:
    world.control.move(forking(world.resctrl, looks=3), "gold")

    assert world.control.tasks("gold") == {10, 11, 12, 100, 101, 102}
    assert world.control.tasks(ROOT_CLASS) == set()


def test_threads_that_end_meanwhile_are_passed_over(world: World) -> None:
    def threads() -> list[int]:
        world.resctrl.state.threads.pop(11, None)
        return [10, 11, 12]

    assert world.control.move(threads, "gold") == 2
    assert world.control.tasks("gold") == {10, 12}


def test_threads_of_a_monitoring_group_stay_in_it(world: World) -> None:
    world.control.move(lambda: [10], "gold", "pod1")
    world.control.move(lambda: [10, 11], "gold")

    assert world.control.tasks("gold", "pod1") == {10}
    assert world.control.tasks("gold") == {10, 11}
    assert world.control.move(lambda: [10, 11], "gold", "pod1") == 1
    assert world.control.tasks("gold", "pod1") == {10, 11}


def test_a_move_into_a_monitoring_group_goes_by_its_class(world: World) -> None:
    world.control.move(lambda: [10], "silver")
    moved = world.control.move(lambda: [10, 11], "gold", "pod1")

    assert moved == 2
    assert world.control.tasks("gold", "pod1") == {10, 11}
    assert world.control.tasks("silver") == set()


def test_the_root_group_takes_threads_back(world: World) -> None:
    world.control.move(lambda: [10], "gold")
    world.control.move(lambda: [10], ROOT_CLASS)

    assert world.control.tasks(ROOT_CLASS) == {10, 11, 12}


@pytest.mark.parametrize(
    ("name", "monitor", "path"),
    [
        pytest.param("iron", "", "iron", id="class"),
        pytest.param("gold", "pod2", "gold/mon_groups/pod2", id="monitoring group"),
    ],
)
def test_no_thread_is_moved_into_a_missing_group(
    name: str, monitor: str, path: str, world: World
) -> None:
    with pytest.raises(UnknownGroup) as refusal:
        world.control.move(lambda: [10], name, monitor)

    place = f"{world.resctrl.root}/{path}"
    assert str(refusal.value) == f"RDT class {name!r}: there is no {place}"
    assert world.commands == []


def test_a_refusal_names_thread_class_and_file(world: World) -> None:
    world.resctrl.faults.fail(1, errno.EPERM)
    with pytest.raises(GroupRefused) as refusal:
        world.control.move(lambda: [10, 11], "gold")

    assert str(refusal.value) == (
        "RDT class 'gold': cannot write 11 to /sys/fs/resctrl/gold/tasks: "
        "operation not permitted"
    )
    assert world.control.tasks("gold") == {10}


def test_there_is_an_end_to_following_forks(world: World) -> None:
    ids = itertools.count(1000)

    def threads() -> list[int]:
        task = next(ids)
        world.resctrl.start(task)
        return [task]

    with pytest.raises(TooManyForks, match="still new threads after 64 were moved"):
        world.control.move(threads, "gold")


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize("file", ["cgroup.threads", "tasks"])
def test_threads_of_a_cgroup_are_those_below_it_too(tmp_path: Path, file: str) -> None:
    scope = tmp_path / "sys/fs/cgroup/kubepods/pod1/c1"
    write(scope / file, "10\n11\n")
    write(scope / "cpu.max", "max\n")
    write(scope / "init.scope" / file, "12\n")
    write(scope / "system.slice/nested" / file, "13\n")
    write(scope / "system.slice" / file, "")
    tree = HostTree(tmp_path)

    assert threads_of(tree, "/sys/fs/cgroup/kubepods/pod1/c1") == {10, 11, 12, 13}
    assert threads_of(tree, "/sys/fs/cgroup/kubepods/pod1/gone") == set()


def test_threads_of_another_pid_namespace_are_reported(tmp_path: Path) -> None:
    write(tmp_path / "c1/cgroup.threads", "0\n0\n")
    with pytest.raises(UnseenThreads) as refusal:
        threads_of(HostTree(tmp_path), "/c1")

    assert str(refusal.value) == (
        "/c1/cgroup.threads lists threads of another PID namespace; "
        "run with the host's (hostPID: true)"
    )
