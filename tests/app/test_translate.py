from __future__ import annotations

import msgspec
import pytest

from nri_resmgr.app.plugin.translate import (
    KUBELET_NAME,
    KnownFacts,
    adjustment_of,
    expected_specs,
    living_specs,
    spec_of,
)
from nri_resmgr.app.requests import ANNOTATIONS, AnnotationSource, RequestSources
from nri_resmgr.app.running.updates import updates_of
from nri_resmgr.policy.decision import PinUpdate
from nri_resmgr.policy.events import ContainerSpec, Pin, RequestOrigin
from nri_resmgr.policy.preferences import NO_PREFERENCES, Preferences
from nri_resmgr.stub import (
    Container,
    ContainerAdjustment,
    ContainerState,
    ContainerUpdate,
    LinuxCpu,
    LinuxMemory,
    LinuxResources,
    Pod,
)
from nri_resmgr.stub.model import LinuxContainer, LinuxPod, Mount
from nri_resmgr.values import Bytes, CpuSet, MilliCpus, NodeSet, QosClass

POD = Pod(
    id="p1",
    name="shop",
    uid="u1",
    namespace="sales",
    labels={"tier": "front"},
    linux=LinuxPod(cgroup_parent="/kubepods/pod1"),
)
WEB = Container(
    id="c0ffee",
    pod_sandbox_id="p1",
    name="web",
    labels={KUBELET_NAME: "web"},
    annotations={"io.kubernetes.container.hash": "1"},
    created_at=7,
    started_at=8,
    linux=LinuxContainer(
        resources=LinuxResources(
            cpu=LinuxCpu(
                shares=2048, quota=200_000, period=100_000, cpus="1-2", mems="0"
            ),
            memory=LinuxMemory(limit=1 << 30),
        )
    ),
)


WEB_SPEC = ContainerSpec(
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
    present=Pin(CpuSet.parse("1-2"), NodeSet.of(0), 2048),
    memory_request=Bytes(1 << 30),
    name="web",
    pod_name="shop",
    pod_uid="u1",
    labels={KUBELET_NAME: "web"},
    tags={"io.kubernetes.container.hash": "1"},
    pod_labels={"tier": "front"},
    started=8,
)
SILENT = Preferences(shared=True)


def test_a_container_with_all_fields_is_translated() -> None:
    assert spec_of(POD, WEB) == WEB_SPEC


def test_a_container_without_fields_is_translated() -> None:
    assert spec_of(Pod(id="p"), Container(id="0123456789abcdef")) == ContainerSpec(
        id="0123456789abcdef", pod="p", title="?/?/0123456789abc"
    )


def test_preferences_and_declared_requests_are_part_of_the_spec() -> None:
    annotated = msgspec.structs.replace(
        POD,
        annotations={
            ANNOTATIONS[0]: """{"containers": {"web": {"limits":
            {"cpu": 2, "memory": "1Gi", "a.b/c": 3}}}}"""
        },
    )
    spec = spec_of(
        annotated,
        WEB,
        requests=RequestSources((AnnotationSource(),)),
        facts=KnownFacts(preferences=SILENT),
    )

    assert spec == msgspec.structs.replace(
        WEB_SPEC,
        pod_tags=annotated.annotations,
        preferences=SILENT,
        source=RequestOrigin.ANNOTATION,
        extended={"a.b/c": 3},
    )


def test_an_invalid_list_of_cpus_is_not_in_force() -> None:
    bad = LinuxResources(cpu=LinuxCpu(shares=2048, cpus="1-2-3"))
    one = msgspec.structs.replace(WEB, linux=LinuxContainer(resources=bad))

    assert spec_of(POD, one).present == Pin(shares=2048)


def test_shares_that_we_have_set_do_not_change_the_request() -> None:
    known = msgspec.structs.replace(WEB_SPEC, request=MilliCpus(2000), limit=None)
    ours = LinuxResources(cpu=LinuxCpu(shares=2))
    one = msgspec.structs.replace(WEB, linux=LinuxContainer(resources=ours))
    spec = spec_of(POD, one, facts=KnownFacts(known=known))

    assert (spec.request, spec.present) == (2000, Pin(shares=2))


