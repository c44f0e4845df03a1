from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.requests import (
    MAX_SHARES,
    MIN_SHARES,
    limited_cpus,
    oom_score_adj_of,
    qos_of_cgroup,
    qos_of_values,
    quota_of,
    requested_cpus,
    requested_memory,
    shares_of,
)
from nri_resmgr.values import Bytes, MilliCpus, QosClass

MOST_MILLIS = MAX_SHARES * 1000 // 1024  # what shares can encode


def shares_of_kubelet(milli: int) -> int:
    """Kubernetes' MilliCPUToShares, as it is written there."""
    if milli == 0:
        return MIN_SHARES
    return min(max(milli * 1024 // 1000, MIN_SHARES), MAX_SHARES)


def quota_of_kubelet(milli: int, period: int) -> int:
    """Kubernetes' MilliCPUToQuota, as it is written there."""
    return max(milli * period // 1000, 1000)


def oom_score_adj_of_kubelet(request: int, capacity: int) -> int:
    """Kubernetes' GetContainerOOMScoreAdjust for Burstable, as it is written there."""
    adjust = 1000 - (1000 * request) // capacity
    if adjust < 1000 + -997:
        return 1000 + -997
    if adjust == 1000:
        return adjust - 1
    return adjust


def test_every_request_survives_the_way_through_shares() -> None:
    lost = [
        milli
        for milli in range(3, MOST_MILLIS + 1)
        if requested_cpus(shares_of_kubelet(milli)) != milli
    ]

    assert lost == []


@given(st.integers(0, 10**7))
def test_shares_are_the_kubelets(milli: int) -> None:
    assert shares_of(MilliCpus(milli)) == shares_of_kubelet(milli)


@given(st.integers(0, 10**7), st.sampled_from([100_000, 10_000, 250_000]))
def test_quotas_are_the_kubelets(milli: int, period: int) -> None:
    assert quota_of(MilliCpus(milli), period) == quota_of_kubelet(milli, period)


SIZES = st.integers(1 << 20, 1 << 46)


@given(SIZES.flatmap(lambda size: st.tuples(st.integers(0, size), st.just(size))))
def test_a_memory_request_survives_but_for_a_thousandth(case: tuple[int, int]) -> None:
    request, capacity = case
    found = oom_score_adj_of_kubelet(request, capacity)
    least = requested_memory(found, Bytes(capacity))

    assert oom_score_adj_of(Bytes(request), Bytes(capacity)) == found
    assert least <= request
    if found != 3:
        thousandths = 2 if found == 999 else 1
        assert (request - least) * 1000 < thousandths * capacity + 1000


@given(st.integers(3, 999), SIZES)
def test_the_estimate_is_the_least_request_of_its_score(score: int, size: int) -> None:
    least = requested_memory(score, Bytes(size))

    assert oom_score_adj_of_kubelet(least, size) == score
    if least:
        assert oom_score_adj_of_kubelet(least - 1, size) > score


@pytest.mark.parametrize(
    ("score", "capacity"),
    [
        pytest.param(-997, 1 << 30, id="Guaranteed, or critical for the node"),
        pytest.param(2, 1 << 30, id="not the kubelet's"),
        pytest.param(999, 1 << 30, id="without a request, or with a tiny one"),
        pytest.param(1000, 1 << 30, id="BestEffort"),
        pytest.param(500, 0, id="on a node of unknown size"),
    ],
)
def test_scores_that_report_of_no_request(score: int, capacity: int) -> None:
    assert requested_memory(score, Bytes(capacity)) == 0


@given(st.integers(0, 2))
def test_up_to_two_thousandths_are_no_request(milli: int) -> None:
    assert requested_cpus(shares_of_kubelet(milli)) == 0


@given(st.integers(MOST_MILLIS, 10**7))
def test_above_the_most_shares_the_limit_reports(milli: int) -> None:
    assert requested_cpus(shares_of_kubelet(milli), MilliCpus(milli)) == milli


@given(st.integers(10, 10**6), st.sampled_from([100_000, 10_000, 250_000]))
def test_a_limit_survives_the_way_through_the_quota(milli: int, period: int) -> None:
    if milli * period >= 1000 * 1000:
        quota = quota_of_kubelet(milli, period)
        assert limited_cpus(quota, period) == milli


@pytest.mark.parametrize(
    ("shares", "milli"),
    [
        pytest.param(None, 0, id="unset is none"),
        pytest.param(0, 0, id="zero is unset"),
        pytest.param(1, 0, id="less than the least is none"),
        pytest.param(1024, 1000, id="one CPU"),
        pytest.param(MAX_SHARES, 256_000, id="the most"),
    ],
)
def test_shares(shares: int | None, milli: int) -> None:
    assert requested_cpus(shares) == milli


@pytest.mark.parametrize(
    ("quota", "period", "milli"),
    [
        pytest.param(None, None, None, id="unset"),
        pytest.param(0, 100_000, None, id="zero is unset"),
        pytest.param(-1, 100_000, None, id="unlimited"),
        pytest.param(50_000, None, 500, id="the default period"),
        pytest.param(50_000, 0, 500, id="a period of zero is unset"),
        pytest.param(1001, 100_000, 11, id="a fraction counts as a whole one"),
    ],
)
def test_quota(quota: int | None, period: int | None, milli: int | None) -> None:
    assert limited_cpus(quota, period) == milli


SYSTEMD = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice"


@pytest.mark.parametrize(
    ("path", "qos"),
    [
        pytest.param(SYSTEMD, QosClass.BURSTABLE, id="systemd, whole path"),
        pytest.param(
            "kubepods-besteffort-pod1_2.slice",
            QosClass.BEST_EFFORT,
            id="systemd, last slice",
        ),
        pytest.param(
            "/kubepods.slice/kubepods-pod1_2.slice",
            QosClass.GUARANTEED,
            id="systemd, Guaranteed",
        ),
        pytest.param("/kubepods/burstable/pod1-2", QosClass.BURSTABLE, id="cgroupfs"),
        pytest.param(
            "/kubepods/pod1-burstable", QosClass.GUARANTEED, id="a misleading pod name"
        ),
        pytest.param(
            "/burstable/kubepods/pod1", QosClass.GUARANTEED, id="a misleading root"
        ),
        pytest.param(
            "kubelet-kubepods-besteffort-pod1.slice:cri-containerd:c0ffee",
            QosClass.BEST_EFFORT,
            id="a container's own, below another root",
        ),
        pytest.param(
            "/kubepods/besteffort/pod1/c0ffee",
            QosClass.BEST_EFFORT,
            id="a container's own, cgroupfs",
        ),
        pytest.param(
            "/kubepods.slice/kubepods-system.slice/kubepods-system-burstable.slice/"
            "kubepods-system-burstable-pod1_2.slice",
            QosClass.BURSTABLE,
            id="systemd, system partition",
        ),
        pytest.param(
            "kubepods-system-pod1_2.slice:cri-containerd:c0ffee",
            QosClass.GUARANTEED,
            id="systemd, Guaranteed in the system partition",
        ),
        pytest.param(
            "/kubepods/system/besteffort/pod1/c0ffee",
            QosClass.BEST_EFFORT,
            id="cgroupfs, system partition",
        ),
        pytest.param(
            "/kubepods/system/pod1",
            QosClass.GUARANTEED,
            id="cgroupfs, Guaranteed in the system partition",
        ),
        pytest.param(
            "/system/kubepods/burstable/pod1",
            QosClass.BURSTABLE,
            id="a root that is called like the partition",
        ),
        pytest.param("/kubepods/system", None, id="no pod in the system partition"),
        pytest.param("/kubepods.slice", None, id="no pod in it"),
        pytest.param("/system.slice/x", None, id="not the kubelet's"),
        pytest.param("", None, id="none"),
    ],
)
def test_qos_of_a_cgroup(path: str, qos: QosClass | None) -> None:
    assert qos_of_cgroup(path) is qos


@pytest.mark.parametrize(
    ("request_", "limit", "memory", "qos"),
    [
        pytest.param(1000, 1000, 1, QosClass.GUARANTEED, id="limits on both"),
        pytest.param(500, 1000, 1, QosClass.BURSTABLE, id="less than the limit"),
        pytest.param(1000, 1000, None, QosClass.BURSTABLE, id="no memory limit"),
        pytest.param(0, None, 1, QosClass.BURSTABLE, id="memory alone"),
        pytest.param(0, None, None, QosClass.BEST_EFFORT, id="nothing"),
    ],
)
def test_qos_of_values(
    request_: int, limit: int | None, memory: int | None, qos: QosClass
) -> None:
    top = None if limit is None else MilliCpus(limit)

    assert qos_of_values(MilliCpus(request_), top, memory) is qos


@pytest.mark.parametrize(
    ("qos", "milli", "limit", "count"),
    [
        pytest.param(QosClass.GUARANTEED, 2000, 2000, 2, id="whole CPUs"),
        pytest.param(QosClass.GUARANTEED, 2000, None, 2, id="the quota was dropped"),
        pytest.param(QosClass.GUARANTEED, 2000, 3000, 0, id="a limit above"),
        pytest.param(QosClass.GUARANTEED, 2001, 2001, 0, id="a thousandth too much"),
        pytest.param(QosClass.GUARANTEED, 0, None, 0, id="no request"),
        pytest.param(QosClass.BURSTABLE, 2000, 2000, 0, id="not Guaranteed"),
    ],
)
def test_whole_cpus(qos: QosClass, milli: int, limit: int | None, count: int) -> None:
    top = None if limit is None else MilliCpus(limit)
    spec = ContainerSpec("c", qos=qos, request=MilliCpus(milli), limit=top)

    assert spec.whole_cpus == count
