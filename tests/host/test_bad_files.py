"""Bad sysfs files give an error that names them, never a wrong model."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.machine.sysfs_writer import sysfs_files, write_tree
from nri_resmgr.host.recorded import RecordedTree
from nri_resmgr.host.tree import (
    BadHostFile,
    HostTree,
    MissingHostFile,
    UnreadableHostFile,
)
from nri_resmgr.topology import Machine
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import HostError
from tests.examples import examples

CPU = "/sys/devices/system/cpu"
NODE = "/sys/devices/system/node"

# cores {0,4} {1,5} | {2,6} {3,7}; one digit for every id, so a cut one is empty
GOOD = sysfs_files(parse_spec("2s2c2t cluster=1 cxl=1Gi"))


def with_file(path: str, text: str | None) -> RecordedTree:
    """Give the good files with another text in one, or without it."""
    files = {name: old for name, old in GOOD.files.items() if name != path}
    return RecordedTree(files if text is None else files | {path: text}, GOOD.links)


@pytest.mark.parametrize(
    ("path", "text", "why"),
    [
        pytest.param(f"{CPU}/online", "", "no CPU is online", id="no CPU online"),
        pytest.param(f"{CPU}/online", "0-", "not a CPU", id="a list cut short"),
        pytest.param(f"{CPU}/present", "0-3", "lacks online CPU 4-7", id="not present"),
        pytest.param(
            f"{CPU}/cpu0/topology/core_id", "", "not a number: ''", id="an empty number"
        ),
        pytest.param(
            f"{CPU}/cpu0/topology/core_cpus_list", "1", "CPU 0 is not in", id="no self"
        ),
        pytest.param(
            f"{CPU}/cpu4/topology/core_cpus_list",
            "4",
            "4, but that of CPU 0 is 0,4",
            id="siblings that disagree",
        ),
        pytest.param(
            f"{CPU}/cpu1/cache/index0/type", "Odd", "not a type", id="no kind of cache"
        ),
        pytest.param(
            f"{CPU}/cpu1/cache/index2/size", "2", "not a size", id="a size of nothing"
        ),
        pytest.param(
            f"{CPU}/cpu2/cache/index3/shared_cpu_list",
            "0-1",
            "CPU 2 is missing in the list of its own cache",
            id="a cache of others",
        ),
        pytest.param(f"{NODE}/online", "x", "not a CPU or node list", id="no nodes"),
        pytest.param(
            f"{NODE}/node1/cpulist", "1-3,6-7", "CPU 1 is in another", id="two nodes"
        ),
        pytest.param(
            f"{NODE}/node1/cpulist", "2-3,6-8", "CPU 8 does not exist", id="absent"
        ),
        pytest.param(f"{NODE}/node0/meminfo", "", "MemTotal", id="no memory line"),
        pytest.param(
            f"{NODE}/node0/meminfo", "Node 0 MemTotal: 16", "MemTotal", id="cut line"
        ),
        pytest.param(
            f"{NODE}/node1/distance", "21 10", "3 numbers expected", id="a short row"
        ),
        pytest.param(
            f"{NODE}/node1/distance",
            "9 10 9",
            "9 is less than the local distance",
            id="too near",
        ),
        pytest.param(
            f"{NODE}/node1/distance", "a b c", "3 numbers expected", id="no numbers"
        ),
        pytest.param(
            "/sys/devices/cpu_atom/cpus",
            "0-3",
            "only some of CPU 0,4",
            id="half a core",
        ),
    ],
)
def test_a_bad_file_is_named(path: str, text: str, why: str) -> None:
    with pytest.raises(BadHostFile, match=why) as caught:
        read_machine(with_file(path, text))

    assert caught.value.path == path
    assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize(
    "path",
    [
        f"{CPU}/online",
        f"{CPU}/cpu2/topology/physical_package_id",
        f"{CPU}/cpu2/topology/core_id",
        f"{CPU}/cpu2/cache/index3/level",
        f"{CPU}/cpu2/cache/index3/type",
        f"{CPU}/cpu2/cache/index3/shared_cpu_list",
        f"{NODE}/node2/cpulist",
        f"{NODE}/node2/meminfo",
        f"{NODE}/node2/distance",
    ],
)
def test_a_missing_file_is_named(path: str) -> None:
    with pytest.raises(MissingHostFile) as caught:
        read_machine(with_file(path, None))

    assert str(caught.value) == f"{path}: no such file"


@pytest.mark.parametrize(
    ("mask", "why"),
    [
        ("3", "CPU 2 is missing in the list of its own cache"),
        ("0xcc", "not a mask of CPUs: '0xcc'"),
        ("", "not a mask of CPUs: ''"),
    ],
)
def test_a_bad_mask_of_cpus_is_named(mask: str, why: str) -> None:
    folder = f"{CPU}/cpu2/cache/index3"
    files = with_file(f"{folder}/shared_cpu_list", None).files
    with pytest.raises(BadHostFile, match=why) as caught:
        read_machine(RecordedTree({**files, f"{folder}/shared_cpu_map": mask}))

    assert caught.value.path == f"{folder}/shared_cpu_map"


def test_cpus_that_no_node_has_are_reported() -> None:
    with pytest.raises(BadHostFile, match="no CPU 6-7") as caught:
        read_machine(with_file(f"{NODE}/node1/cpulist", "2-3"))

    assert caught.value.path == f"{NODE}/node*/cpulist"


def test_caches_that_overlap_are_reported() -> None:
    # CPU 2 finds itself outside of the cache that CPU 0 reported.
    with pytest.raises(BadHostFile, match="but CPU 0-1,4-5 shares another one"):
        read_machine(with_file(f"{CPU}/cpu2/cache/index3/shared_cpu_list", "0-7"))


def test_a_cpu_of_two_kinds_is_reported() -> None:
    files = {"/sys/devices/cpu_core/cpus": "0-7", "/sys/devices/cpu_atom/cpus": "3,7"}
    tree = RecordedTree({**GOOD.files, **files}, GOOD.links)

    with pytest.raises(BadHostFile, match="CPU 3,7 is of two kinds"):
        read_machine(tree)


def test_frequencies_the_wrong_way_round_are_reported() -> None:
    policy = f"{CPU}/cpufreq/policy0"
    files = {
        f"{policy}/affected_cpus": "0 4",
        f"{policy}/cpuinfo_min_freq": "3000000",
        f"{policy}/cpuinfo_max_freq": "800000",
    }

    with pytest.raises(BadHostFile, match="3000000 is above the maximum"):
        read_machine(RecordedTree({**GOOD.files, **files}, GOOD.links))


def test_a_folder_in_the_place_of_a_file_is_reported(tmp_path: Any) -> None:
    (tmp_path / "file").mkdir()

    with pytest.raises(UnreadableHostFile, match="/file: Is a directory"):
        HostTree(tmp_path).read("/file")


def test_the_path_of_a_missing_file_includes_the_root(tmp_path: Any) -> None:
    with pytest.raises(MissingHostFile) as caught:
        read_machine(HostTree(tmp_path / "hots"))

    assert str(caught.value) == f"{tmp_path}/hots{CPU}/online: no such file"
    assert caught.value.path == f"{CPU}/online"


def test_the_path_of_a_bad_file_includes_the_root(tmp_path: Any) -> None:
    write_tree(with_file(f"{NODE}/node2/cpulist", "0"), tmp_path)

    with pytest.raises(BadHostFile, match="in another node") as caught:
        read_machine(HostTree(tmp_path))
    assert str(caught.value).startswith(f"{tmp_path}{NODE}/node2/cpulist: ")


def shape(machine: Machine) -> object:
    """Everything that a CPU or memory set is chosen by."""
    return (
        [core.cpus for core in machine.cores],
        [(node.id, node.cpus, node.memory) for node in machine.nodes],
        [(cache.level, cache.kind, cache.cpus) for cache in machine.caches],
        [(package.id, package.cpus) for package in machine.packages],
        machine.distances,
    )


@given(st.sampled_from(sorted(GOOD.files)), st.integers(0, 12) | st.none())
@examples(2)
def test_truncated_or_missing_files_never_give_another_machine(
    path: str, length: int | None
) -> None:
    text = None if length is None else GOOD.files[path][:length].strip()
    try:
        machine = read_machine(with_file(path, text))
    except HostError:
        return

    assert shape(machine) == shape(read_machine(GOOD))
