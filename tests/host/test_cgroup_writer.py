"""Where the values of containers are written, in trees of either version."""

from __future__ import annotations

import errno
from collections.abc import Mapping
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
from nri_resmgr.host.tree import BadHostFile
from nri_resmgr.values import CpuSet, NodeSet
from tests.host.cgroup_kernel import KernelModel
from tests.verification.cgroup_trees import (
    MOUNT,
    POD,
    SLICES,
    SYSTEMD,
    V1,
    V2,
    tree_with,
    v1,
    v2,
)

PATH: Final = f"{POD}/c1"
INNER: Final = f"{PATH}/container"
CONTAINER: Final = CgroupReference("c1", f"/{PATH}")
VALUES: Final = CpusetValues(CpuSet.parse("2-3"), NodeSet.of(1), 2048)
HYBRID: Final = {**V1, "unified/cgroup.controllers": ""}


class CountingTree(WritableHostTree):
    """Counts accesses, and answers to some writes as a kernel would."""

    def __init__(self, root: Path, answers: Mapping[str, int] | None = None) -> None:
        super().__init__(root)
        self.answers = answers or {}
        self.reads: list[str] = []
        self.writes: list[str] = []

    def read(self, path: str) -> str | None:
        self.reads.append(path)
        return super().read(path)

    def write(self, path: str, text: str) -> None:
        self.writes.append(f"{path.removeprefix(f'/{MOUNT}/')} {text}")
        number = self.answers.get(path.rpartition("/")[2])
        if number:
            raise OSError(number, "refused")
        super().write(path, text)


def writer_of(root: Path, files: Mapping[str, str]) -> CgroupWriter:
    tree_with(root, files)
    return CgroupWriter(WritableHostTree(root))


def text(root: Path, file: str) -> str:
    return (root / MOUNT / file).read_text().strip()


@pytest.mark.parametrize(
    ("files", "path", "written"),
    [
        pytest.param(
            V1 | v1(PATH, "0-7"),
            f"/{PATH}",
            {
                f"cpuset/{PATH}/cpuset.cpus": "2-3",
                f"cpuset/{PATH}/cpuset.mems": "1",
                f"cpu/{PATH}/cpu.shares": "2048",
            },
            id="version 1, cgroupfs",
        ),
        pytest.param(
            HYBRID | v1(SLICES, "0-7"),
            SYSTEMD,
            {
                f"cpuset/{SLICES}/cpuset.cpus": "2-3",
                f"cpuset/{SLICES}/cpuset.mems": "1",
                f"cpu/{SLICES}/cpu.shares": "2048",
            },
            id="both versions mounted, systemd",
        ),
        pytest.param(
            V2 | v2(SLICES, "0-7"),
            SYSTEMD,
            {
                f"{SLICES}/cpuset.cpus": "2-3",
                f"{SLICES}/cpuset.mems": "1",
                f"{SLICES}/cpu.weight": "174",
            },
            id="version 2, systemd",
        ),
        pytest.param(
            V2 | v2(PATH, "0-7") | v2(INNER, "0-7"),
            f"/{PATH}",
            {
                f"{PATH}/cpuset.cpus": "2-3",
                f"{PATH}/cpu.weight": "174",
                f"{INNER}/cpuset.cpus": "2-3",
                f"{INNER}/cpuset.mems": "1",
                f"{INNER}/cpu.weight": "174",
            },
            id="version 2, crun's inner cgroup",
        ),
        pytest.param(
            V2 | v2(PATH, "0-7") | v2(INNER, "0-7") | {f"{PATH}/cpuset.cpus": ""},
            f"/{PATH}",
            {f"{PATH}/cpuset.cpus": "", f"{INNER}/cpuset.cpus": "2-3"},
            id="a scope without CPUs of its own confines nothing",
        ),
    ],
)
def test_values_are_written_where_the_container_is(
    tmp_path: Path, files: Mapping[str, str], path: str, written: Mapping[str, str]
) -> None:
    writer = writer_of(tmp_path, files)
    whom = CgroupReference("c1", path)
    result = writer.write(whom, VALUES)

    assert (result.outcome, result.why) == (WriteOutcome.WRITTEN, "")
    assert {file: text(tmp_path, file) for file in written} == written
    assert writer.write(whom, VALUES).outcome is WriteOutcome.UNCHANGED
    found = writer.read(whom)
    assert found is not None
    assert (found.cpus, found.mems) == (VALUES.cpus, VALUES.mems)


