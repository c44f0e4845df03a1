"""A real kernel keeps all other processes off the CPUs of a partition."""

from __future__ import annotations

import select
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from nri_resmgr.classes.isolation.partitions import PartitionKind, PartitionWish
from nri_resmgr.host.boot_journal import boot_of
from nri_resmgr.host.cgroups.partition_watch import PartitionWatch
from nri_resmgr.host.cgroups.partitions import (
    IN_FORCE,
    PartitionJournal,
    PartitionWriter,
    why_no_partitions,
)
from nri_resmgr.host.knobs.files import WritableHostTree, WritableTree
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.values import CpuSet
from tests.host.partition_kernel import PartitionKernel

pytestmark = pytest.mark.numa

TOP: Final = Path("/sys/fs/cgroup")
TREE: Final = WritableHostTree("/")
ONLINE: Final = CpuSet.parse("0-15")
CONTAINERS: Final = {
    "k/pod1/web": "0-7",  # shares its CPUs, and has a pod of its own
    "k/pod2/db": "2-3",
    "k/pod2/log": "0-1,4-7",
    "k/pod3/cache": "4-5",
}


@contextmanager
def cgroups(containers: dict[str, str]) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """Make cgroups of containers and of a service, with a process in each."""
    (TOP / "cgroup.subtree_control").write_text("+cpuset +cpu")
    folders = ["system.slice"]
    for name in containers:
        path = Path(name)
        folders += [str(one) for one in reversed(path.parents) if str(one) != "."]
        folders.append(name)
    folders = list(dict.fromkeys(folders))
    running = {}
    for one in folders:
        (TOP / one).mkdir()
        if one in (*containers, "system.slice"):
            running[one] = process = subprocess.Popen(["sleep", "1000"])
            if one in containers:
                (TOP / one / "cpuset.cpus").write_text(containers[one])
            (TOP / one / "cgroup.procs").write_text(str(process.pid))
        else:
            (TOP / one / "cgroup.subtree_control").write_text("+cpuset +cpu")
    try:
        yield running
    finally:
        for process in running.values():
            process.kill()
            process.wait()
        for one in reversed(folders):
            if (TOP / one).exists():
                remove(one)


def remove(folder: str) -> None:
    """Remove a cgroup whose processes are killed."""
    assert subprocess.run(
        ["sh", "-c", f"until rmdir {TOP / folder}; do sleep 0.02; done"],
        timeout=60,
        check=True,
        capture_output=True,
    )


def text(path: str) -> str:
    return (TOP / path).read_text().strip()


def allowed(processes: dict[str, subprocess.Popen[bytes]]) -> dict[str, str]:
    """Return the CPUs that each process may run on, by its cgroup."""
    found = {}
    for name, process in processes.items():
        status = Path(f"/proc/{process.pid}/status").read_text()
        [row] = (r for r in status.splitlines() if r.startswith("Cpus_allowed_list"))
        found[name] = row.split()[1]
    return found


def wish(folder: str, cpus: str, kind: str = "root") -> PartitionWish:
    path, top = str(TOP / folder), str(TOP)
    return PartitionWish(
        folder.rpartition("/")[2], path, top, CpuSet.parse(cpus), PartitionKind(kind)
    )


def writer_in(folder: Path) -> PartitionWriter:
    state = StateDir.open(str(folder))
    return PartitionWriter(TREE, PartitionJournal(state, boot_of(TREE)))


def reclaim_threads() -> dict[str, str]:
    """Return the CPUs of the kernel's threads that reclaim memory of node 0 or 1."""
    found = {}
    for status in Path("/proc").glob("[0-9]*/status"):
        rows = dict(row.split(":\t", 1) for row in status.read_text().splitlines())
        if rows["Name"] in ("kswapd0", "kswapd1", "kcompactd0", "kcompactd1"):
            found[rows["Name"]] = rows["Cpus_allowed_list"]
    return found


@pytest.mark.parametrize("kind", ["root", "isolated"])
@pytest.mark.parametrize(
    ("partition", "node", "left"),
    [
        pytest.param("2-3", 0, "0-1", id="half a node"),
        pytest.param("4-7", 1, "0-3,8-15", id="a whole node"),
    ],
)
def test_memory_is_reclaimed_by_cpus_of_its_node(
    kind: str, partition: str, node: int, left: str, tmp_path: Path
) -> None:
    own = {"kswapd0": "0-3", "kcompactd0": "0-3", "kswapd1": "4-7", "kcompactd1": "4-7"}
    writer = writer_in(tmp_path / "state")
    writer.apply(())
    before = reclaim_threads()
    with cgroups({"k/pod2/db": partition}) as processes:
        made = writer.apply([wish("k/pod2/db", partition, kind)])
        during = reclaim_threads()
        processes["k/pod2/db"].kill()
        processes.pop("k/pod2/db").wait()
        remove("k/pod2/db")
        writer.apply(())
        after = reclaim_threads()

    assert made == {"db": IN_FORCE}
    assert before == after == own
    assert during == own | {f"kswapd{node}": left, f"kcompactd{node}": left}
    assert writer.reclaim.problem == ""


