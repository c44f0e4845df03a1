"""A real kernel has in force what is written into cgroups of containers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from nri_resmgr.host.cgroups.containers import CgroupReference
from nri_resmgr.host.cgroups.writer import (
    CgroupWriter,
    CpusetValues,
    WriteOutcome,
    WriteResult,
)
from nri_resmgr.host.knobs.files import WritableHostTree
from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.tree import HostTree
from nri_resmgr.values import CpuSet, NodeSet
from tests.host.own_cgroups import IS_V2, OwnCgroups, mounted_read_only, own_cgroups

pytestmark = pytest.mark.machine

MACHINE: Final = read_machine(HostTree("/"))
BOTH: Final = MACHINE.online.lowest(2)
ONE: Final = MACHINE.online.lowest(1)
OTHER: Final = BOTH - ONE
NO_SUCH_NODE: Final = NodeSet.of(5000)
CPUS: Final = "cpuset.cpus"

one_or_two = pytest.mark.parametrize(
    "inner",
    [pytest.param(False, id="one cgroup"), pytest.param(True, id="an inner cgroup")],
)
two_cpus = pytest.mark.skipif(len(BOTH) < 2, reason="one CPU cannot be divided")


@pytest.fixture
def cgroups() -> Iterator[OwnCgroups]:
    with own_cgroups() as made:
        yield made


@pytest.fixture
def writer() -> CgroupWriter:
    return CgroupWriter(WritableHostTree("/"))


def container(
    cgroups: OwnCgroups, *, inner: bool = False
) -> tuple[CgroupReference, int]:
    """Make a container with a process; an inner cgroup is of crun's kind."""
    path = cgroups.make("c1")
    if inner:
        cgroups.make("c1/container")
    pid = cgroups.start("c1/container" if inner else "c1")
    return CgroupReference("c1", path), pid


def affinity(pid: int) -> CpuSet:
    return CpuSet.from_iterable(os.sched_getaffinity(pid))


def write(writer: CgroupWriter, whom: CgroupReference, cpus: CpuSet) -> WriteResult:
    return writer.write(whom, CpusetValues(cpus))


@two_cpus
@one_or_two
def test_a_process_runs_on_the_written_cpus(
    cgroups: OwnCgroups, writer: CgroupWriter, *, inner: bool
) -> None:
    whom, pid = container(cgroups, inner=inner)
    before = BOTH
    write(writer, whom, BOTH)
    for cpus in (ONE, BOTH, OTHER, ONE, OTHER, BOTH):
        result = write(writer, whom, cpus)

        assert (result.outcome, result.why) == (WriteOutcome.WRITTEN, "")
        assert result.before == CpusetValues(before)
        assert affinity(pid) == cpus
        assert write(writer, whom, cpus).outcome is WriteOutcome.UNCHANGED
        for path in ("c1", "c1/container") if inner else ("c1",):
            assert cgroups.read(path, CPUS) == str(cpus)
        before = cpus


@two_cpus
def test_values_of_another_program_are_overwritten(
    cgroups: OwnCgroups, writer: CgroupWriter
) -> None:
    whom, pid = container(cgroups)
    write(writer, whom, ONE)
    cgroups.write("c1", CPUS, str(OTHER))

    found = writer.read(whom)
    assert found is not None
    assert found.cpus == OTHER
    assert write(writer, whom, ONE).before == CpusetValues(OTHER)
    assert affinity(pid) == ONE


@one_or_two
def test_weights_and_nodes_are_written(
    cgroups: OwnCgroups, writer: CgroupWriter, *, inner: bool
) -> None:
    whom, _ = container(cgroups, inner=inner)
    mems = MACHINE.memory_nodes.lowest(1)
    result = writer.write(whom, CpusetValues(ONE, mems, 2048))

    file, text = ("cpu.weight", "174") if IS_V2 else ("cpu.shares", "2048")
    assert result.outcome is WriteOutcome.WRITTEN
    for path in ("c1", "c1/container") if inner else ("c1",):
        assert cgroups.read(path, file) == text
        assert cgroups.read(path, "cpuset.mems") == str(mems)
    assert writer.read(whom) == CpusetValues(ONE, mems, 0 if IS_V2 else 2048)
    again = writer.write(whom, CpusetValues(ONE, mems, 2048))
    assert again.outcome is WriteOutcome.UNCHANGED
    assert again.before == CpusetValues(ONE, mems, 2048)


