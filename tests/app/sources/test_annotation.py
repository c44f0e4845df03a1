from __future__ import annotations

import json

import pytest
import structlog

from nri_resmgr.app.requests import ANNOTATIONS, AnnotationSource, DeclaredRequests
from nri_resmgr.policy.events import RequestOrigin
from nri_resmgr.policy.reconstruct import Requests
from nri_resmgr.stub.model import Pod
from nri_resmgr.topology import HugePages
from nri_resmgr.values import Bytes, MilliCpus

OURS, CRI_RM = ANNOTATIONS
MIB, GIB = 1 << 20, 1 << 30


def pod(text: object, key: str = OURS) -> Pod:
    annotation = text if isinstance(text, str) else json.dumps(text)
    return Pod(id="p1", name="shop", namespace="sales", annotations={key: annotation})


def given(**amounts: object) -> Requests:
    return Requests(source=RequestOrigin.ANNOTATION, **amounts)  # type: ignore[arg-type] # by name


WEB = {
    "requests": {"cpu": "1m", "memory": "1Gi", "vendor.com/gpu": "2"},
    "limits": {
        "cpu": "1.5",
        "memory": "2Gi",
        "hugepages-2Mi": "6Mi",
        "hugepages-1Gi": "1Gi",
        "vendor.com/gpu": "2",
        "ephemeral-storage": "1Gi",
    },
    "claims": [{"name": "x"}],
}
WEB_ASKS = given(
    cpu=MilliCpus(1),
    cpu_limit=MilliCpus(1500),
    memory=Bytes(GIB),
    memory_limit=Bytes(2 * GIB),
    hugepages=(HugePages(Bytes(2 * MIB), 3), HugePages(Bytes(GIB), 1)),
    extended={"vendor.com/gpu": 2},
)
HALF = given(cpu=MilliCpus(500), cpu_limit=MilliCpus(500))
HALF_WRITTEN = {"limits": {"cpu": "500m"}}
POD_WRITTEN = {"limits": {"cpu": "4", "memory": "9"}}
OWN_LIMITS = {"limits": {"cpu": "500m", "memory": "8"}}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param({}, DeclaredRequests(), id="an empty object"),
        pytest.param(
            {"containers": None}, DeclaredRequests(), id="a null for an object"
        ),
        pytest.param(
            {"containers": {"web": WEB}},
            DeclaredRequests(containers={"web": WEB_ASKS}),
            id="all that a container can ask for",
        ),
        pytest.param(
            {"containers": {"web": {}}},
            DeclaredRequests(containers={"web": given()}),
            id="a container that asks for nothing",
        ),
        pytest.param(
            {"containers": {"web": HALF_WRITTEN}},
            DeclaredRequests(containers={"web": HALF}),
            id="a limit is a request, too",
        ),
        pytest.param(
            {"containers": {"web": {"requests": {"cpu": 2}, "limits": {"cpu": 0}}}},
            DeclaredRequests(containers={"web": given(cpu=MilliCpus(2000))}),
            id="numbers are quantities, and a limit of zero is none",
        ),
        pytest.param(
            {"initContainers": {"first": HALF_WRITTEN}, "other": [1]},
            DeclaredRequests(init={"first": HALF}),
            id="init containers, and a key that we do not know",
        ),
        pytest.param(
            {"initContainers": {"log": {**HALF_WRITTEN, "restartPolicy": "Always"}}},
            DeclaredRequests(init={"log": HALF}, sidecars=frozenset({"log"})),
            id="a sidecar that says so",
        ),
        pytest.param(
            {"pod": POD_WRITTEN, "containers": {"a": {}, "b": OWN_LIMITS}},
            DeclaredRequests(
                containers={
                    "a": given(
                        cpu=MilliCpus(4000),
                        cpu_limit=MilliCpus(4000),
                        memory_limit=Bytes(9),
                    ),
                    "b": given(
                        cpu=MilliCpus(500),
                        cpu_limit=MilliCpus(500),
                        memory=Bytes(8),
                        memory_limit=Bytes(8),
                    ),
                },
                pod=given(
                    cpu=MilliCpus(4000),
                    cpu_limit=MilliCpus(4000),
                    memory=Bytes(9),
                    memory_limit=Bytes(9),
                ),
            ),
            id="limits of the pod are those of containers that have none",
        ),
    ],
)
def test_requests_are_read_from_the_annotation(
    content: object, expected: DeclaredRequests
) -> None:
    assert AnnotationSource().pod_requests(pod(content)) == expected