def test_running_containers_of_unknown_pods_are_translated() -> None:
    stopped = msgspec.structs.replace(WEB, state=ContainerState.STOPPED)
    lost = Container(id="x", pod_sandbox_id="p9")

    assert living_specs([POD], [WEB, stopped, lost]) == (
        WEB_SPEC,
        ContainerSpec("x", "p9", title="?/?/x"),
    )


def test_running_containers_are_translated_like_new_ones() -> None:
    text = '{"containers": {"web": {"limits": {"cpu": 2, "memory": "1Gi"}}}}'
    annotated = msgspec.structs.replace(POD, annotations={ANNOTATIONS[0]: text})
    found = living_specs(
        [annotated],
        [WEB],
        RequestSources((AnnotationSource(),)),
        lambda *_: KnownFacts(preferences=SILENT),
    )

    assert found == (
        msgspec.structs.replace(
            WEB_SPEC,
            pod_tags=annotated.annotations,
            preferences=SILENT,
            source=RequestOrigin.ANNOTATION,
        ),
    )


def test_expected_containers_are_known_by_name() -> None:
    text = """{"initContainers": {"first": {"limits": {"cpu": 9}}},
               "containers": {"web": {"limits": {"cpu": "2", "memory": "1Gi"}}}}"""
    pod = msgspec.structs.replace(POD, annotations={ANNOTATIONS[1]: text})
    specs = expected_specs(pod, RequestSources((AnnotationSource(),)).declared(pod))

    assert specs == (
        msgspec.structs.replace(
            WEB_SPEC,
            id="",
            slot="",
            created=0,
            started=0,
            present=Pin(),
            labels={},
            tags={},
            pod_tags=pod.annotations,
            preferences=NO_PREFERENCES,
            source=RequestOrigin.ANNOTATION,
        ),
    )


def test_nothing_is_known_of_a_pod_without_an_annotation() -> None:
    assert (
        expected_specs(POD, RequestSources((AnnotationSource(),)).declared(POD)) == ()
    )


@pytest.mark.parametrize(
    ("cpu", "request_", "limit"),
    [
        pytest.param(LinuxCpu(0, 0, 0), 2000, 2000, id="zeros leave all as it is"),
        pytest.param(LinuxCpu(shares=3072), 3000, 2000, id="only shares"),
        pytest.param(LinuxCpu(quota=300_000), 2000, 3000, id="only a quota"),
        pytest.param(LinuxCpu(quota=-1), 2000, None, id="the limit is lifted"),
        pytest.param(LinuxCpu(cpus="7"), 2000, 2000, id="a foreign CPU set"),
    ],
)
def test_an_update_changes_the_amounts_that_it_sets(
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


def test_only_pinned_values_are_sent() -> None:
    cpus, mems = CpuSet.of(1), NodeSet.of(0)
    mount = Mount("/here", "bind", "/there")

    assert [
        adjustment_of(Pin()),
        adjustment_of(Pin(cpus)),
        adjustment_of(Pin(cpus, mems)),
        adjustment_of(Pin(shares=512)),
        adjustment_of(Pin(), mount),
        adjustment_of(Pin(cpus), mount),
        *updates_of([PinUpdate("x", Pin(mems=mems)), PinUpdate("y", Pin(mems=mems))]),
        *updates_of([PinUpdate("x", Pin(shares=2))]),
    ] == [
        None,
        ContainerAdjustment().set_cpus("1"),
        ContainerAdjustment().set_cpus("1").set_mems("0"),
        ContainerAdjustment().set_cpu_shares(512),
        ContainerAdjustment().set_mount(mount),
        ContainerAdjustment().set_cpus("1").set_mount(mount),
        ContainerUpdate("x").set_mems("0"),
        ContainerUpdate("y").set_mems("0"),
        ContainerUpdate("x").set_cpu_shares(2),
    ]
