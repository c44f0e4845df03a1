"""Drift: the kernel has something else in force than was decided."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.app.verification.drift import (
    AS_DECIDED,
    CgroupDifference,
    DriftKind,
    Finding,
    PresentResources,
    Verdict,
    classify,
    sentence,
)
from nri_resmgr.host.cgroups.containers import EffectiveResources, RequestedCpuset
from nri_resmgr.policy.events import Pin
from nri_resmgr.values import CpuSet, NodeSet

CPUS, MEMS, SHARES = DriftKind.CPUS, DriftKind.MEMS, DriftKind.SHARES
ALL = "0-7"


def cpus(text: str) -> CpuSet:
    return CpuSet.parse(text)


def judged(
    found: str, requested: str = "", online: str = ALL, wanted: str = "2-3"
) -> Finding:
    """Judge CPUs alone."""
    return classify(
        Pin(cpus(wanted)),
        EffectiveResources(cpus(found), folder="/c1"),
        RequestedCpuset(cpus(requested or found), None),
        PresentResources(cpus(online), NodeSet.of(0)),
    )


def differing(verdict: Verdict, found: str) -> Finding:
    return Finding(verdict, (CgroupDifference(CPUS, "2-3", found),), "/c1")


@pytest.mark.parametrize(
    ("finding", "expected"),
    [
        pytest.param(judged("2-3"), AS_DECIDED, id="the same"),
        pytest.param(
            judged("0-7"),
            differing(Verdict.DRIFTED, "0-7"),
            id="another program gave it more",
        ),
        pytest.param(
            judged("2"), differing(Verdict.DRIFTED, "2"), id="another program took some"
        ),
        pytest.param(
            judged("2", requested="2-3", online="0-2"),
            differing(Verdict.OFFLINE, "2"),
            id="a CPU went offline",
        ),
        pytest.param(
            judged("2", online="0-2"),
            differing(Verdict.OFFLINE, "2"),
            id="a CPU went offline, and version 1 forgot it",
        ),
        pytest.param(
            judged("0-1", requested="2-3", online="0-1"),
            differing(Verdict.OFFLINE, "0-1"),
            id="all its CPUs went offline, so it has those of the cgroup above",
        ),
        pytest.param(
            judged("2"),
            differing(Verdict.DRIFTED, "2"),
            id="the CPU is back, but version 1 does not give it back",
        ),
        pytest.param(
            judged("1-2", online="0-2"),
            differing(Verdict.DRIFTED, "1-2"),
            id="a CPU went offline, and another program gave it another one",
        ),
        pytest.param(
            judged("2", requested="2-3"),
            differing(Verdict.CONFINED, "2"),
            id="a cgroup above has less",
        ),
    ],
)
def test_cpus_that_differ(finding: Finding, expected: Finding) -> None:
    assert finding == expected


def test_each_kind_of_drift_is_reported_for_pinned_values_only() -> None:
    found = EffectiveResources(cpus("0-7"), NodeSet.of(0, 1), shares=2, folder="/c1")
    there = PresentResources(cpus(ALL), NodeSet.of(0, 1))
    requested = RequestedCpuset(cpus("0-7"), NodeSet.of(0, 1))
    whole = classify(Pin(cpus("1"), NodeSet.of(1), 1024), found, requested, there)
    memory = classify(Pin(mems=NodeSet.of(1)), found, requested, there)
    nothing = classify(
        Pin(cpus("1"), NodeSet.of(1), 1024), EffectiveResources(), requested, there
    )

    assert whole.kinds == (CPUS, MEMS, SHARES)
    assert memory == Finding(
        Verdict.DRIFTED, (CgroupDifference(MEMS, "1", "0-1"),), folder="/c1"
    )
    assert nothing == AS_DECIDED


def test_memory_that_is_not_there_is_offline() -> None:
    finding = classify(
        Pin(mems=NodeSet.of(0, 1)),
        EffectiveResources(mems=NodeSet.of(0)),
        RequestedCpuset(None, NodeSet.of(0, 1)),
        PresentResources(cpus(ALL), NodeSet.of(0)),
    )

    assert finding.verdict is Verdict.OFFLINE


def test_the_sentence_has_values_and_places() -> None:
    finding = Finding(
        Verdict.DRIFTED,
        (
            CgroupDifference(CPUS, "2-3", ""),
            CgroupDifference(SHARES, "1024", "of weight 7"),
        ),
        folder="/sys/fs/cgroup/c1",
    )

    assert sentence("shop/web/main", finding) == (
        "shop/web/main may run on CPUs none, but 2-3 was decided and has CPU shares of "
        "weight 7, but 1024 was decided: another program wrote /sys/fs/cgroup/c1"
    )


SETS = st.integers(0, 255).map(CpuSet)


@given(wanted=SETS, parent=SETS, online=SETS)
def test_values_restricted_by_the_kernel_are_no_drift(
    wanted: CpuSet, parent: CpuSet, online: CpuSet
) -> None:
    """In force is what was requested within the cgroup above, or all of that."""
    above = parent & online or online
    finding = classify(
        Pin(wanted),
        EffectiveResources(wanted & above or above),
        RequestedCpuset(wanted, None),
        PresentResources(online, NodeSet.of(0)),
    )

    assert finding.verdict is not Verdict.DRIFTED
    assert finding == AS_DECIDED or wanted - above


@given(wanted=SETS, written=SETS, online=SETS)
def test_other_cpus_are_drift(wanted: CpuSet, written: CpuSet, online: CpuSet) -> None:
    found = written & online
    there = wanted & online
    if there and found and found != there:
        finding = classify(
            Pin(wanted),
            EffectiveResources(found),
            RequestedCpuset(written, None),
            PresentResources(online, NodeSet.of(0)),
        )

        assert finding.verdict is Verdict.DRIFTED