def test_only_differing_values_are_written_and_only_affected_files_read(
    tmp_path: Path,
) -> None:
    tree_with(tmp_path, V1 | v1(PATH, "2,3", mems="0", shares="2048"))
    tree = CountingTree(tmp_path)
    writer = CgroupWriter(tree)
    writer.cpuset_files(CONTAINER)
    tree.reads.clear()
    folder = f"/{MOUNT}/cpuset/{PATH}"

    same = writer.write(CONTAINER, CpusetValues(VALUES.cpus))
    before = CpusetValues(VALUES.cpus)
    assert same == WriteResult(WriteOutcome.UNCHANGED, "", before, folder)
    assert (tree.reads, tree.writes) == ([f"{folder}/cpuset.cpus"], [])

    before = CpusetValues(VALUES.cpus, NodeSet.of(0), 2048)
    written = WriteResult(WriteOutcome.WRITTEN, "", before, folder)
    assert writer.write(CONTAINER, VALUES) == written
    assert tree.writes == [f"cpuset/{PATH}/cpuset.mems 1"]
    assert writer.write(CONTAINER, CpusetValues()).outcome is WriteOutcome.UNCHANGED


def test_known_cpus_are_not_read(tmp_path: Path) -> None:
    tree_with(tmp_path, V1 | v1(PATH, "0-7"))
    tree = CountingTree(tmp_path)
    writer = CgroupWriter(tree)
    writer.cpuset_files(CONTAINER)
    tree.reads.clear()
    wanted, known = CpusetValues(VALUES.cpus), CpuSet.parse("0-7")

    before = CpusetValues(known)
    folder = f"/{MOUNT}/cpuset/{PATH}"
    written = WriteResult(WriteOutcome.WRITTEN, "", before, folder)
    assert writer.write(CONTAINER, wanted, known) == written
    assert (tree.reads, text(tmp_path, f"cpuset/{PATH}/cpuset.cpus")) == ([], "2-3")
    # What is known is trusted: comparisons name nothing as known.
    assert writer.write(CONTAINER, CpusetValues(known), known).outcome == "unchanged"
    assert tree.reads == []


def test_known_cpus_are_restored(tmp_path: Path) -> None:
    tree_with(tmp_path, V1 | v1(PATH, "0-7"))
    writer = CgroupWriter(CountingTree(tmp_path, {"cpuset.mems": errno.EBUSY}))

    result = writer.write(CONTAINER, VALUES, CpuSet.parse("0-7"))
    assert result.outcome is WriteOutcome.FAILED
    assert text(tmp_path, f"cpuset/{PATH}/cpuset.cpus") == "0-7"


def test_of_two_cgroups_known_cpus_are_read(tmp_path: Path) -> None:
    """The outer one may have more."""
    tree_with(tmp_path, V2 | v2(PATH, "0-7") | v2(INNER, "0-3"))
    writer = CgroupWriter(WritableHostTree(tmp_path))

    writer.write(CONTAINER, CpusetValues(VALUES.cpus), CpuSet.parse("0-3"))
    assert text(tmp_path, f"{PATH}/cpuset.cpus") == "2-3"
    assert text(tmp_path, f"{INNER}/cpuset.cpus") == "2-3"