def test_services_and_other_containers_are_kept_off(tmp_path: Path) -> None:
    assert why_no_partitions(TREE) == ""
    with cgroups(CONTAINERS) as processes:
        before = allowed(processes)
        writer = writer_in(tmp_path / "state")
        both = [wish("k/pod2/db", "2-3"), wish("k/pod3/cache", "4-5", "isolated")]

        assert writer.apply(both[:1]) == {"db": IN_FORCE}
        assert text("k/pod2/db/cpuset.cpus.partition") == "root"
        assert allowed(processes) == before | {
            "system.slice": "0-1,4-15",
            "k/pod1/web": "0-1,4-7",
            "k/pod2/db": "2-3",
        }
        (TOP / "k/pod2/log/cpuset.cpus").write_text("0-1,6-7")
        assert writer.apply(both) == {"db": IN_FORCE, "cache": IN_FORCE}
        assert text("system.slice/cpuset.cpus.effective") == "0-1,6-15"
        assert text("k/pod1/web/cpuset.cpus.effective") == "0-1,6-7"
        # By affinity neither.
        pid = processes["system.slice"].pid
        refused = subprocess.run(
            ["taskset", "-pc", "2-3", str(pid)], check=False, capture_output=True
        )
        assert refused.returncode
        assert text("cpuset.cpus.isolated") == "4-5,14-15"

        # Without a write to any other cgroup the others have their CPUs back.
        processes["k/pod2/db"].kill()
        processes.pop("k/pod2/db").wait()
        remove("k/pod2/db")
        assert text("k/pod1/web/cpuset.cpus.effective") == "0-3,6-7"
        assert writer.apply(both[1:]) == {"cache": IN_FORCE}
        assert text("k/cpuset.cpus.exclusive") == "4-5"
        assert text("k/pod2/cpuset.cpus.exclusive") == ""
        writer.apply(())
        assert text("k/cpuset.cpus.exclusive") == ""
        assert allowed(processes)["system.slice"] == before["system.slice"]


def test_cpus_of_a_partition_change_while_it_is_in_force(tmp_path: Path) -> None:
    names = {"k/pod2/db": "2-3", "k/pod3/cache": "4-5"}
    with cgroups(names) as processes:
        writer = writer_in(tmp_path / "state")
        rounds = (("2-3", "4-5"), ("2-4", "5"), ("4-6", "2"), ("2", "4-6"), ("8", "9"))
        for db, cache in rounds:
            wanted = [wish("k/pod2/db", db), wish("k/pod3/cache", cache)]
            assert writer.apply(wanted) == {"db": IN_FORCE, "cache": IN_FORCE}
            found = allowed(processes)
            assert (found["k/pod2/db"], found["k/pod3/cache"]) == (db, cache)
            free = ONLINE - CpuSet.parse(f"{db},{cache}")
            assert text("system.slice/cpuset.cpus.effective") == str(free)
        # What a runtime writes to the container's own cpuset changes nothing.
        (TOP / "k/pod2/db/cpuset.cpus").write_text("0-7")
        assert allowed(processes)["k/pod2/db"] == "8"
        writer.apply(())


def test_an_invalid_partition_is_explained_and_undone(tmp_path: Path) -> None:
    with cgroups(CONTAINERS | {"k/pod2/log": "0-7"}) as processes:
        before = allowed(processes)
        writer = writer_in(tmp_path / "state")
        wanted = [wish("k/pod2/db", "2-3")]
        path = "k/pod2/db/cpuset.cpus.partition"
        why = writer.apply(wanted)["db"].why

        assert why == (
            f"{TOP / path}: root invalid (Cpu list in cpuset.cpus not exclusive): "
            "another cgroup in the same pod may use one of the CPUs: its cpuset.cpus "
            "has it"
        )
        assert text(path) == "member"
        assert text("k/cpuset.cpus.exclusive") == ""
        assert allowed(processes) == before

        (TOP / "k/pod2/log/cpuset.cpus").write_text("0-1")
        assert writer.apply(wanted) == {"db": IN_FORCE}
        # The CPUs are in use by no partition, but hidden from all others as well, until
        # the cgroup is a member again.
        (TOP / "k/pod2/log/cpuset.cpus").write_text("0-7")
        assert not writer.look(wanted)["db"].is_valid
        assert not writer.apply(wanted)["db"].is_valid
        assert allowed(processes) == before
        (TOP / "k/pod2/log/cpuset.cpus").write_text("0-1")
        assert writer.apply(wanted) == {"db": IN_FORCE}
        writer.apply(())


