"""A real kernel stops to balance load between the CPUs of isolated containers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from nri_resmgr.classes.isolation.cgroup_files import IsolatedCgroup, cgroup_files
from nri_resmgr.classes.isolation.requests import Isolated, IsolationRequest
from nri_resmgr.host.boot_journal import boot_of
from nri_resmgr.host.cgroups.isolated import IsolatedCgroups
from nri_resmgr.host.knobs.files import WritableHostTree
from nri_resmgr.host.knobs.journal import KnobJournal
from nri_resmgr.host.knobs.knobs import Knobs
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.host.tree import HostTree
from nri_resmgr.values import NO_CPUS, CpuSet

pytestmark = pytest.mark.numa

TOP: Final = Path("/sys/fs/cgroup")
TREE: Final = HostTree("/")
WISH: Final = IsolationRequest(unbalanced=True, unlimited=True)


@contextmanager
def cgroups(*names: str) -> Iterator[Path]:
    """Make cgroups of containers of one pod, with the controllers that those have."""
    (TOP / "cgroup.subtree_control").write_text("+cpuset +cpu")
    pod = TOP / "isolation/pod1"
    pod.mkdir(parents=True)
    for folder in (pod.parent, pod):
        (folder / "cgroup.subtree_control").write_text("+cpuset +cpu")
    (pod / "cpu.max").write_text("400000 100000")
    for name in names:
        (pod / name).mkdir()
    try:
        yield pod
    finally:
        for folder in (*(pod / name for name in names), pod, pod.parent):
            folder.rmdir()


def isolated(name: str, cpus: str) -> Isolated:
    return Isolated(name, CpuSet.parse(cpus), WISH, f"/isolation/pod1/{name}")


def knobs_in(folder: Path) -> Knobs:
    state = StateDir.open(str(folder))
    return Knobs(WritableHostTree("/"), KnobJournal(state, boot_of(TREE)))


def text(path: Path) -> str:
    return path.read_text().strip()


def out_of_domains() -> str:
    """Return the CPUs of partitions, without those of ``isolcpus=``."""
    found = CpuSet.parse(text(TOP / "cpuset.cpus.isolated"))
    at_boot = CpuSet.parse(text(Path("/sys/devices/system/cpu/isolated")))
    return str(found - at_boot)


def placed(*containers: Isolated) -> tuple[IsolatedCgroup, ...]:
    return IsolatedCgroups(TREE).find(containers)


def test_cpus_leave_the_domains_of_the_scheduler_and_come_back(tmp_path: Path) -> None:
    knobs = knobs_in(tmp_path / "state")
    with cgroups("a", "b", "other") as pod:
        for name, cpus in {"a": "2", "b": "4-5", "other": "0-1"}.items():
            (pod / name / "cpuset.cpus").write_text(cpus)
        both = placed(isolated("a", "2"), isolated("b", "4-5"))
        report = knobs.apply(cgroup_files(both, NO_CPUS))

        assert report.failed == ()
        assert IsolatedCgroups(TREE).ineffective(both, NO_CPUS) == ()
        assert out_of_domains() == "2,4-5"
        assert text(pod / "b/cpuset.cpus.effective") == "4-5"
        assert text(pod / "cpu.max") == text(pod / "a/cpu.max") == "max 100000"
        assert knobs.verify(cgroup_files(both, NO_CPUS)) == ()

        one = placed(isolated("b", "4-5"))
        assert knobs.apply(cgroup_files(one, NO_CPUS)).failed == ()
        assert out_of_domains() == "4-5"
        assert text(pod / "a/cpuset.cpus.partition") == "member"

        assert knobs.restore_all().failed == ()
        assert out_of_domains() == ""
        assert text(pod / "b/cpuset.cpus.partition") == "member"
        assert text(pod.parent / "cpuset.cpus.exclusive") == ""
        assert text(pod / "cpu.max") == "400000 100000"


def test_the_partition_of_a_removed_container_is_removed(tmp_path: Path) -> None:
    knobs = knobs_in(tmp_path / "state")
    with cgroups("a") as pod:
        (pod / "a/cpuset.cpus").write_text("2")
        knobs.apply(cgroup_files(placed(isolated("a", "2")), NO_CPUS))
        (pod / "a").rmdir()
        (pod / "a").mkdir()
        report = knobs.apply({})

        assert report.failed == ()
        assert out_of_domains() == ""
        assert text(pod / "cpuset.cpus.exclusive") == ""


def test_a_partition_blocked_by_other_cgroups_is_reported(tmp_path: Path) -> None:
    knobs = knobs_in(tmp_path / "state")
    with cgroups("a", "other") as pod:
        (pod / "a/cpuset.cpus").write_text("2")
        (pod / "other/cpuset.cpus").write_text("2")
        one = placed(isolated("a", "2"))
        report = knobs.apply(cgroup_files(one, NO_CPUS))
        reported = [why for _, why in IsolatedCgroups(TREE).ineffective(one, NO_CPUS)]
        knobs.restore_all()

    folder = "/sys/fs/cgroup/isolation/pod1/a"
    reason = "isolated invalid (Cpu list in cpuset.cpus not exclusive)"
    assert [*map(str, report.failed), *reported] == [
        f"cannot write '2' to {folder}/cpuset.cpus.exclusive: invalid argument",
        f"{folder}/cpuset.cpus.partition is {reason!r}",
    ]
