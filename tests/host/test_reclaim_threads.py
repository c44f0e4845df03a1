"""Threads of the kernel get the CPUs of their nodes back: played by processes.

`tests/qemu/guest_tests/test_partitions.py` has the kernel's own.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from nri_resmgr.host.boot_journal import boot_of
from nri_resmgr.host.cgroups.reclaim_threads import ReclaimThreads
from nri_resmgr.host.tree import HostTree
from nri_resmgr.values import CpuSet

KERNEL_THREAD = 0x20_8040  # flags of kswapd
PROCESS = 0x40_0000
ALL = CpuSet.of(*os.sched_getaffinity(0))

pytestmark = pytest.mark.skipif(len(ALL) < 2, reason="needs two CPUs")


@pytest.fixture
def thread() -> Iterator[int]:
    """Yield the id of a process that may run anywhere."""
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process.pid
        process.kill()


def write(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{text}\n")


def machine(root: Path, *nodes: CpuSet, boot: str = "") -> HostTree:
    """Write a machine on which partitions leave ALL."""
    boot = boot or boot_of(HostTree())
    write(root, "proc/sys/kernel/random/boot_id", boot)
    write(root, "sys/fs/cgroup/cpuset.cpus.effective", str(ALL))
    for number, cpus in enumerate(nodes):
        write(root, f"sys/devices/system/node/node{number}/cpulist", str(cpus))
    return HostTree(root)


def called(root: Path, thread: int, name: str, flags: int = KERNEL_THREAD) -> None:
    """Have a process seen as this one."""
    write(root, f"proc/{thread}/stat", f"{thread} ({name}) S 2 0 0 0 -1 {flags} 0 0")


def halves() -> tuple[CpuSet, CpuSet]:
    first = CpuSet.of(min(ALL))
    return first, ALL - first


@pytest.mark.parametrize("name", ["kswapd1", "kcompactd1"])
def test_a_thread_that_the_kernel_has_sent_everywhere_returns_to_its_node(
    name: str, thread: int, tmp_path: Path
) -> None:
    tree = machine(tmp_path, *halves())
    called(tmp_path, thread, name)
    threads = ReclaimThreads(tree, tree)
    threads.settle()
    first = os.sched_getaffinity(thread)
    os.sched_setaffinity(thread, ALL)
    threads.settle()

    assert first == os.sched_getaffinity(thread) == set(halves()[1])
    assert threads.problem == ""


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        pytest.param("kswapd1", PROCESS, id="a program that is called like a thread"),
        pytest.param("kworker1", KERNEL_THREAD, id="another thread"),
        pytest.param("kswapd2", KERNEL_THREAD, id="a node without CPUs"),
    ],
)
def test_all_others_stay_as_they_are(
    name: str, flags: int, thread: int, tmp_path: Path
) -> None:
    tree = machine(tmp_path, *halves())
    called(tmp_path, thread, name, flags)
    ReclaimThreads(tree, tree).settle()

    assert os.sched_getaffinity(thread) == set(ALL)


def test_an_operators_affinity_stays(thread: int, tmp_path: Path) -> None:
    tree = machine(tmp_path, *halves())
    called(tmp_path, thread, "kswapd1")
    os.sched_setaffinity(thread, halves()[0])
    ReclaimThreads(tree, tree).settle()

    assert os.sched_getaffinity(thread) == set(halves()[0])


def test_where_one_node_has_all_cpus_there_is_nothing_to_do(tmp_path: Path) -> None:
    tree = machine(tmp_path, ALL)
    threads = ReclaimThreads(tree, tree)
    threads.settle()

    assert threads.problem == ""


def test_threads_that_cannot_be_seen_are_a_problem(tmp_path: Path) -> None:
    tree = machine(tmp_path, *halves())
    threads = ReclaimThreads(tree, tree)
    threads.settle()

    assert "hostPID" in threads.problem


def test_threads_of_another_machine_are_not_touched(
    thread: int, tmp_path: Path
) -> None:
    tree = machine(tmp_path / "host", *halves(), boot="another")
    processes = machine(tmp_path / "here")
    called(tmp_path / "here", thread, "kswapd1")
    threads = ReclaimThreads(tree, processes)
    threads.settle()

    assert os.sched_getaffinity(thread) == set(ALL)
    assert threads.problem == ""


def test_a_thread_that_ended_is_searched_again(thread: int, tmp_path: Path) -> None:
    tree = machine(tmp_path, *halves())
    with subprocess.Popen(["sleep", "600"]) as first:
        called(tmp_path, first.pid, "kswapd1")
        threads = ReclaimThreads(tree, tree)
        threads.settle()
        first.kill()
    (tmp_path / f"proc/{first.pid}/stat").unlink()
    called(tmp_path, thread, "kswapd1")
    threads.settle()
    threads.settle()

    assert os.sched_getaffinity(thread) == set(halves()[1])
    assert threads.problem == ""