def test_cpus_that_another_program_hands_out_are_refused(tmp_path: Path) -> None:
    with cgroups(CONTAINERS):
        (TOP / "system.slice/cpuset.cpus.exclusive").write_text("2,10")
        writer = writer_in(tmp_path / "state")
        why = writer.apply([wish("k/pod2/db", "2-3")])["db"].why

        assert why.startswith(
            f"cannot write '2-3' to {TOP}/k/cpuset.cpus.exclusive: invalid argument; "
        )
        assert writer.is_idle
        assert text("k/pod2/db/cpuset.cpus.partition") == "member"


def test_the_next_process_takes_over_and_ends(tmp_path: Path) -> None:
    with cgroups(CONTAINERS) as processes:
        (TOP / "k/cpuset.cpus.exclusive").write_text("12")
        first = writer_in(tmp_path / "state")
        first.apply([wish("k/pod2/db", "2-3"), wish("k/pod3/cache", "8")])
        del first
        processes["k/pod2/db"].kill()
        processes.pop("k/pod2/db").wait()
        remove("k/pod2/db")
        second = PartitionWriter(
            TREE,
            PartitionJournal(StateDir.unopened(str(tmp_path / "state")), boot_of(TREE)),
        )

        assert second.apply([wish("k/pod3/cache", "8")]) == {"cache": IN_FORCE}
        assert text("k/cpuset.cpus.exclusive") == "8,12"
        second.apply(())
        assert text("k/cpuset.cpus.exclusive") == "12"


def test_the_kernel_notifies_of_each_change_once(tmp_path: Path) -> None:
    def is_readable(within: float) -> bool:
        return bool(select.select([watch], [], [], within)[0])

    watch = PartitionWatch(TREE)
    with cgroups(CONTAINERS) as processes:
        writer = writer_in(tmp_path / "state")
        writer.apply([wish("k/pod2/db", "2-3")])
        watch.watch([str(TOP / "k/pod2/db"), str(TOP / "k/not-there")])
        assert not is_readable(0.1)

        (TOP / "k/pod2/log/cpuset.cpus").write_text("0-7")
        assert is_readable(10)
        watch.clear()
        assert not is_readable(0.1)

        writer.apply(())
        assert is_readable(10)
        processes["k/pod2/db"].kill()
        processes.pop("k/pod2/db").wait()
        remove("k/pod2/db")
        watch.clear()
        assert not is_readable(0.1)
    watch.close()


WRITES: Final = (
    ("k/pod1/web/cpuset.cpus", "0-7"),
    ("k/pod2/db/cpuset.cpus", "2-3"),
    ("k/pod2/log/cpuset.cpus", "0-1"),
    ("k/cpuset.cpus.exclusive", "2-3,8"),
    ("system.slice/cpuset.cpus.exclusive", "8-9"),
    ("k/pod2/cpuset.cpus.exclusive", "2-3"),
    ("k/pod2/db/cpuset.cpus.exclusive", "2-3"),
    ("k/pod1/cpuset.cpus.exclusive", "3"),
    ("k/pod2/db/cpuset.cpus.partition", "root"),
    ("k/pod2/db/cpuset.cpus.exclusive", "2"),
    ("k/pod2/db/cpuset.cpus.exclusive", "2-3"),
    ("k/cpuset.cpus.exclusive", "8"),
    ("k/cpuset.cpus.exclusive", "2-3"),
    ("k/pod2/db/cpuset.cpus.partition", "isolated"),
    ("k/cpuset.cpus.exclusive", "8"),
    ("k/pod2/db/cpuset.cpus.partition", "isolated"),
    ("k/pod2/db/cpuset.cpus.partition", "member"),
    ("k/cpuset.cpus.exclusive", "2-3"),
    ("k/pod2/log/cpuset.cpus", "0-2"),
    ("k/pod2/db/cpuset.cpus.partition", "root"),
    ("k/pod2/db/cpuset.cpus.partition", "member"),
)


def test_the_kernel_of_other_tests_has_the_same_rules() -> None:
    containers = ("k/pod1/web", "k/pod2/db", "k/pod2/log")
    folders = ("system.slice", "k", "k/pod1", "k/pod2", *containers)
    doubles = [
        PartitionKernel(ONLINE, folders, is_older=is_older)
        for is_older in (False, True)
    ]
    names = ("cpuset.cpus.partition", "cpuset.cpus.exclusive", "cpuset.cpus.effective")
    files = [
        f"{TOP}/{one}/{name}"
        for one in (*containers, "system.slice", "k")
        for name in names
    ]
    with cgroups(dict.fromkeys(containers, "")):
        for path, value in WRITES:
            trees: tuple[WritableTree, ...] = (TREE, *doubles)
            refused = {refusal(tree, path, value) for tree in trees}
            assert len(refused) == 1, path
            found = [TREE.read(file) for file in files]
            # One of both from the first write to the last.
            doubles = [one for one in doubles if [*map(one.read, files)] == found]
            assert doubles, (path, value, dict(zip(files, found, strict=True)))


def refusal(tree: WritableTree, path: str, value: str) -> int | None:
    """Write; return the number of the error, if it is refused."""
    try:
        tree.write(f"{TOP}/{path}", value)
    except OSError as error:
        return error.errno
    return None