@pytest.mark.skipif(len(MACHINE.memory_nodes) < 2, reason="one node of memory")
@one_or_two
def test_a_container_moves_to_another_node(
    cgroups: OwnCgroups, writer: CgroupWriter, *, inner: bool
) -> None:
    whom, pid = container(cgroups, inner=inner)
    first, second = MACHINE.memory_nodes.lowest(2)
    for node in (first, second, first):
        writer.write(whom, CpusetValues(mems=NodeSet.of(node)))

        status = Path(f"/proc/{pid}/status").read_text()
        assert f"Mems_allowed_list:\t{node}\n" in status


def test_a_failed_write_changes_nothing(
    cgroups: OwnCgroups, writer: CgroupWriter
) -> None:
    """No kernel has the node; CPUs and weights are written before it."""
    whom, pid = container(cgroups, inner=True)
    before = writer.read(whom), affinity(pid), cgroups.read("c1", CPUS)
    result = writer.write(whom, CpusetValues(ONE, NO_SUCH_NODE, 2048))

    assert (writer.read(whom), affinity(pid), cgroups.read("c1", CPUS)) == before
    assert result.outcome is WriteOutcome.FAILED
    assert result.why.endswith(
        "/c1/cpuset.mems: numerical result out of range "
        "(some have no memory, or are exclusive to another cgroup)"
    )


def test_cpus_that_the_machine_lacks_fail(
    cgroups: OwnCgroups, writer: CgroupWriter
) -> None:
    whom, pid = container(cgroups)
    before = affinity(pid)
    result = write(writer, whom, ONE | CpuSet.of(60_000))

    assert result.outcome is WriteOutcome.FAILED
    assert result.why.startswith(f"cannot write '{ONE},60000' to /sys/fs/cgroup/")
    assert affinity(pid) == before


def test_without_processes_a_cgroup_is_written_until_it_is_removed(
    cgroups: OwnCgroups, writer: CgroupWriter
) -> None:
    whom, _ = container(cgroups)
    write(writer, whom, BOTH)
    cgroups.stop()

    assert write(writer, whom, ONE) == WriteResult(
        WriteOutcome.WRITTEN,
        before=CpusetValues(BOTH),
        folder=str(cgroups.folder("c1", CPUS)),
    )
    failing = CpusetValues(BOTH, NO_SUCH_NODE)
    assert writer.write(whom, failing) == WriteResult(WriteOutcome.ABSENT)
    assert cgroups.read("c1", CPUS) == str(ONE)

    cgroups.remove("c1")
    assert write(writer, whom, BOTH) == WriteResult(WriteOutcome.ABSENT)
    assert writer.read(whom) is None
    assert not writer.cpuset_files(whom)


class RemovingTree(WritableHostTree):
    """Files of cgroups that are removed between open and write."""

    def __init__(self, cgroups: OwnCgroups) -> None:
        super().__init__("/")
        self._cgroups = cgroups

    def write(self, path: str, text: str) -> None:
        fd = os.open(path, os.O_WRONLY)
        try:
            self._cgroups.stop()
            self._cgroups.remove("c1")
            os.write(fd, text.encode())
        finally:
            os.close(fd)


def test_a_container_that_ends_during_the_write_is_absent(cgroups: OwnCgroups) -> None:
    whom, _ = container(cgroups)
    write(CgroupWriter(WritableHostTree("/")), whom, BOTH)

    result = write(CgroupWriter(RemovingTree(cgroups)), whom, ONE)
    assert result == WriteResult(WriteOutcome.ABSENT)


@two_cpus
def test_a_container_that_returns_elsewhere_is_found_again(
    cgroups: OwnCgroups, writer: CgroupWriter
) -> None:
    whom, _ = container(cgroups)
    write(writer, whom, ONE)
    cgroups.stop()
    cgroups.remove("c1")
    path = cgroups.make("again")
    pid = cgroups.start("again")

    result = write(writer, CgroupReference("c1", path), OTHER)
    assert result.outcome is WriteOutcome.WRITTEN
    assert affinity(pid) == OTHER


