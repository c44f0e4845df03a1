from __future__ import annotations

from pathlib import Path

import pytest

from nri_resmgr.host.cgroups.cpuset import cpus_of_cgroup
from nri_resmgr.host.tree import BadHostFile, HostTree, MissingHostFile
from nri_resmgr.values import CpuSet

ROOT = "sys/fs/cgroup"


def tree_with(root: Path, files: dict[str, str]) -> HostTree:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return HostTree(root)


@pytest.mark.parametrize(
    ("files", "path", "cpus"),
    [
        pytest.param(
            {
                f"{ROOT}/system.slice/cpuset.cpus": "\n",
                f"{ROOT}/system.slice/cpuset.cpus.effective": "0-3\n",
            },
            "system.slice",
            "0-3",
            id="version 2: what is in force, though nothing was set",
        ),
        pytest.param(
            {
                f"{ROOT}/cpuset/system/cpuset.cpus": "0-3,9\n",
                f"{ROOT}/cpuset/system/cpuset.effective_cpus": "0-3\n",
            },
            "/system/",
            "0-3",
            id="version 1: what is in force, without offline CPUs",
        ),
        pytest.param(
            {f"{ROOT}/cpuset/system/cpuset.cpus": "1\n"},
            "system",
            "1",
            id="version 1 of old kernels: what was set",
        ),
        pytest.param(
            {f"{ROOT}/a/b/cpuset.cpus.effective": "2\n"},
            f"/{ROOT}/a/b",
            "2",
            id="an absolute path",
        ),
        pytest.param(
            {
                "a/cpuset.cpus.effective": "1\n",
                f"{ROOT}/a/cpuset.cpus.effective": "2\n",
            },
            "/a",
            "1",
            id="an absolute path before one below the mount",
        ),
        pytest.param(
            {
                "a/cpuset.cpus.effective": "1\n",
                f"{ROOT}/a/cpuset.cpus.effective": "2\n",
            },
            "a",
            "2",
            id="a path that is not absolute is below the mount",
        ),
    ],
)
def test_a_cgroup_has_cpus(
    tmp_path: Path, files: dict[str, str], path: str, cpus: str
) -> None:
    assert cpus_of_cgroup(tree_with(tmp_path, files), path) == CpuSet.parse(cpus)


def test_a_cgroup_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(MissingHostFile) as found:
        cpus_of_cgroup(HostTree(tmp_path), "/system.slice")

    assert str(found.value) == (
        "/sys/fs/cgroup/system.slice/cpuset.cpus.effective: no such file"
    )


def test_a_cgroup_without_cpus_is_reported_with_its_file(tmp_path: Path) -> None:
    tree = tree_with(tmp_path, {f"{ROOT}/cpuset/a/cpuset.cpus": "\n"})

    with pytest.raises(BadHostFile) as found:
        cpus_of_cgroup(tree, "a")

    assert str(found.value) == ("/sys/fs/cgroup/cpuset/a/cpuset.cpus: it names no CPU")


def test_a_bad_list_is_reported_with_its_file(tmp_path: Path) -> None:
    tree = tree_with(tmp_path, {f"{ROOT}/a/cpuset.cpus.effective": "0-x\n"})

    with pytest.raises(BadHostFile) as found:
        cpus_of_cgroup(tree, "a")

    assert str(found.value) == (
        "/sys/fs/cgroup/a/cpuset.cpus.effective: not a CPU or node list: "
        "'0-x' (at '0-x')"
    )
