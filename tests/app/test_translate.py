from __future__ import annotations

import pytest

from nri_resmgr.app.translate import KUBELET_NAME, adjustment_of, spec_of, updates_of
from nri_resmgr.policy.decision import PinUpdate
from nri_resmgr.policy.events import ContainerSpec, Pin
from nri_resmgr.stub import (
    Container,
    ContainerAdjustment,
    ContainerUpdate,
    LinuxCpu,
    LinuxMemory,
    LinuxResources,
    Pod,
)
from nri_resmgr.stub.model import LinuxContainer, LinuxPod
from nri_resmgr.values import Bytes, CpuSet, MilliCpus, NodeSet, QosClass

POD = Pod(
    id="p1",
    name="shop",
    namespace="sales",
    linux=LinuxPod(cgroup_parent="/kubepods/pod1"),
)
WEB = Container(
    id="c0ffee",
    pod_sandbox_id="p1",
    name="web",
    labels={KUBELET_NAME: "web"},
    created_at=7,
    linux=LinuxContainer(
        resources=LinuxResources(
            cpu=LinuxCpu(
                shares=2048, quota=200_000, period=100_000, cpus="1-2", mems="0"
            ),
            memory=LinuxMemory(limit=1 << 30),
        )
    ),
)


def test_a_container_with_everything() -> None:
    assert spec_of(POD, WEB) == ContainerSpec(
        id="c0ffee",
        pod="p1",
        title="sales/shop/web",
        slot="web",
        namespace="sales",
        qos=QosClass.GUARANTEED,
        request=MilliCpus(2000),
        limit=MilliCpus(2000),
        memory_limit=Bytes(1 << 30),
        created=7,
        present=Pin(CpuSet.parse("1-2"), NodeSet.of(0)),
    )


def test_a_container_with_nothing() -> None:
    assert spec_of(Pod(id="p"), Container(id="0123456789abcdef")) == ContainerSpec(
        id="0123456789abcdef", pod="p", title="?/?/0123456789abc"
    )


@pytest.mark.parametrize(
    ("cpu", "request_", "limit"),
    [
        pytest.param(LinuxCpu(0, 0, 0), 2000, 2000, id="zeros leave all as it is"),
        pytest.param(LinuxCpu(shares=3072), 3000, 2000, id="only shares"),
        pytest.param(LinuxCpu(quota=300_000), 2000, 3000, id="only a quota"),
        pytest.param(LinuxCpu(quota=-1), 2000, None, id="the limit is lifted"),
        pytest.param(LinuxCpu(cpus="7"), 2000, 2000, id="somebody else's CPU set"),
    ],
)
def test_an_update_changes_what_it_says(
    cpu: LinuxCpu, request_: int, limit: int | None
) -> None:
    spec = spec_of(POD, WEB, LinuxResources(cpu=cpu))

    assert (spec.request, spec.limit, spec.memory_limit) == (request_, limit, 1 << 30)


def test_a_name_that_the_kubelet_did_not_give_is_no_slot() -> None:
    named = Container(id="x", name="web", annotations={KUBELET_NAME: "web"})

    assert [
        spec_of(POD, one).slot for one in (named, Container(id="x", name="web"))
    ] == [
        "web",
        "",
    ]


def test_only_what_is_pinned_is_said() -> None:
    cpus, mems = CpuSet.of(1), NodeSet.of(0)

    assert [
        adjustment_of(Pin()),
        adjustment_of(Pin(cpus)),
        adjustment_of(Pin(cpus, mems)),
        *updates_of([PinUpdate("x", Pin(mems=mems)), PinUpdate("y", Pin(mems=mems))]),
    ] == [
        None,
        ContainerAdjustment().set_cpus("1"),
        ContainerAdjustment().set_cpus("1").set_mems("0"),
        ContainerUpdate("x").set_mems("0"),
        ContainerUpdate("y").set_mems("0"),
    ]