def test_both_keys_are_read_and_the_native_one_takes_precedence() -> None:
    first: object = {"containers": {"a": {}}}
    second: object = {"containers": {"b": {}}}
    both = {CRI_RM: json.dumps(first), OURS: json.dumps(second)}

    assert [
        AnnotationSource().pod_requests(pod(first, CRI_RM)),
        AnnotationSource().pod_requests(Pod(id="p", annotations=both)),
        AnnotationSource().pod_requests(Pod(id="p", annotations={"x": "{}"})),
    ] == [
        DeclaredRequests(containers={"a": given()}),
        DeclaredRequests(containers={"b": given()}),
        None,
    ]


EXPECTED = 'expected one such as "500m" or "2Gi"'


@pytest.mark.parametrize(
    ("content", "why"),
    [
        pytest.param("", ": not JSON: Expecting value", id="no text"),
        pytest.param("{", ": not JSON: Expecting property name", id="half a text"),
        pytest.param("[" * 30_000, ": not JSON: ", id="brackets without end"),
        pytest.param("[" * 40_000, ": 40000 characters, expected", id="too long"),
        pytest.param("[]", ": expected an object", id="a list"),
        pytest.param(
            {"containers": []}, " at containers: expected an object", id="no map"
        ),
        pytest.param(
            {"containers": {"web": 1}},
            " at containers.web: expected an object",
            id="no requirements",
        ),
        pytest.param(
            {"initContainers": {"a": {"limits": "1"}}},
            " at initContainers.a.limits: expected an object",
            id="no limits",
        ),
        pytest.param(
            {"containers": {"web": {"requests": {"cpu": True}}}},
            " at containers.web.requests.cpu: expected a quantity, such as",
            id="no amount",
        ),
        pytest.param(
            {"pod": {"requests": {"cpu": "2 cores"}}},
            " at pod.requests.cpu: '2 cores': not a number with a Kubernetes suffix; "
            + EXPECTED,
            id="no quantity",
        ),
        pytest.param(
            {"containers": {"web": {"requests": {"vendor.com/x": "-1"}}}},
            f" at containers.web.requests.vendor.com/x: '-1': negative; {EXPECTED}",
            id="less than nothing",
        ),
        pytest.param(
            '{"containers": {"web": {"requests": {"cpu": NaN}}}}',
            " at containers.web.requests.cpu: 'NaN': not a number",
            id="not a number",
        ),
        pytest.param(
            {"containers": {"web": {"limits": {"hugepages-big": "1"}}}},
            " at containers.web.limits.hugepages-big: page size: not a number",
            id="pages of no size",
        ),
        pytest.param(
            {"containers": {"web": {"limits": {"hugepages-0": "1"}}}},
            " at containers.web.limits.hugepages-0: page size: zero",
            id="pages of size zero",
        ),
    ],
)
def test_an_invalid_annotation_is_logged_once_and_ignored(
    content: object, why: str
) -> None:
    source = AnnotationSource()

    with structlog.testing.capture_logs() as logs:
        answers = [source.pod_requests(pod(content)) for _ in range(2)]

    assert answers == [None, None]
    (line,) = logs
    assert line["log_level"] == "warning"
    assert line["error"].startswith(f"pod sales/shop, annotation {OURS}{why}")


def test_a_report_is_short_whatever_the_annotation() -> None:
    content = {"containers": {"x" * 10**5: {"limits": {"cpu": "9" * 10**5}}}}

    with structlog.testing.capture_logs() as logs:
        AnnotationSource().pod_requests(pod(content))

    assert len(str(logs)) < 1000
