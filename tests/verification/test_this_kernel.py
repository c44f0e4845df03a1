"""A real kernel's cgroups, of whichever version this machine has."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from nri_resmgr.host.cgroups.containers import (
    CgroupReference,
    ContainerCgroups,
    EffectiveResources,
    RequestedCpuset,
)
from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.tree import HostTree
from tests.real_host.patience import wait_until
from tests.real_host.runs import own_name

pytestmark = pytest.mark.machine

MOUNT = Path("/sys/fs/cgroup")
TREE = HostTree("/")
ALL = read_machine(TREE).online


@attrs.frozen
class OwnCgroup:
    """A cgroup of the test's own, as a runtime makes one."""

    name: str
    folder: Path

    def write(self, file: str, text: str) -> None:
        """Write one of its files."""
        (self.folder / file).write_text(text)


@pytest.fixture
def cgroup() -> Iterator[OwnCgroup]:
    """Make a cgroup with CPUs and memory nodes of the one above."""
    name = own_name("verified")
    is_v2 = (MOUNT / "cgroup.controllers").exists()
    top = MOUNT if is_v2 else MOUNT / "cpuset"
    folder = top / name
    try:
        if is_v2:
            (top / "cgroup.subtree_control").write_text("+cpuset +cpu")
        folder.mkdir()
    except OSError as reason:
        pytest.skip(f"no cgroup can be made: {reason}")
    made = OwnCgroup(name, folder)
    try:
        for file in ("cpuset.mems", "cpuset.cpus"):
            effective = "" if is_v2 else (top / file).read_text()
            made.write(file, effective)
        yield made
    finally:
        wait_until(lambda: _gone(folder), f"{folder} to go")


def _gone(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def test_written_values_are_in_force(cgroup: OwnCgroup) -> None:
    cgroup.write("cpuset.cpus", str(ALL.lowest(1)))
    cgroups, reference = (
        ContainerCgroups(TREE),
        CgroupReference("c1", f"/{cgroup.name}"),
    )
    found = cgroups.read(reference)

    assert found == EffectiveResources(
        ALL.lowest(1), read_machine(TREE).memory_nodes, folder=str(cgroup.folder)
    )
    assert cgroups.requested(reference).cpus == ALL.lowest(1)


def test_a_process_makes_it_populated_and_leads_to_it(cgroup: OwnCgroup) -> None:
    cgroups, reference = (
        ContainerCgroups(TREE),
        CgroupReference("c1", f"/{cgroup.name}"),
    )
    cgroups.read(reference)
    before = cgroups.has_processes(reference)
    with subprocess.Popen(["sleep", "60"]) as process:
        cgroup.write("cgroup.procs", str(process.pid))
        during = cgroups.has_processes(reference)
        # By the process alone; whatever names it in the path is its container.
        other = ContainerCgroups(TREE).read(
            CgroupReference(cgroup.name, "/no/such", pid=process.pid)
        )
        process.kill()

    assert (before, during) == (False, True)
    assert other is not None
    assert other.folder == str(cgroup.folder)


def test_a_cgroup_below_has_no_more_than_the_one_above(cgroup: OwnCgroup) -> None:
    if not (MOUNT / "cgroup.controllers").exists():
        pytest.skip("version 1 refuses to write more than the one above has")
    if len(ALL) < 2:
        pytest.skip("one CPU cannot be divided")
    cgroup.write("cpuset.cpus", str(ALL.lowest(1)))
    cgroup.write("cgroup.subtree_control", "+cpuset")
    below = cgroup.folder / "c1"
    below.mkdir()
    try:
        (below / "cpuset.cpus").write_text(str(ALL.lowest(2)))
        cgroups, reference = (
            ContainerCgroups(TREE),
            CgroupReference("c1", f"{cgroup.name}/c1"),
        )
        found = cgroups.read(reference)
        requested = cgroups.requested(reference)
    finally:
        below.rmdir()

    assert found is not None
    assert found.cpus == ALL.lowest(1)
    assert requested == RequestedCpuset(ALL.lowest(2), None)


def test_a_missing_cgroup_has_no_values() -> None:
    assert ContainerCgroups(TREE).read(CgroupReference("c1", "/no/such/c1")) is None
