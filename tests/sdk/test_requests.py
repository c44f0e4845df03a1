"""Requests of containers, as a plugin gets them from what the runtime knows."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from nri_resmgr.policy.requests import oom_score_adj_of, quota_of, shares_of
from nri_resmgr.sdk.requests import RequestOrigin, Requests, qos_class, requests_of
from nri_resmgr.stub import (
    Container,
    LinuxContainer,
    LinuxCpu,
    LinuxMemory,
    LinuxPod,
    LinuxResources,
    Pod,
)
from nri_resmgr.values import Bytes, MilliCpus, QosClass

GIB = 1 << 30
NODE = Bytes(64 * GIB)
PARENTS = {
    QosClass.GUARANTEED: "kubepods-pod1.slice",
    QosClass.BURSTABLE: "kubepods-burstable-pod1.slice",
    QosClass.BEST_EFFORT: "kubepods-besteffort-pod1.slice",
}


def resources(cpu: int, limit: int | None, memory_limit: int | None) -> LinuxResources:
    """What the kubelet makes of amounts."""
    quota = None if limit is None else quota_of(MilliCpus(limit))
    return LinuxResources(
        cpu=LinuxCpu(shares=shares_of(MilliCpus(cpu)), quota=quota, period=100_000),
        memory=LinuxMemory(limit=memory_limit),
    )


def container(
    values: LinuxResources, score: int | None = None, name: str = "web"
) -> Container:
    linux = LinuxContainer(resources=values, oom_score_adj=score)
    return Container(name=name, linux=linux)


def pod(qos: QosClass, annotation: object = None) -> Pod:
    tags = (
        {}
        if annotation is None
        else {
            "noderesource.dev/resources": json.dumps(
                {"containers": {"web": annotation}}
            )
        }
    )
    return Pod(
        id="p",
        name="shop",
        annotations=tags,
        linux=LinuxPod(cgroup_parent=PARENTS[qos]),
    )


@given(
    st.integers(3, 250_000),
    st.none() | st.integers(10, 250_000),
    st.none() | st.integers(4096, 1 << 40),
)
def test_cpu_and_limits_are_what_the_kubelet_was_asked_for(
    cpu: int, limit: int | None, memory_limit: int | None
) -> None:
    found = requests_of(
        pod(QosClass.BURSTABLE), container(resources(cpu, limit, memory_limit))
    )

    assert (found.cpu, found.cpu_limit, found.memory_limit, found.source) == (
        cpu,
        limit,
        memory_limit,
        RequestOrigin.OCI,
    )


def test_memory_of_a_burstable_container_follows_from_its_oom_score() -> None:
    score = oom_score_adj_of(Bytes(16 * GIB), NODE)
    burstable = container(resources(500, None, None), score)

    found = requests_of(pod(QosClass.BURSTABLE), burstable, memory_of_node=NODE)
    of_this_machine = requests_of(pod(QosClass.BURSTABLE), burstable)

    assert found.memory == 16 * GIB
    assert of_this_machine.memory > 0


def test_memory_of_a_guaranteed_container_is_its_limit() -> None:
    found = requests_of(
        pod(QosClass.GUARANTEED), container(resources(2000, 2000, GIB), -997)
    )

    assert (found.cpu, found.memory) == (2000, GIB)


EXACT = {"requests": {"cpu": "500m", "memory": "1Gi", "vendor.com/gpu": "1"}}


def test_an_annotation_with_requests_is_exact() -> None:
    found = requests_of(
        pod(QosClass.BURSTABLE, EXACT), container(resources(500, None, None))
    )

    assert found == Requests(
        cpu=MilliCpus(500),
        memory=Bytes(GIB),
        extended={"vendor.com/gpu": 1},
        source=RequestOrigin.ANNOTATION,
    )


def test_cgroup_values_win_over_an_annotation_that_contradicts() -> None:
    with capture_logs() as lines:
        found = requests_of(
            pod(QosClass.BURSTABLE, EXACT), container(resources(700, None, None))
        )

    assert (found.cpu, found.source) == (700, RequestOrigin.STALE)
    assert [line["event"] for line in lines] == ["requests.stale"]


def test_an_annotation_of_another_container_is_not_used() -> None:
    found = requests_of(
        pod(QosClass.BURSTABLE, EXACT),
        container(resources(500, None, None), name="log"),
    )

    assert (found.cpu, found.source) == (500, RequestOrigin.OCI)


def test_a_resize_has_the_new_amounts() -> None:
    present = container(resources(500, 1000, GIB))
    wanted = LinuxResources(cpu=LinuxCpu(shares=shares_of(MilliCpus(800))))

    found = requests_of(pod(QosClass.BURSTABLE), present, wanted)

    assert (found.cpu, found.cpu_limit, found.memory_limit) == (800, 1000, GIB)


@pytest.mark.parametrize("qos", list(QosClass))
def test_the_qos_class_is_that_of_the_pods_cgroup(qos: QosClass) -> None:
    assert qos_class(pod(qos), container(resources(500, 500, GIB))) is qos


def test_without_a_kubelet_the_qos_class_follows_from_the_values() -> None:
    found = [
        qos_class(Pod(), container(values))
        for values in (
            resources(500, 500, GIB),
            resources(500, 600, GIB),
            LinuxResources(),
        )
    ]

    assert found == [QosClass.GUARANTEED, QosClass.BURSTABLE, QosClass.BEST_EFFORT]