@pytest.mark.parametrize(
    ("files", "shares", "written", "before"),
    [
        pytest.param(
            V2 | v2(PATH, "0", weight="79"), 2048, "79", 2048, id="of an older runtime"
        ),
        pytest.param(
            V2 | v2(PATH, "0", weight="173"), 2048, "173", 2048, id="rounded otherwise"
        ),
        pytest.param(
            V2 | v2(PATH, "0", weight="100"), 2048, "174", 0, id="of other shares"
        ),
        pytest.param(V2 | v2(PATH, "0"), 0, "100", 0, id="none are wanted"),
        pytest.param(V2 | v2(PATH, "0"), 1, "1", 0, id="fewer than there can be"),
        pytest.param(V1 | v1(PATH, "0"), 1, "2", 1024, id="fewer, version 1"),
    ],
)
def test_a_weight_that_a_runtime_makes_of_the_shares_stays(
    tmp_path: Path, files: Mapping[str, str], shares: int, written: str, before: int
) -> None:
    writer = writer_of(tmp_path, files)
    result = writer.write(CONTAINER, CpusetValues(shares=shares))

    assert result.before == CpusetValues(shares=before)
    is_v2 = "cgroup.controllers" in files
    file = f"{PATH}/cpu.weight" if is_v2 else f"cpu/{PATH}/cpu.shares"
    assert text(tmp_path, file) == written
    again = writer.write(CONTAINER, CpusetValues(shares=shares))
    assert again.outcome is WriteOutcome.UNCHANGED


def test_a_cgroup_below_is_found_that_comes_after_the_scope(tmp_path: Path) -> None:
    """A scope without processes may be one that crun is about to fill."""
    writer = writer_of(tmp_path, V2 | v2(PATH, "0-7") | {f"{PATH}/cgroup.procs": ""})
    writer.write(CONTAINER, CpusetValues(CpuSet.of(1)))
    tree_with(tmp_path, v2(INNER, "0-7"))
    writer.write(CONTAINER, CpusetValues(CpuSet.of(1)))

    assert text(tmp_path, f"{INNER}/cpuset.cpus") == "1"


def test_a_container_is_found_by_its_process(tmp_path: Path) -> None:
    writer = writer_of(tmp_path, V1 | v1("other/c1", "0-7"))
    proc = tmp_path / "proc/42"
    proc.mkdir(parents=True)
    (proc / "cgroup").write_text("3:cpuset:/other/c1\n")
    whom = CgroupReference("c1", "/no/such", pid=42)

    assert writer.cpuset_files(whom)
    assert writer.write(whom, VALUES).outcome is WriteOutcome.WRITTEN
    assert text(tmp_path, "cpuset/other/c1/cpuset.cpus") == "2-3"


def test_places_of_other_containers_are_discarded(tmp_path: Path) -> None:
    tree_with(tmp_path, V1 | v1(PATH, "0-7") | v1(f"{POD}/c2", "0-7"))
    tree = CountingTree(tmp_path)
    writer = CgroupWriter(tree)
    other = CgroupReference("c2", f"/{POD}/c2")
    assert writer.cpuset_files(CONTAINER)
    assert writer.cpuset_files(other)
    writer.keep_only(["c2", "c3"])

    searched = []
    for one in (CONTAINER, other):
        tree.reads.clear()
        writer.write(one, CpusetValues(VALUES.cpus))
        searched.append(any(path.endswith("/cgroup.procs") for path in tree.reads))
    assert searched == [True, False]


def test_a_container_without_cgroup_is_absent(tmp_path: Path) -> None:
    writer = writer_of(tmp_path, V1)

    assert writer.write(CONTAINER, VALUES) == WriteResult(WriteOutcome.ABSENT)
    assert writer.read(CONTAINER) is None
    assert not writer.cpuset_files(CONTAINER)


CANNOT: Final = f"cannot write '2-3' to /{MOUNT}/cpuset/{PATH}/cpuset.cpus: "


