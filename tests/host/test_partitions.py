"""Partitions of cgroups are made, changed and ended."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.classes.isolation.partitions import PartitionKind, PartitionWish
from nri_resmgr.host.cgroups.partitions import (
    IN_FORCE,
    Added,
    PartitionJournal,
    PartitionWriter,
    why_no_partitions,
)
from nri_resmgr.host.recorded import RecordedTree
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.values import CpuSet
from tests.examples import examples
from tests.host.partition_kernel import NOT_EXCLUSIVE, TOP, PartitionKernel

CPUS: Final = CpuSet.parse("0-7")
FOLDERS: Final = ("sys", "k", "k/p", "k/p/a", "k/p/b", "k/q", "k/q/c", "other")
EVERYWHERE: Final = {"k/p/a": "a", "k/p/b": "b", "k/q/c": "c"}


def kernel() -> PartitionKernel:
    return PartitionKernel(CPUS, FOLDERS)


def wish(folder: str, cpus: str, kind: str = "root") -> PartitionWish:
    path = f"{TOP}/{folder}"
    cpuset = CpuSet.parse(cpus)
    return PartitionWish(folder[-1], path, TOP, cpuset, PartitionKind(kind))


def test_cpus_are_handed_down_before_and_taken_after_a_partition() -> None:
    host = kernel()
    writer = PartitionWriter(host, None)

    assert writer.apply([wish("k/p/a", "2-3")]) == {"a": IN_FORCE}
    assert host.writes == [
        ("k/cpuset.cpus.exclusive", "2-3"),
        ("k/p/cpuset.cpus.exclusive", "2-3"),
        ("k/p/a/cpuset.cpus.exclusive", "2-3"),
        ("k/p/a/cpuset.cpus.partition", "root"),
    ]
    assert str(host.effective("sys")) == "0-1,4-7"
    assert str(host.effective("k/p/a")) == "2-3"

    host.writes.clear()
    writer.apply(())
    assert host.writes == [
        ("k/p/a/cpuset.cpus.partition", "member"),
        ("k/p/a/cpuset.cpus.exclusive", ""),
        ("k/p/cpuset.cpus.exclusive", ""),
        ("k/cpuset.cpus.exclusive", ""),
    ]
    assert writer.is_idle


def test_a_partition_that_is_in_force_is_not_written_again() -> None:
    host = kernel()
    writer = PartitionWriter(host, None)
    writer.apply([wish("k/p/a", "2-3")])
    host.writes.clear()

    both = [wish("k/p/a", "2-3"), wish("k/q/c", "4", "isolated")]
    assert writer.apply(both) == {"a": IN_FORCE, "c": IN_FORCE}
    assert [path for path, _ in host.writes if path.startswith("k/p")] == []
    assert writer.apply(both) == writer.look(both)


def test_two_containers_swap_their_cpus() -> None:
    host = kernel()
    writer = PartitionWriter(host, None)
    writer.apply([wish("k/p/a", "2"), wish("k/q/c", "3")])
    found = writer.apply([wish("k/p/a", "3"), wish("k/q/c", "2")])

    assert found == {"a": IN_FORCE, "c": IN_FORCE}
    assert str(host.effective("k/p/a")) == "3"


@pytest.mark.parametrize("cpus", ["2-4", "3", "3-5"])
def test_a_partition_that_keeps_a_cpu_never_ends(cpus: str) -> None:
    host = kernel()
    writer = PartitionWriter(host, None)
    writer.apply([wish("k/p/a", "2-3")])
    host.writes.clear()
    found = writer.apply([wish("k/p/a", cpus)])

    assert found == {"a": IN_FORCE}
    assert str(host.effective("k/p/a")) == cpus
    assert [path for path, _ in host.writes if path.endswith("partition")] == []


def test_cpus_of_other_programs_stay_in_the_same_files() -> None:
    host = kernel()
    host.write(f"{TOP}/k/cpuset.cpus.exclusive", "6")
    writer = PartitionWriter(host, None)
    writer.apply([wish("k/p/a", "2-3")])
    host.write(f"{TOP}/k/cpuset.cpus.exclusive", "2-3,5-6")
    writer.apply([wish("k/p/a", "2")])

    assert host.exclusive() == {"k": "2,5-6", "k/p": "2", "k/p/a": "2"}

    writer.apply(())
    assert host.exclusive() == {"k": "5-6"}


def test_a_partition_of_another_program_is_left_alone() -> None:
    host = kernel()
    host.write(f"{TOP}/k/cpuset.cpus.exclusive", "2-6")
    host.write(f"{TOP}/k/cpuset.cpus.partition", "root")
    writer = PartitionWriter(host, None)
    writer.apply([wish("k/p/a", "2-3")])
    writer.apply(())

    assert host.read(f"{TOP}/k/cpuset.cpus.partition") == "root"
    assert host.exclusive() == {"k": "2-6"}


def test_a_removed_container_leaves_no_exclusive_cpus_above() -> None:
    host = kernel()
    writer = PartitionWriter(host, None)
    writer.apply([wish("k/p/a", "2"), wish("k/q/c", "3")])
    host.remove("k/p/a")
    writer.apply([wish("k/q/c", "3")])

    assert host.exclusive() == {"k": "3", "k/q": "3", "k/q/c": "3"}

    host.remove("k/q/c")
    host.remove("k/q")
    found = writer.apply([wish("k/q/c", "3")])
    assert found["c"].why == "the cgroup is gone"
    assert host.exclusive() == {}
    assert writer.is_idle


def test_a_partition_that_the_kernel_refuses_is_explained_and_undone() -> None:
    host = kernel()
    host.write(f"{TOP}/k/p/b/cpuset.cpus", "0-2")
    writer = PartitionWriter(host, None)
    found = writer.apply([wish("k/p/a", "2"), wish("k/q/c", "3")])

    assert found["c"] == IN_FORCE
    assert found["a"].why == (
        f"{TOP}/k/p/a/cpuset.cpus.partition: root invalid ({NOT_EXCLUSIVE}): "
        "another cgroup in the same pod may use one of the CPUs: its cpuset.cpus has it"
    )
    assert host.read(f"{TOP}/k/p/a/cpuset.cpus.partition") == "member"
    assert host.exclusive() == {"k": "3", "k/q": "3", "k/q/c": "3"}


def test_cpus_that_another_program_has_are_refused() -> None:
    host = kernel()
    host.write(f"{TOP}/other/cpuset.cpus.exclusive", "2")
    writer = PartitionWriter(host, None)
    found = writer.apply([wish("k/p/a", "2")])

    assert found["a"].why == (
        f"cannot write '2' to {TOP}/k/cpuset.cpus.exclusive: invalid argument; a "
        "cgroup beside it has some of these CPUs in cpuset.cpus.exclusive, or only "
        "these in cpuset.cpus"
    )
    assert host.exclusive() == {"other": "2"}
    assert writer.is_idle


def test_a_partition_that_becomes_invalid_is_a_member_at_once() -> None:
    host = kernel()
    writer = PartitionWriter(host, None)
    wanted = [wish("k/p/a", "2")]
    writer.apply(wanted)
    host.write(f"{TOP}/k/p/b/cpuset.cpus", "0-7")

    assert not writer.look(wanted)["a"].is_valid
    assert not writer.apply(wanted)["a"].is_valid
    assert host.read(f"{TOP}/k/p/a/cpuset.cpus.partition") == "member"

    host.write(f"{TOP}/k/p/b/cpuset.cpus", "0")
    assert writer.apply(wanted) == {"a": IN_FORCE}


@pytest.mark.parametrize("is_older", [False, True])
def test_a_partition_without_its_cpus_is_made_again(*, is_older: bool) -> None:
    """Releases of Linux differ in what becomes of it."""
    host = PartitionKernel(CPUS, FOLDERS, is_older=is_older)
    writer = PartitionWriter(host, None)
    wanted = [wish("k/p/a", "2-3")]
    writer.apply(wanted)
    host.write(f"{TOP}/k/cpuset.cpus.exclusive", "")

    assert not writer.look(wanted)["a"].is_valid
    assert writer.apply(wanted) == {"a": IN_FORCE}
    assert host.exclusive() == dict.fromkeys(("k", "k/p", "k/p/a"), "2-3")

    host.write(f"{TOP}/k/cpuset.cpus.exclusive", "")
    writer.apply(())
    assert host.read(f"{TOP}/k/p/a/cpuset.cpus.partition") == "member"
    assert not host.exclusive()


def test_the_next_process_ends_partitions_of_removed_containers(tmp_path: Path) -> None:
    state = StateDir.open(str(tmp_path / "state"))
    host = kernel()
    host.write(f"{TOP}/k/cpuset.cpus.exclusive", "6")
    PartitionWriter(host, PartitionJournal(state, "boot")).apply(
        [wish("k/p/a", "2"), wish("k/q/c", "3")]
    )
    host.remove("k/p/a")
    after = PartitionWriter(host, PartitionJournal(state, "boot"))
    host.writes.clear()

    assert after.apply([wish("k/q/c", "3")]) == {"c": IN_FORCE}
    assert host.writes == [
        ("k/p/cpuset.cpus.exclusive", ""),
        ("k/cpuset.cpus.exclusive", "3,6"),
    ]
    after.apply(())
    assert host.exclusive() == {"k": "6"}
    assert state.read("partitions") is None
    state.close()


def test_cpus_that_a_killed_process_has_only_journaled_refuse_no_others(
    tmp_path: Path,
) -> None:
    state = StateDir.open(str(tmp_path / "state"))
    before = {f"{TOP}/k": Added(CpuSet.parse("2-5"))}
    PartitionJournal(state, "boot").write(before)
    host = kernel()
    host.write(f"{TOP}/other/cpuset.cpus.exclusive", "2,5")
    writer = PartitionWriter(host, PartitionJournal(state, "boot"))
    found = writer.apply([wish("k/p/a", "2"), wish("k/p/b", "5"), wish("k/q/c", "3")])

    assert [found[name].is_valid for name in "abc"] == [False, False, True]
    below = dict.fromkeys(("k", "k/q", "k/q/c"), "3")
    assert host.exclusive() == {"other": "2,5"} | below
    state.close()


def test_a_journal_never_leads_out_of_the_cgroups(tmp_path: Path) -> None:
    state = StateDir.open(str(tmp_path / "state"))
    head = '{"journal": "", "format": 1, "boot": "b", "added": '
    for path in ("/etc/x", "/sys/fs/cgroup/../../kernel", "/sys/kernel"):
        state.write("partitions", head + f'{{"{path}": {{"cpus": "2"}}}}}}')
        journal = PartitionJournal(state, "b")

        assert PartitionWriter(kernel(), journal).is_idle
        assert journal.set_aside
    state.close()


EACH_CPU: Final = st.dictionaries(
    st.integers(0, 6), st.sampled_from(sorted(EVERYWHERE)), max_size=5
)


@given(rounds=st.lists(EACH_CPU, max_size=4), foreign=st.sets(st.integers(0, 6)))
@examples(0.5)
def test_wherever_cpus_go_they_are_exclusive_and_come_back(
    rounds: list[dict[int, str]], foreign: set[int]
) -> None:
    host = kernel()
    before = str(CpuSet.of(*foreign))
    host.write(f"{TOP}/k/cpuset.cpus.exclusive", before)
    writer = PartitionWriter(host, None)
    for placed in rounds:
        cpus: dict[str, list[int]] = {}
        for cpu, folder in placed.items():
            cpus.setdefault(folder, []).append(cpu)
        wanted = [wish(one, str(CpuSet.of(*each))) for one, each in cpus.items()]
        found = writer.apply(wanted)

        assert found == {one[-1]: IN_FORCE for one in cpus}
        for one, each in cpus.items():
            assert host.effective(one) == CpuSet.of(*each)
        assert host.effective("sys") == CPUS - CpuSet.of(*placed)
    writer.apply(())

    assert host.exclusive() == ({"k": before} if before else {})
    assert host.effective("sys") == CPUS


KUBEPODS: Final = f"{TOP}/kubepods.slice"
V2: Final = {f"{TOP}/cgroup.controllers": "cpuset"}


@pytest.mark.parametrize(
    ("files", "why"),
    [
        pytest.param({}, "cgroups are not mounted at /sys/fs/cgroup", id="nothing"),
        pytest.param(
            {f"{TOP}/cpuset/cpuset.cpus": "0"},
            "this host has cgroup v1; partitions need cgroup v2",
            id="version 1",
        ),
        pytest.param(
            V2 | {f"{KUBEPODS}/cpuset.cpus.partition": "member"},
            "the kernel has no cpuset.cpus.exclusive, Linux 6.7 has",
            id="an older kernel",
        ),
        pytest.param(
            V2
            | {
                f"{KUBEPODS}/cpuset.cpus.exclusive": "",
                "/proc/sys/kernel/osrelease": "5.14.0-427.el9.x86_64",
            },
            "",
            id="an older kernel of a distribution that brought it there",
        ),
        pytest.param(
            V2 | {"/proc/sys/kernel/osrelease": "5.15.0-100-generic"},
            "partitions need Linux 6.7, this is 5.15.0-100-generic",
            id="an older kernel, before any cgroup",
        ),
        pytest.param(
            V2 | {"/proc/sys/kernel/osrelease": "6.12.1"}, "", id="a new kernel"
        ),
    ],
)
def test_whether_a_host_can_have_partitions(files: dict[str, str], why: str) -> None:
    assert why_no_partitions(RecordedTree(files)) == why
