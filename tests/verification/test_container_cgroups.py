"""Where containers' cgroups are, and what is read there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.host.cgroups.containers import (
    CgroupReference,
    ContainerCgroups,
    EffectiveResources,
    RequestedCpuset,
)
from nri_resmgr.host.cgroups.finder import cgroup_of_oci, cgroups_of_process
from nri_resmgr.host.tree import BadHostFile, HostTree
from nri_resmgr.values import CpuSet, NodeSet
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

TOP = f"/{MOUNT}"


def in_force(folder: str, **values: object) -> EffectiveResources:
    sets = {"cpus": CpuSet.parse("1,3"), "mems": NodeSet.of(0)}
    return EffectiveResources(**{**sets, "folder": f"{TOP}/{folder}", **values})  # type: ignore[arg-type] # as the test says


@pytest.mark.parametrize(
    ("path", "cgroup"),
    [
        pytest.param("/kubepods/pod1/c1", "kubepods/pod1/c1", id="containerd, no unit"),
        pytest.param("/kubepods/crio-c1", "kubepods/crio-c1", id="CRI-O, no unit"),
        pytest.param("k8s.io/c1", "k8s.io/c1", id="a path without the first slash"),
        pytest.param("//a/./b/", "a/b", id="slashes and dots that mean nothing"),
        pytest.param(SYSTEMD, SLICES, id="every dash of a slice's name is a level"),
        pytest.param(
            "kubelet-kubepods.slice:crio:c1",
            "kubelet.slice/kubelet-kubepods.slice/crio-c1.scope",
            id="slices of a kubelet in a container",
        ),
        pytest.param(":runc:c1", "system.slice/runc-c1.scope", id="no slice is named"),
        pytest.param("-.slice:runc:c1", "runc-c1.scope", id="the slice above all"),
        pytest.param(
            "a.slice::b.slice", "a.slice/b.slice", id="a slice as a container"
        ),
        pytest.param("a.slice:b:", "", id="a scope without a name"),
        pytest.param("", "", id="nothing"),
        pytest.param("/../../etc", "", id="a path that leaves the tree"),
    ],
)
def test_the_path_of_the_oci_spec_is_a_cgroup(path: str, cgroup: str) -> None:
    assert cgroup_of_oci(path) == cgroup


@given(st.text(alphabet=":/-.ab\0 sliceé", max_size=40))
def test_no_path_leads_out_of_the_tree_or_to_an_error(path: str) -> None:
    steps = cgroup_of_oci(path).split("/")
    ContainerCgroups(HostTree("/no/such/root")).read(CgroupReference("c1", path))

    assert ".." not in steps
    assert steps == [""] or "" not in steps


@pytest.mark.parametrize(
    ("text", "cgroups"),
    [
        pytest.param("0::/a/c1", ["a/c1", "c1"], id="version 2"),
        pytest.param(
            "9:cpu,cpuset:/a/c1\n3:memory:/b/c1", ["a/c1", "c1"], id="version 1"
        ),
        pytest.param("0::/a/x-c1.scope/init/deep", ["a/x-c1.scope", "x-c1.scope"],
                     id="a process that went deeper"),
        pytest.param("0::/../../c1", ["c1"], id="above our cgroup namespace"),
        pytest.param("0::/a/c2", [], id="the process id is another container's by now"),
        pytest.param("gone\n\n:", [], id="nonsense"),
    ],
)  # fmt: skip
def test_a_process_leads_to_its_containers_cgroup(
    text: str, cgroups: list[str]
) -> None:
    assert list(cgroups_of_process(text, "c1")) == cgroups


@pytest.mark.parametrize(
    ("files", "path", "found"),
    [
        pytest.param(
            V1 | v1(f"{POD}/c1", "1,3"),
            f"/{POD}/c1",
            in_force(f"cpuset/{POD}/c1", shares=1024),
            id="version 1, cgroupfs",
        ),
        pytest.param(
            V1 | v1(SLICES, "1,3"),
            SYSTEMD,
            in_force(f"cpuset/{SLICES}", shares=1024),
            id="version 1, systemd",
        ),
        pytest.param(
            V2 | v2(f"{POD}/crio-c1", "1,3"),
            f"/{POD}/crio-c1",
            in_force(f"{POD}/crio-c1", weights=(100,)),
            id="version 2, cgroupfs",
        ),
        pytest.param(
            V2 | v2(SLICES, "1,3"),
            SYSTEMD,
            in_force(SLICES, weights=(100,)),
            id="version 2, systemd, runc",
        ),
        pytest.param(
            V2 | v2(SLICES, "0-7", weight="7") | v2(f"{SLICES}/container", "1,3"),
            SYSTEMD,
            in_force(f"{SLICES}/container", weights=(100, 7)),
            id="version 2, systemd, crun",
        ),
        pytest.param(
            V1
            | {
                "cpuset/a/c1/cgroup.procs": "42",
                "cpuset/a/c1/cpuset.cpus": "1,3",
                "cpuset/a/c1/cpuset.mems": "0",
            },
            "/a/c1",
            in_force("cpuset/a/c1"),
            id="version 1 of an old kernel, without weights",
        ),
        pytest.param(
            V2
            | v2("a", "1,3")
            | {"a/c1/cgroup.procs": "42", "a/c1/cpu.weight": "idle"},
            "/a/c1",
            in_force("a/c1"),
            id="version 2 without the controller: what the one above has",
        ),
        pytest.param(V1, f"/{POD}/c1", None, id="version 1, not running"),
        pytest.param(V2, SYSTEMD, None, id="version 2, not running"),
        pytest.param(V2, "", None, id="a runtime that reports nothing"),
        pytest.param({}, f"/{POD}/c1", None, id="no cgroups at all"),
    ],
)
def test_values_in_force_are_read(
    tmp_path: Path,
    files: Mapping[str, str],
    path: str,
    found: EffectiveResources | None,
) -> None:
    cgroups = ContainerCgroups(tree_with(tmp_path, files))

    assert cgroups.read(CgroupReference("c1", path), weighed=True) == found


def test_the_process_is_read_where_the_path_leads_nowhere(tmp_path: Path) -> None:
    tree_with(tmp_path, V2 | v2("outer/kubepods/c1", "1,3"))
    tree_with(tmp_path, {"7/cgroup": "0::/outer/kubepods/c1"}, mount="proc")
    cgroups = ContainerCgroups(HostTree(tmp_path))

    found = in_force("outer/kubepods/c1")
    assert cgroups.read(CgroupReference("c1", "/kubepods/c1", pid=7)) == found
    assert (
        cgroups.read(CgroupReference("c1", "/kubepods/c1", pid=8), afresh=True) is None
    )


def test_a_cgroup_that_moved_is_found_again(tmp_path: Path) -> None:
    tree = tree_with(tmp_path, V2 | v2("a/c1", "0-7"))
    cgroups, reference = ContainerCgroups(tree), CgroupReference("c1", "/a/c1")
    cgroups.read(reference)
    tree_with(tmp_path, v2("a/c1/container", "1,3"))
    remembered, anew = cgroups.read(reference), cgroups.read(reference, afresh=True)

    assert remembered == in_force("a/c1", cpus=CpuSet.parse("0-7"))
    assert anew == in_force("a/c1/container")


@pytest.mark.parametrize(
    ("files", "is_there"),
    [
        pytest.param(V1 | v1("c1", "1"), True, id="version 1"),
        pytest.param(
            V1 | v1("c1", "1") | {"cpuset/c1/cgroup.procs": ""}, False, id="1, empty"
        ),
        pytest.param(V2 | v2("c1", "1"), True, id="version 2"),
        pytest.param(
            V2 | v2("c1", "1") | {"c1/cgroup.events": "populated 0"},
            False,
            id="2, empty",
        ),
    ],
)
def test_a_cgroup_may_have_no_processes(
    tmp_path: Path,
    files: Mapping[str, str],
    is_there: bool,  # noqa: FBT001 - a column of the table
) -> None:
    cgroups, reference = (
        ContainerCgroups(tree_with(tmp_path, files)),
        CgroupReference("c1", "c1"),
    )
    cgroups.read(reference)

    assert cgroups.has_processes(reference) is is_there


def test_requested_values_differ_from_those_in_force(tmp_path: Path) -> None:
    tree = tree_with(tmp_path, V2 | v2("c1", "1", mems="", requested="1-2"))
    cgroups, reference = ContainerCgroups(tree), CgroupReference("c1", "c1")
    unread = cgroups.requested(reference)
    cgroups.read(reference)

    assert unread == RequestedCpuset(None, None)
    assert cgroups.requested(reference) == RequestedCpuset(CpuSet.parse("1-2"), None)


def test_a_bad_list_is_reported_with_its_file(tmp_path: Path) -> None:
    cgroups = ContainerCgroups(tree_with(tmp_path, V2 | v2("c1", "one")))

    with pytest.raises(BadHostFile) as found:
        cgroups.read(CgroupReference("c1", "c1"))

    assert str(found.value).startswith(f"{TOP}/c1/cpuset.cpus.effective: not a CPU")
