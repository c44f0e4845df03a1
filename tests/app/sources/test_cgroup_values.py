from __future__ import annotations

import pytest

from nri_resmgr.app.requests import cgroup_values
from nri_resmgr.policy.events import ContainerSpec, Pin
from nri_resmgr.policy.reconstruct import CgroupValues
from nri_resmgr.stub.model import (
    Container,
    HugepageLimit,
    LinuxContainer,
    LinuxCpu,
    LinuxMemory,
    LinuxResources,
)
from nri_resmgr.topology import HugePages
from nri_resmgr.values import Bytes, MilliCpus

TWO_MB, ONE_GB = Bytes(1 << 21), Bytes(1 << 30)


def container(resources: LinuxResources | None, score: int | None = None) -> Container:
    return Container(
        "c", linux=LinuxContainer(resources=resources, oom_score_adj=score)
    )


FULL = LinuxResources(
    cpu=LinuxCpu(shares=1024, quota=50_000, period=100_000),
    memory=LinuxMemory(limit=7),
    hugepage_limits=(HugepageLimit("1GB", 0), HugepageLimit("2MB", 3 << 21)),
    unified={"memory.min": "5"},
)
FULL_VALUES = CgroupValues(1024, 50_000, 100_000, 7, 5, 900, (HugePages(TWO_MB, 3),))


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        pytest.param(Container("c"), CgroupValues(), id="no values"),
        pytest.param(container(None, 5), CgroupValues(oom_score_adj=5), id="a score"),
        pytest.param(container(FULL, 900), FULL_VALUES, id="everything"),
    ],
)
def test_a_container(one: Container, expected: CgroupValues) -> None:
    assert cgroup_values(one) == expected


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param(LinuxResources(), FULL_VALUES, id="nothing wanted"),
        pytest.param(
            LinuxResources(cpu=LinuxCpu(0, 0, 0), memory=LinuxMemory(0)),
            FULL_VALUES,
            id="zeros leave all as it is",
        ),
        pytest.param(
            LinuxResources(
                cpu=LinuxCpu(1, -1, 3),
                memory=LinuxMemory(4),
                unified={"memory.low": "6"},
                hugepage_limits=(HugepageLimit("1GB", 1 << 30),),
            ),
            CgroupValues(1, -1, 3, 4, 6, 900, (HugePages(ONE_GB, 1),)),
            id="everything is changed",
        ),
    ],
)
def test_an_update(wanted: LinuxResources, expected: CgroupValues) -> None:
    assert cgroup_values(container(FULL, 900), wanted) == expected


@pytest.mark.parametrize(
    ("wanted", "shares"),
    [
        pytest.param(None, 1536, id="at a new start"),
        pytest.param(LinuxResources(cpu=LinuxCpu(cpus="1")), 1536, id="left out"),
        pytest.param(LinuxResources(cpu=LinuxCpu(shares=512)), 512, id="wanted"),
    ],
)
def test_shares_that_the_plugin_may_have_set_are_ignored(
    wanted: LinuxResources | None, shares: int
) -> None:
    known = ContainerSpec("c", request=MilliCpus(1500))

    assert cgroup_values(container(FULL), wanted, known).shares == shares


@pytest.mark.parametrize(
    ("present", "limit", "shares"),
    [
        pytest.param(LinuxCpu(shares=512), None, 1536, id="ours"),
        pytest.param(LinuxCpu(shares=1536), None, 1536, id="the kubelet's of before"),
        pytest.param(LinuxCpu(), None, 1536, id="unset"),
        pytest.param(LinuxCpu(shares=2048), None, 2048, id="resized"),
        pytest.param(LinuxCpu(512, 150_000), 1500, 1536, id="ours, within the limit"),
        pytest.param(LinuxCpu(512, 250_000), 1500, 512, id="another limit"),
        pytest.param(LinuxCpu(512, -1), 1500, 512, id="no limit any more"),
    ],
)
def test_shares_of_a_container_resized_unseen_are_used(
    present: LinuxCpu, limit: int | None, shares: int
) -> None:
    one = container(LinuxResources(cpu=present))
    known = ContainerSpec(
        "c",
        request=MilliCpus(1500),
        limit=None if limit is None else MilliCpus(limit),
    )

    assert cgroup_values(one, None, known, Pin(shares=512)).shares == shares


@pytest.mark.parametrize(
    ("unified", "floor"),
    [
        pytest.param({"memory.low": "6", "memory.min": "5"}, 5, id="min before low"),
        pytest.param({"memory.low": "6", "memory.min": "0"}, 6, id="zero is none"),
        pytest.param({"memory.min": "max"}, 0, id="all that there is"),
        pytest.param({"memory.min": "-1"}, 0, id="not the kernel's format"),
        pytest.param({"memory.high": "6"}, 0, id="another file"),
    ],
)
def test_memory_qos(unified: dict[str, str], floor: int) -> None:
    one = container(LinuxResources(unified=unified))

    assert cgroup_values(one).memory_floor == floor


@pytest.mark.parametrize(
    ("limits", "pages"),
    [
        pytest.param([("2MB", 0)], (), id="none allowed"),
        pytest.param([("2MB", (1 << 64) - 1)], (), id="unlimited"),
        pytest.param([("two", 1 << 21)], (), id="an unknown size"),
        pytest.param([("64KB", 1 << 16)], (HugePages(Bytes(1 << 16), 1),), id="small"),
        pytest.param(
            [("1GB", 1 << 30), ("2MB", 1 << 22)],
            (HugePages(TWO_MB, 2), HugePages(ONE_GB, 1)),
            id="by ascending size",
        ),
    ],
)
def test_huge_pages(
    limits: list[tuple[str, int]], pages: tuple[HugePages, ...]
) -> None:
    given = tuple(HugepageLimit(size, limit) for size, limit in limits)
    one = container(LinuxResources(hugepage_limits=given))

    assert cgroup_values(one).hugepages == pages