@two_cpus
def test_a_paused_container_follows(cgroups: OwnCgroups, writer: CgroupWriter) -> None:
    whom, pid = container(cgroups)
    cgroups.freeze("c1", frozen=True)
    assert write(writer, whom, ONE).outcome is WriteOutcome.WRITTEN
    assert affinity(pid) == ONE

    cgroups.freeze("c1", frozen=False)
    assert affinity(pid) == ONE


@two_cpus
def test_a_parent_that_allows_fewer(cgroups: OwnCgroups, writer: CgroupWriter) -> None:
    whom, pid = container(cgroups)
    write(writer, whom, ONE)
    cgroups.write("", CPUS, str(ONE))
    result = write(writer, whom, BOTH)

    assert affinity(pid) == ONE
    if IS_V2:  # which keeps what was written until the parent allows it
        assert result.outcome is WriteOutcome.WRITTEN
        cgroups.write("", CPUS, str(BOTH))
        assert affinity(pid) == BOTH
    else:
        above = cgroups.folder("", CPUS)
        assert result == WriteResult(
            WriteOutcome.FAILED,
            f"cannot write '{BOTH}' to {above}/c1/{CPUS}: permission denied "
            f"({above} has only {ONE}: extend its {CPUS})",
        )


@two_cpus
@pytest.mark.skipif(IS_V2, reason="version 2 has no such rule")
def test_a_cgroup_that_the_container_made_is_in_the_way(
    cgroups: OwnCgroups, writer: CgroupWriter
) -> None:
    whom, pid = container(cgroups)
    write(writer, whom, BOTH)
    cgroups.make("c1/nested")
    result = write(writer, whom, ONE)

    assert result == WriteResult(
        WriteOutcome.FAILED,
        f"cannot write '{ONE}' to {cgroups.folder('c1', CPUS)}/{CPUS}: device or "
        "resource busy (a cgroup that the container made below has others)",
    )
    assert affinity(pid) == BOTH


@pytest.mark.parametrize("runs", [False, True])
def test_an_empty_set_is_written_and_restored(
    cgroups: OwnCgroups, writer: CgroupWriter, *, runs: bool
) -> None:
    path = cgroups.make("c1", bare=True)
    whom = CgroupReference("c1", path)
    if runs and not IS_V2:
        pytest.skip("version 1 admits no processes where a set is empty")
    pid = cgroups.start("c1") if runs else 0
    in_force = affinity(pid)
    result = writer.write(whom, CpusetValues(ONE, NO_SUCH_NODE))

    assert (result.outcome is WriteOutcome.FAILED) == runs
    assert "restoring" not in result.why
    assert affinity(pid) == in_force
    # With processes a set that is not empty remains so.
    assert cgroups.read("c1", CPUS) == (str(in_force) if runs else "")
    assert write(writer, whom, ONE).outcome is WriteOutcome.WRITTEN
    assert cgroups.read("c1", CPUS) == str(ONE)


@pytest.mark.process
def test_a_read_only_mount_is_reported(cgroups: OwnCgroups, tmp_path: Path) -> None:
    whom, pid = container(cgroups)
    before = affinity(pid)
    with mounted_read_only(tmp_path) as root:
        writer = CgroupWriter(WritableHostTree(root))
        everywhere = writer.why_unwritable()
        result = writer.write(whom, CpusetValues(ONE, shares=2048))

    ending = "read-only file system (mount the host's /sys/fs/cgroup writable)"
    top = "/sys/fs/cgroup" if IS_V2 else "/sys/fs/cgroup/cpuset"
    assert everywhere == f"cannot write {top}/cgroup.procs: {ending}"
    assert result.outcome is WriteOutcome.FAILED
    assert result.why.endswith(f"/c1/{CPUS}: {ending}")
    assert affinity(pid) == before


def test_this_machine_can_be_written(cgroups: OwnCgroups, writer: CgroupWriter) -> None:
    assert cgroups.name
    assert writer.why_unwritable() == ""
