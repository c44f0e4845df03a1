from __future__ import annotations

import json

import msgspec
import pytest
import structlog

from nri_resmgr.app.requests import ANNOTATIONS, AnnotationSource, RequestSources
from nri_resmgr.app.requests.declared_requests import NOTHING_DECLARED
from nri_resmgr.policy.events import ContainerSpec, RequestOrigin
from nri_resmgr.policy.reconstruct import CgroupValues, Requests
from nri_resmgr.stub.model import LinuxCpu, LinuxPod, LinuxResources, Pod
from nri_resmgr.values import Bytes, MilliCpus, QosClass

GIB = 1 << 30
NODE = Bytes(64 * GIB)


def asks(cpu: str, **more: str) -> dict[str, dict[str, str]]:
    return {"requests": {"cpu": cpu, **more}}


TEXT = json.dumps(
    {
        "initContainers": {
            "fetch": asks("2"),
            "log": {**asks("100m", memory="1Gi"), "restartPolicy": "Always"},
        },
        "containers": {
            "web": asks("1m", **{"vendor.com/gpu": "1"}),
            "db": asks("900m"),
        },
    }
)


def pod(shares: int = 0, text: str = TEXT) -> Pod:
    resources = LinuxResources(cpu=LinuxCpu(shares=shares))
    return Pod(
        id="p1",
        name="shop",
        namespace="sales",
        annotations={ANNOTATIONS[0]: text},
        linux=LinuxPod(pod_resources=resources),
    )


def chain() -> RequestSources:
    return RequestSources((AnnotationSource(),), capacity=NODE)


B = QosClass.BURSTABLE
WEB = Requests(
    cpu=MilliCpus(1), extended={"vendor.com/gpu": 1}, source=RequestOrigin.ANNOTATION
)


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        pytest.param("web", CgroupValues(shares=2), WEB, id="what the author wrote"),
        pytest.param(
            "fetch",
            CgroupValues(shares=2048),
            Requests(cpu=MilliCpus(2000), source=RequestOrigin.ANNOTATION),
            id="an init container",
        ),
        pytest.param(
            "log",
            CgroupValues(shares=102, oom_score_adj=500),
            Requests(
                cpu=MilliCpus(100), memory=Bytes(GIB), source=RequestOrigin.ANNOTATION
            ),
            id="a sidecar, whose OOM score may be that of another",
        ),
        pytest.param(
            "debug",
            CgroupValues(shares=1024),
            Requests(cpu=MilliCpus(1000)),
            id="a container that the author did not name",
        ),
        pytest.param(
            "web",
            CgroupValues(shares=1024),
            msgspec.structs.replace(
                WEB, cpu=MilliCpus(1000), source=RequestOrigin.STALE
            ),
            id="one whose annotation never agreed",
        ),
    ],
)
def test_where_amounts_come_from(
    name: str, values: CgroupValues, expected: Requests
) -> None:
    assert chain().requests_of(pod(), name, values, B) == expected


def test_without_sources_the_cgroup_reports() -> None:
    values = CgroupValues(shares=1024)

    assert RequestSources().requests_of(pod(), "web", values, B) == Requests(
        cpu=MilliCpus(1000)
    )


def test_without_an_annotation_the_cgroup_reports() -> None:
    values = CgroupValues(shares=1024)

    assert chain().requests_of(Pod(id="p1"), "web", values, B) == Requests(
        cpu=MilliCpus(1000)
    )


def test_a_pod_with_stale_containers_is_warned_of_once() -> None:
    sources, other = chain(), CgroupValues(shares=5)

    with structlog.testing.capture_logs() as logs:
        for name in ("web", "web", "db"):
            sources.requests_of(pod(), name, other, B)

    assert logs == [
        {
            "event": "requests.stale",
            "log_level": "warning",
            "pod": "p1",
            "title": "sales/shop/web",
            "why": "cpu.shares is 5, expected 2",
        }
    ]