@pytest.mark.parametrize(
    ("file", "number", "why"),
    [
        pytest.param(
            "cpuset.cpus",
            errno.EBUSY,
            f"{CANNOT}device or resource busy "
            "(a cgroup that the container made below has others)",
            id="CPUs of a cgroup below",
        ),
        pytest.param(
            "cpuset.cpus",
            errno.EINVAL,
            f"{CANNOT}invalid argument (some are offline, or exclusive to another "
            "cgroup)",
            id="CPUs that are offline",
        ),
        pytest.param(
            "cpuset.cpus",
            errno.EACCES,
            f"{CANNOT}permission denied (run as root with write access to the host's "
            "cgroups)",
            id="no permission",
        ),
        pytest.param(
            "cpuset.cpus",
            errno.ENOSPC,
            f"{CANNOT}no space left on device",
            id="another error",
        ),
        pytest.param(
            "cpu.shares",
            errno.EINVAL,
            f"cannot write '2048' to /{MOUNT}/cpu/{PATH}/cpu.shares: invalid argument "
            "(cpu.idle is set)",
            id="weights",
        ),
        pytest.param(
            "cpuset.mems",
            errno.EINVAL,
            f"cannot write '1' to /{MOUNT}/cpuset/{PATH}/cpuset.mems: invalid argument "
            "(some have no memory, or are exclusive to another cgroup)",
            id="nodes",
        ),
    ],
)
def test_a_failure_names_the_remedy_and_changes_nothing(
    tmp_path: Path, file: str, number: int, why: str
) -> None:
    files = V1 | v1(PATH, "0-7")
    tree_with(tmp_path, files)
    writer = CgroupWriter(CountingTree(tmp_path, {file: number}))

    assert writer.write(CONTAINER, VALUES) == WriteResult(WriteOutcome.FAILED, why)
    assert {one: text(tmp_path, one) for one in files} == files


class NestingKernel(KernelModel):
    """Has at most one cgroup below each other, ``a``."""

    def names(self, path: str) -> tuple[str, ...]:
        return () if self.read(f"{path}/cgroup.procs") is None else ("a",)


@pytest.mark.parametrize("depth", [0, 1, 1200])
def test_processes_in_deeply_nested_cgroups_are_found(depth: int) -> None:
    """Containers may nest cgroups deeper than Python nests calls."""
    top = f"/{MOUNT}/cpuset"
    sets = {f"{top}/cpuset.cpus": "0-7", f"{top}/{PATH}/cpuset.cpus": "0-7"}
    nested = [f"{top}/{PATH}{at * '/a'}/cgroup.procs" for at in range(depth + 1)]
    kernel = NestingKernel(sets, dict.fromkeys(nested, ""), is_v2=False)
    beyond = CpusetValues(CpuSet.of(9), NodeSet.of(1))
    ended = CgroupWriter(kernel).write(CONTAINER, beyond).outcome
    kernel.others[nested[-1]] = "42"

    assert ended is WriteOutcome.ABSENT
    assert CgroupWriter(kernel).write(CONTAINER, beyond).outcome is WriteOutcome.FAILED


def test_processes_in_one_of_several_cgroups_are_found(tmp_path: Path) -> None:
    files = V1 | v1(PATH, "0-7") | {f"cpuset/{PATH}/cgroup.procs": ""}
    below = {"a": "42", "b": "", "b/c": ""}
    files |= {f"cpuset/{PATH}/{at}/cgroup.procs": below[at] for at in below}
    tree_with(tmp_path, files)
    writer = CgroupWriter(CountingTree(tmp_path, {"cpuset.cpus": errno.EBUSY}))

    assert writer.write(CONTAINER, VALUES).outcome is WriteOutcome.FAILED


