"""Where the cgroups of isolated containers are."""

from __future__ import annotations

from typing import Final

import pytest

from nri_resmgr.classes.isolation.cgroup_files import CgroupPaths
from nri_resmgr.classes.isolation.requests import Isolated, IsolationRequest
from nri_resmgr.host.cgroups.isolated import IsolatedCgroups
from nri_resmgr.host.recorded import RecordedTree
from nri_resmgr.values import CpuSet

TOP: Final = "/sys/fs/cgroup"
V2: Final = {f"{TOP}/cgroup.controllers": "cpuset cpu"}
SLICE: Final = f"{TOP}/kubepods.slice/kubepods-pod1_2.slice"
SCOPE: Final = f"{SLICE}/cri-containerd-c1.scope"
WISH: Final = IsolationRequest(unlimited=True)


def find(
    files: dict[str, str], path: str, wish: IsolationRequest = WISH
) -> list[CgroupPaths]:
    one = Isolated("c1", CpuSet.of(1), wish, path)
    return [place for place, _ in IsolatedCgroups(RecordedTree(files)).find([one])]


@pytest.mark.parametrize(
    ("files", "path", "place"),
    [
        pytest.param(
            {
                f"{SCOPE}/cgroup.procs": "1",
                f"{SCOPE}/cpuset.cpus.exclusive": "",
            },
            "kubepods-pod1_2.slice:cri-containerd:c1",
            CgroupPaths((SLICE, SCOPE), SCOPE, TOP),
            id="systemd's",
        ),
        pytest.param(
            {
                f"{SCOPE}/cgroup.procs": "",
                f"{SCOPE}/container/cgroup.procs": "1",
                f"{SCOPE}/container/cpuset.cpus.exclusive": "",
            },
            "kubepods-pod1_2.slice:cri-containerd:c1",
            CgroupPaths(
                (SLICE, SCOPE, f"{SCOPE}/container"), f"{SCOPE}/container", TOP
            ),
            id="crun's, which is below",
        ),
        pytest.param(
            {f"{TOP}/kubepods/pod1-2/c1/cgroup.procs": "1"},
            "/kubepods/pod1-2/c1",
            CgroupPaths(
                (f"{TOP}/kubepods/pod1-2", f"{TOP}/kubepods/pod1-2/c1"),
                f"{TOP}/kubepods/pod1-2/c1",
                TOP,
                has_exclusive=False,
            ),
            id="a path, on a kernel before 6.7",
        ),
        pytest.param(
            {f"{TOP}/k8s.io/c1/cgroup.procs": "1"},
            "/k8s.io/c1",
            CgroupPaths(
                (f"{TOP}/k8s.io/c1",), f"{TOP}/k8s.io/c1", TOP, has_exclusive=False
            ),
            id="what is above need not be a pod's",
        ),
    ],
)
def test_cgroups_of_version_2(
    files: dict[str, str], path: str, place: CgroupPaths
) -> None:
    assert find(V2 | files, path) == [place]


def test_cgroups_of_version_1_are_in_two_trees() -> None:
    files = {
        f"{TOP}/cpuset/cpuset.cpus": "0-3",
        f"{TOP}/cpu/cgroup.procs": "",
        f"{TOP}/cpuset/kubepods/pod1/c1/cgroup.procs": "1",
    }
    pod = f"{TOP}/cpu/kubepods/pod1"

    assert find(files, "/kubepods/pod1/c1") == [
        CgroupPaths(
            (pod, f"{pod}/c1"),
            f"{TOP}/cpuset/kubepods/pod1/c1",
            f"{TOP}/cpuset",
            is_v2=False,
        )
    ]


def test_containers_without_cgroup_settings_are_not_searched() -> None:
    files = V2 | {f"{TOP}/kubepods/pod1/c1/cgroup.procs": "1"}

    assert (
        find(files, "/kubepods/pod1/c1", IsolationRequest(governor="performance")) == []
    )
    assert find(V2, "/kubepods/pod1/c1") == []
