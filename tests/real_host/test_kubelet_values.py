"""The pods of tests send the runtime the values that a kubelet sends."""

from __future__ import annotations

import pytest

from tests.real_host._gen import cri_pb2 as pb
from tests.real_host.pods import PodSpec, sandbox_config
from tests.real_host.resources import MIB, QosClass, Resources


def message(
    shares: int, quota: int, memory: int, score: int
) -> pb.LinuxContainerResources:
    return pb.LinuxContainerResources(
        cpu_period=100_000,
        cpu_shares=shares,
        cpu_quota=quota,
        memory_limit_in_bytes=memory,
        oom_score_adj=score,
    )


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        pytest.param(
            Resources.guaranteed(2, memory=128 * MIB),
            message(2048, 200_000, 128 * MIB, -997),
            id="guaranteed: request and limit are one",
        ),
        pytest.param(
            Resources.guaranteed(0.3),
            message(307, 30_000, 64 * MIB, -997),
            id="a fraction's shares are rounded down",
        ),
        pytest.param(
            Resources.burstable(1, limit=1.5),
            message(1024, 150_000, 0, 999),
            id="burstable: weight by request, quota by limit",
        ),
        pytest.param(
            Resources.burstable(0.001),
            message(2, 0, 0, 999),
            id="the least weight is 2",
        ),
        pytest.param(
            Resources.best_effort(), message(2, 0, 0, 1000), id="best effort asks none"
        ),
    ],
)
def test_resources(resources: Resources, expected: pb.LinuxContainerResources) -> None:
    assert resources.message() == expected


@pytest.mark.parametrize(
    ("qos", "parent"),
    [
        pytest.param(QosClass.GUARANTEED, "/kubepods/pod", id="guaranteed on top"),
        pytest.param(QosClass.BURSTABLE, "/kubepods/burstable/pod", id="burstable"),
        pytest.param(QosClass.BEST_EFFORT, "/kubepods/besteffort/pod", id="the rest"),
    ],
)
def test_the_cgroup_parent_reports_the_class(qos: QosClass, parent: str) -> None:
    config = sandbox_config(PodSpec("web", qos), "/kubepods")

    assert config.linux.cgroup_parent == parent + config.metadata.uid


@pytest.mark.parametrize(
    ("qos", "slices"),
    [
        (QosClass.GUARANTEED, ("kubepods.slice",)),
        (QosClass.BURSTABLE, ("kubepods.slice", "kubepods-burstable.slice")),
    ],
)
def test_the_slice_of_a_pod_has_the_names_of_its_parents(
    qos: QosClass, slices: tuple[str, ...]
) -> None:
    config = sandbox_config(PodSpec("db", qos), "/kubepods.slice")
    uid = config.metadata.uid.replace("-", "_")
    own = f"{slices[-1].removesuffix('.slice')}-pod{uid}.slice"

    assert config.linux.cgroup_parent == "/" + "/".join((*slices, own))