def test_after_a_failure_empty_sets_get_the_values_that_were_in_force() -> None:
    """Version 2 rejects empty sets of cgroups with processes."""
    top, folder = f"/{MOUNT}", f"/{MOUNT}/{PATH}"
    sets = {f"{at}/cpuset.cpus": "0-7" for at in (top, f"{top}/{POD}")}
    sets |= {f"{at}/cpuset.mems": "0-1" for at in (top, f"{top}/{POD}")}
    sets |= {f"{folder}/cpuset.cpus": "", f"{folder}/cpuset.mems": ""}
    others = {f"{top}/cgroup.controllers": "cpuset", f"{folder}/cgroup.procs": "42"}
    kernel = KernelModel(sets, others, is_v2=True)
    values = CpusetValues(CpuSet.of(1), NodeSet.of(2))
    result = CgroupWriter(kernel).write(CONTAINER, values)

    assert result == WriteResult(
        WriteOutcome.FAILED,
        f"cannot write '2' to {folder}/cpuset.mems: invalid argument "
        "(some have no memory, or are exclusive to another cgroup)",
    )
    assert str(kernel.in_force(f"{folder}/cpuset.cpus")) == "0-7"


def test_values_that_cannot_be_restored_are_in_the_reason(tmp_path: Path) -> None:
    tree_with(tmp_path, V1 | v1(PATH, "0-7"))

    class OnceTree(CountingTree):
        def write(self, path: str, text: str) -> None:
            super().write(path, text)
            self.answers = {"cpuset.mems": errno.EIO, "cpuset.cpus": errno.EBUSY}

    tree = OnceTree(tmp_path)
    result = CgroupWriter(tree).write(CONTAINER, VALUES)

    assert result.why == (
        f"cannot write '1' to /{MOUNT}/cpuset/{PATH}/cpuset.mems: input/output error; "
        f"restoring failed as well: cannot write '0-7' to "
        f"/{MOUNT}/cpuset/{PATH}/cpuset.cpus: device or resource busy "
        "(a cgroup that the container made below has others)"
    )
    assert text(tmp_path, f"cpu/{PATH}/cpu.shares") == "1024"


@pytest.mark.parametrize(
    ("missing", "written"),
    [
        pytest.param(f"{PATH}/cpuset.cpus", "2-3", id="CPUs"),
        pytest.param(f"{PATH}/cpuset.mems", "1", id="nodes"),
        pytest.param(f"{PATH}/cpu.weight", "174", id="weights"),
    ],
)
def test_a_controller_that_is_not_enabled_is_a_failure(
    tmp_path: Path, missing: str, written: str
) -> None:
    files = V2 | v2(PATH, "0-7")
    del files[missing]
    writer = writer_of(tmp_path, files)

    assert writer.write(CONTAINER, VALUES) == WriteResult(
        WriteOutcome.FAILED,
        f"cannot write {written!r} to /{MOUNT}/{missing}: no such file or directory "
        "(the container's cgroup does not have this controller)",
    )
    assert {one: text(tmp_path, one) for one in files} == files


def test_a_bad_file_is_a_failure(tmp_path: Path) -> None:
    writer = writer_of(tmp_path, V1 | v1(PATH, "nonsense"))
    result = writer.write(CONTAINER, VALUES)

    assert result.outcome is WriteOutcome.FAILED
    assert f"/{MOUNT}/cpuset/{PATH}/cpuset.cpus: not a CPU" in result.why
    with pytest.raises(BadHostFile):
        writer.read(CONTAINER)


@pytest.mark.parametrize(
    ("files", "why"),
    [
        pytest.param(V1, "", id="version 1"),
        pytest.param(HYBRID, "", id="both versions mounted"),
        pytest.param(V2, "", id="version 2"),
        pytest.param(
            {"cgroup.controllers": "cpu io", "cgroup.procs": ""},
            "no cpuset controller in /sys/fs/cgroup (mount the host's /sys/fs/cgroup)",
            id="version 2 without cpusets",
        ),
        pytest.param(
            {},
            "no cpuset controller in /sys/fs/cgroup/cpuset "
            "(mount the host's /sys/fs/cgroup)",
            id="no cgroups",
        ),
    ],
)
def test_a_host_without_writable_cgroups_is_reported(
    tmp_path: Path, files: Mapping[str, str], why: str
) -> None:
    assert writer_of(tmp_path, files).why_unwritable() == why
