"""CPUs that a container returns, and those that it keeps."""

from __future__ import annotations

import pytest

from nri_resmgr.policy.cpus import (
    CpuPick,
    CpuPreferences,
    CpusExhausted,
    PickReason,
    PickRule,
    TopologyLevel,
    release_cpus,
)
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet

cpus = CpuSet.parse

#  node 0: cores {0,8} ... {3,11}     node 1: cores {4,12} ... {7,15}
TWO_NODES = parse_spec("2s4c2t")


@pytest.mark.parametrize(
    ("held", "count", "gone"),
    [
        pytest.param("0-1,8", 1, "1", id="the lone thread"),
        pytest.param("0-1,8-9", 2, "1,9", id="a whole core"),
        pytest.param("0-1,4,8-9", 1, "4", id="the lone CPU of the other node"),
        pytest.param("0,4-5,8,12-13", 2, "0,8", id="the node with less"),
        pytest.param("0,4-5,8,12-13", 3, "0,8,13", id="that node, and a thread"),
        pytest.param("0-1,4-5", 4, "0-1,4-5", id="all"),
        pytest.param("0-1,4-5", 0, "", id="nothing"),
    ],
)
def test_fragments_go_first(held: str, count: int, gone: str) -> None:
    assert release_cpus(cpus(held), count, TWO_NODES).cpus == cpus(gone)


def test_reports_the_group_that_holds_the_rest() -> None:
    assert release_cpus(cpus("0-1,8"), 1, TWO_NODES) == CpuPick(
        cpus("1"), TopologyLevel.CORE, PickReason(PickRule.ONLY_GROUP, candidates=1)
    )


@pytest.mark.parametrize(
    ("held", "preferred", "gone"),
    [
        pytest.param(
            "0-1,8-9", CpuPreferences(near=cpus("1,9")), "0,8", id="near ones stay"
        ),
        pytest.param("0-3", CpuPreferences(far=cpus("0-1")), "0-1", id="far ones go"),
    ],
)
def test_preferences_apply_to_the_remaining_cpus(
    held: str, preferred: CpuPreferences, gone: str
) -> None:
    given_back = release_cpus(cpus(held), 2, TWO_NODES, preferred)

    assert given_back.cpus == cpus(gone)


def test_refuses_to_return_more_cpus_than_are_held() -> None:
    with pytest.raises(CpusExhausted, match=r"wanted 2 CPUs, 1 free \(3\)"):
        release_cpus(cpus("3"), 2, TWO_NODES)
