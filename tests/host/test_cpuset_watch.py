"""Writes to cpusets of containers are noticed, whichever program makes them."""

from __future__ import annotations

import select
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nri_resmgr.host.cgroups.containers import CgroupReference
from nri_resmgr.host.cgroups.cpuset_watch import CpusetWatch
from nri_resmgr.host.cgroups.writer import CgroupWriter
from nri_resmgr.host.knobs.files import WritableHostTree
from nri_resmgr.host.tree import HostTree
from tests.host.own_cgroups import own_cgroups

FILES = ("cpuset.cpus", "cpuset.mems")


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[CpusetWatch]:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        for file in FILES:
            (tmp_path / name / file).write_text("0\n")
    one = CpusetWatch(HostTree(str(tmp_path)))
    yield one
    one.close()


def add(watch: CpusetWatch, *names: str) -> None:
    for name in names:
        watch.add(name, [f"/{name}/{file}" for file in FILES])


def is_readable(watch: CpusetWatch) -> bool:
    return bool(select.select([watch], [], [], 0)[0])


def test_the_watch_names_the_containers_that_were_written(
    watch: CpusetWatch, tmp_path: Path
) -> None:
    add(watch, "one", "two")
    before = is_readable(watch)
    (tmp_path / "two" / "cpuset.mems").write_text("1\n")
    (tmp_path / "one" / "cpuset.cpus").read_text()

    assert not before
    assert is_readable(watch)
    assert watch.written() == ("two",)
    assert not is_readable(watch)
    assert watch.written() == ()


def test_only_kept_containers_are_watched(watch: CpusetWatch, tmp_path: Path) -> None:
    add(watch, "one", "two")
    (tmp_path / "one" / "cpuset.cpus").write_text("1\n")
    watch.keep_only(["two"])
    late = watch.written()
    (tmp_path / "one" / "cpuset.cpus").write_text("2\n")

    assert late == ()
    assert not is_readable(watch)
    assert ("one" in watch, "two" in watch) == (False, True)


def test_a_removed_container_is_not_a_problem(
    watch: CpusetWatch, tmp_path: Path
) -> None:
    shutil.rmtree(tmp_path / "one")
    add(watch, "one")

    assert "one" not in watch
    assert watch.problem == ""


def test_after_a_failure_it_is_tried_again(watch: CpusetWatch, tmp_path: Path) -> None:
    file = tmp_path / "one" / "cpuset.mems"
    file.unlink()
    file.symlink_to(file)
    add(watch, "one")
    problem, is_watched = watch.problem, "one" in watch
    (tmp_path / "one" / "cpuset.cpus").write_text("1\n")
    events = watch.written()
    file.unlink()
    file.write_text("0\n")
    add(watch, "one")

    assert problem == "inotify: too many levels of symbolic links"
    assert (is_watched, events) == (False, ())
    assert (watch.problem, "one" in watch) == ("", True)


def test_without_free_inotify_instances_the_problem_names_the_remedy(
    tmp_path: Path,
) -> None:
    script = """
import os, resource
from nri_resmgr.host.cgroups.cpuset_watch import CpusetWatch
from nri_resmgr.host.libc import call
from nri_resmgr.host.tree import HostTree
call("getpid")
most = max(map(int, os.listdir("/proc/self/fd")))
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
watch = CpusetWatch(HostTree("/"))
watch.add("one", ["/one"])
print(watch.problem)
"""
    found = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )

    assert found.stdout == (
        "inotify: too many open files (raise fs.inotify.max_user_instances)\n"
    )


@pytest.mark.machine
def test_the_kernel_reports_writes_from_other_namespaces() -> None:
    with own_cgroups() as own:
        path = own.make("container")
        own.start("container")
        watch = CpusetWatch(HostTree("/"))
        writer = CgroupWriter(WritableHostTree("/"))
        watch.add("container", writer.cpuset_files(CgroupReference("container", path)))
        cpus = own.read("container", "cpuset.cpus")
        file = own.folder("container", "cpuset.cpus") / "cpuset.cpus"
        subprocess.run(
            ["unshare", "--cgroup", "--mount", "sh", "-c", f"echo {cpus} > {file}"],
            check=True,
        )
        written = watch.written()
        problem = watch.problem
        watch.close()

        assert (written, problem) == (("container",), "")
