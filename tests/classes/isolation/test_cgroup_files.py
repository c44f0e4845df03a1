"""Cgroups without a quota, and without load balancing."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.classes.isolation.cgroup_files import (
    CgroupPaths,
    cgroup_files,
    ineffective_isolation,
    load_balance_state,
)
from nri_resmgr.classes.isolation.requests import Isolated, IsolationRequest
from nri_resmgr.values import NO_CPUS, CpuSet
from tests.examples import examples

TOP = "/sys/fs/cgroup"
KUBEPODS = f"{TOP}/kubepods.slice"
UNBALANCED = IsolationRequest(unbalanced=True)
UNLIMITED = IsolationRequest(unlimited=True)


def place(pod: str, container: str) -> CgroupPaths:
    folder = f"{KUBEPODS}/{pod}/{container}"
    return CgroupPaths((f"{KUBEPODS}/{pod}", folder), folder, TOP)


def isolated(cpus: str, request: IsolationRequest) -> Isolated:
    return Isolated("c", CpuSet.parse(cpus), request)


def old_place(pod: str, container: str) -> CgroupPaths:
    cpu = f"{TOP}/cpu/kubepods/{pod}"
    cpuset = f"{TOP}/cpuset/kubepods/{pod}/{container}"
    return CgroupPaths(
        (cpu, f"{cpu}/{container}"), cpuset, f"{TOP}/cpuset", is_v2=False
    )


def test_a_quota_goes_with_that_of_the_pod() -> None:
    found = cgroup_files([(place("p", "c"), isolated("1", UNLIMITED))], NO_CPUS)

    assert list(found.items()) == [
        (f"{KUBEPODS}/p/cpu.max", "max"),
        (f"{KUBEPODS}/p/c/cpu.max", "max"),
    ]


def test_shared_cpus_are_of_no_use_within_a_quota() -> None:
    request = IsolationRequest(shared=True)
    found = cgroup_files([(place("p", "c"), isolated("1", request))], NO_CPUS)

    assert [*found.values()] == ["max", "max"]


def test_cpus_are_handed_down_before_they_are_a_partition() -> None:
    placed = [
        (place("p", "a"), isolated("1", UNBALANCED)),
        (place("p", "b"), isolated("2-3", UNBALANCED)),
        (place("q", "c"), isolated("5", UNBALANCED)),
    ]

    assert list(cgroup_files(placed, NO_CPUS).items()) == [
        (f"{KUBEPODS}/cpuset.cpus.exclusive", "1-3,5"),
        (f"{KUBEPODS}/p/cpuset.cpus.exclusive", "1-3"),
        (f"{KUBEPODS}/q/cpuset.cpus.exclusive", "5"),
        (f"{KUBEPODS}/p/a/cpuset.cpus.exclusive", "1"),
        (f"{KUBEPODS}/p/a/cpuset.cpus.partition", "isolated"),
        (f"{KUBEPODS}/p/b/cpuset.cpus.exclusive", "2-3"),
        (f"{KUBEPODS}/p/b/cpuset.cpus.partition", "isolated"),
        (f"{KUBEPODS}/q/c/cpuset.cpus.exclusive", "5"),
        (f"{KUBEPODS}/q/c/cpuset.cpus.partition", "isolated"),
    ]


def test_cgroups_of_version_1_have_switches_of_their_own() -> None:
    request = IsolationRequest(unbalanced=True, unlimited=True)
    found = cgroup_files([(old_place("p", "c"), isolated("1", request))], NO_CPUS)

    assert list(found.items()) == [
        (f"{TOP}/cpu/kubepods/p/cpu.cfs_quota_us", "-1"),
        (f"{TOP}/cpu/kubepods/p/c/cpu.cfs_quota_us", "-1"),
        (f"{TOP}/cpuset/kubepods/p/c/cpuset.sched_load_balance", "0"),
    ]


def test_cpus_of_isolcpus_are_not_balanced_anyway() -> None:
    placed = [(place("p", "c"), isolated("2-3", UNBALANCED))]

    assert cgroup_files(placed, CpuSet.parse("2-5")) == {}
    assert list(ineffective_isolation(placed, CpuSet.parse("2-5"), {})) == []


def ineffective(one: CgroupPaths, present: Mapping[str, str | None]) -> list[str]:
    placed = [(one, isolated("1", UNBALANCED))]
    return [why for _, why in ineffective_isolation(placed, NO_CPUS, present)]


def test_a_partition_that_the_kernel_refused_is_reported() -> None:
    path = f"{KUBEPODS}/p/c/cpuset.cpus.partition"
    refused = "isolated invalid (Cpu list in cpuset.cpus not exclusive)\n"

    assert ineffective(place("p", "c"), {path: "isolated\n"}) == []
    assert ineffective(place("p", "c"), {path: refused}) == [
        f"{path} is {refused.strip()!r}"
    ]
    assert ineffective(place("p", "c"), {}) == [f"there is no {path}"]


def test_old_kernels_do_not_hand_cpus_down() -> None:
    one = msgspec.structs.replace(place("p", "c"), has_exclusive=False)
    placed = [(one, isolated("1", UNBALANCED))]

    assert cgroup_files(placed, NO_CPUS) == {}
    assert ineffective(one, {}) == [
        "the kernel has no cpuset.cpus.exclusive, Linux 6.7 has"
    ]


def test_a_switch_below_one_that_is_on_is_ineffective() -> None:
    one = old_place("p", "c")
    paths = load_balance_state(one)
    root = f"{TOP}/cpuset/cpuset.sched_load_balance"

    assert paths == (
        root,
        f"{TOP}/cpuset/kubepods/cpuset.sched_load_balance",
        f"{TOP}/cpuset/kubepods/p/cpuset.sched_load_balance",
        f"{TOP}/cpuset/kubepods/p/c/cpuset.sched_load_balance",
    )
    assert ineffective(one, dict.fromkeys(paths, "0\n")) == []
    assert ineffective(one, {**dict.fromkeys(paths, "0\n"), root: "1\n"}) == [
        f"{root} is '1'"
    ]


@given(
    homes=st.lists(
        st.tuples(st.sampled_from("pq"), st.sampled_from("ab"), st.booleans()),
        max_size=4,
        unique_by=lambda home: home[:2],
    )
)
@examples(0.3)
def test_no_cgroup_has_exclusive_cpus_that_the_one_above_does_not_hand_down(
    homes: list[tuple[str, str, bool]],
) -> None:
    placed = [
        (place(pod, name), isolated(str(cpu), IsolationRequest(unbalanced=wants)))
        for cpu, (pod, name, wants) in enumerate(homes)
    ]
    written: dict[str, CpuSet] = {TOP: CpuSet.parse("0-63")}
    for path, text in cgroup_files(placed, NO_CPUS).items():
        folder, _, name = path.rpartition("/")
        if name == "cpuset.cpus.exclusive":
            written[folder] = CpuSet.parse(text)
            assert written[folder] <= written[folder.rpartition("/")[0]]
        else:
            assert folder in written

    owned = {home.cpuset: one.cpus for home, one in placed if one.request.unbalanced}
    assert {key: written[key] for key in owned} == owned
    assert written.keys() == {TOP} | {
        above for key in owned for above in (key, key.rpartition("/")[0], KUBEPODS)
    }