@pytest.mark.parametrize("gone", ["reported", "seen"])
def test_the_next_pod_of_an_id_is_warned_of_again(gone: str) -> None:
    sources, other = chain(), CgroupValues(shares=5)

    with structlog.testing.capture_logs() as logs:
        sources.requests_of(pod(), "web", other, B)
        if gone == "reported":
            sources.forget("p1")
        else:
            sources.keep_only(())
        sources.requests_of(pod(text=TEXT.replace("1m", "9m")), "web", other, B)

    assert [line["why"] for line in logs] == [
        "cpu.shares is 5, expected 2",
        "cpu.shares is 5, expected 9",
    ]


@pytest.mark.parametrize(
    ("shares", "names"),
    [
        pytest.param(0, ["log", "web", "db"], id="nothing is reported"),
        pytest.param(2048, ["log", "web", "db"], id="the init container asks for most"),
        pytest.param(3073, ["log", "web", "db"], id="all are sidecars"),
        pytest.param(2047, [], id="less than the init container"),
        pytest.param(3075, [], id="more than all together"),
    ],
)
def test_expected_containers_stand_if_the_pods_shares_allow_it(
    shares: int, names: list[str]
) -> None:
    sources = chain()

    with structlog.testing.capture_logs() as logs:
        expected = sources.declared(pod(shares)).lasting

    assert list(expected) == names
    assert len(logs) == (0 if names else 1)


@pytest.mark.parametrize(
    ("shares", "names"),
    [
        pytest.param(4096, ["web"], id="those of the pod"),
        pytest.param(1024, [], id="those of its container"),
    ],
)
def test_a_pod_that_asks_for_itself(shares: int, names: list[str]) -> None:
    text = json.dumps({"pod": asks("4"), "containers": {"web": asks("1")}})

    with structlog.testing.capture_logs():
        assert list(chain().declared(pod(shares, text)).lasting) == names


def test_the_oom_score_of_a_pod_that_asks_for_itself_may_be_lower() -> None:
    one = {"pod": asks("4"), "containers": {"web": asks("1", memory="1Gi")}}
    values = CgroupValues(shares=1024, oom_score_adj=500)
    found = chain().requests_of(pod(text=json.dumps(one)), "web", values, B)

    assert found.source is RequestOrigin.ANNOTATION


def test_a_pod_that_no_source_knows_declares_nothing() -> None:
    assert chain().declared(Pod(id="p1")) == NOTHING_DECLARED


@pytest.mark.parametrize(
    "known", [None, ContainerSpec(id="c1", source=RequestOrigin.ANNOTATION)]
)
def test_a_resize_is_not_stale(known: ContainerSpec | None) -> None:
    sources = chain()
    if known is None:
        sources.requests_of(pod(), "web", CgroupValues(shares=2), B)
    more = msgspec.structs.replace(
        WEB, cpu=MilliCpus(1000), source=RequestOrigin.RESIZED
    )

    with structlog.testing.capture_logs() as logs:
        first = sources.requests_of(pod(), "web", CgroupValues(shares=1024), B, known)
        # The next container of that name has the new values from the beginning.
        again = sources.requests_of(pod(), "web", CgroupValues(shares=1024), B)
        back = sources.requests_of(pod(), "web", CgroupValues(shares=2), B)

    assert (logs, first, again, back) == ([], more, more, WEB)


def test_a_resize_of_another_container_proves_nothing() -> None:
    sources = chain()
    sources.requests_of(pod(), "web", CgroupValues(shares=2), B)

    found = sources.requests_of(pod(), "db", CgroupValues(shares=1024), B)

    assert found.source is RequestOrigin.STALE


@pytest.mark.parametrize("gone", ["reported", "seen"])
def test_the_next_pod_of_an_id_is_not_trusted(gone: str) -> None:
    sources = chain()
    sources.requests_of(pod(), "web", CgroupValues(shares=2), B)

    if gone == "reported":
        sources.forget("p1")
    else:
        sources.keep_only(())

    found = sources.requests_of(pod(), "web", CgroupValues(shares=1024), B)
    assert found.source is RequestOrigin.STALE
