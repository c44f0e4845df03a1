"""Kinds and states of partitions, and the CPUs that are handed down."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.classes.isolation.exclusivity import Exclusivity
from nri_resmgr.classes.isolation.partitions import (
    PartitionKind,
    PartitionWish,
    explained,
    handed_down,
    kind_of,
    read_partition,
    shared_value,
)
from nri_resmgr.values import NO_CPUS, CpuSet
from tests.examples import examples

ISOLCPUS = CpuSet.parse("6-7")
CPUSETS = st.sets(st.integers(0, 7)).map(lambda cpus: CpuSet.of(*cpus))


@pytest.mark.parametrize(
    ("exclusivity", "cpus", "unbalanced", "kind"),
    [
        ("cpuset", "2-3", False, None),
        ("cpuset", "2-3", True, PartitionKind.ISOLATED),
        ("cpuset", "6-7", True, None),
        ("partition", "2-3", False, PartitionKind.ROOT),
        ("partition", "2-3", True, PartitionKind.ISOLATED),
        ("partition", "6-7", False, None),
        ("partition", "5-6", False, PartitionKind.ROOT),
        ("isolated-partition", "2-3", False, PartitionKind.ISOLATED),
    ],
)
def test_the_kind_is_by_configuration_annotation_and_cpus(
    exclusivity: str, cpus: str, *, unbalanced: bool, kind: PartitionKind | None
) -> None:
    wanted = CpuSet.parse(cpus)
    found = kind_of(Exclusivity(exclusivity), wanted, ISOLCPUS, unbalanced=unbalanced)

    assert found is kind


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "root invalid",
            (
                "root invalid: another cgroup in the same pod may use one of the CPUs: "
                "its cpuset.cpus has it"
            ),
        ),
        (
            "isolated invalid (Enable partition not permitted)",
            (
                "isolated invalid (Enable partition not permitted): "
                "the daemon lacks CAP_SYS_ADMIN"
            ),
        ),
        ("root invalid (of late)", "root invalid (of late)"),
        ("member", "the kernel, or another program, has ended the partition"),
        ("Member!", "unknown state 'Member!'"),
        (None, "the cgroup is gone"),
    ],
)
def test_a_state_that_is_not_in_force_is_explained(text: str | None, why: str) -> None:
    state = read_partition(text)

    assert not any(map(state.is_in_force, PartitionKind))
    assert explained(state) == why


def test_a_partition_of_the_other_kind_is_not_in_force() -> None:
    state = read_partition("isolated\n")

    assert state.is_in_force(PartitionKind.ISOLATED)
    assert not state.is_in_force(PartitionKind.ROOT)


def test_cpus_are_handed_down_from_the_top() -> None:
    wishes = [
        PartitionWish("a", "/cg/k/p/a", "/cg", CpuSet.of(1)),
        PartitionWish("b", "/cg/k/p/b", "/cg", CpuSet.of(2)),
        PartitionWish("c", "/cg/k/c", "/cg", CpuSet.of(3)),
    ]

    found = {folder: str(cpus) for folder, cpus in handed_down(wishes).items()}
    assert [*found.items()] == [("/cg/k", "1-3"), ("/cg/k/p", "1-2")]


@given(present=CPUSETS, wanted=st.lists(CPUSETS, max_size=4))
@examples(0.3)
def test_cpus_of_others_are_kept_whatever_is_added(
    present: CpuSet, wanted: list[CpuSet]
) -> None:
    value, added = present, NO_CPUS
    for cpus in wanted:
        value, added = shared_value(value, added, cpus)
        assert value == present | cpus

    assert shared_value(value, added, NO_CPUS) == (present, NO_CPUS)
