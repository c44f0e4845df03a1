"""Pods with resources of their own, in scenarios and in manifests of Kubernetes."""

from __future__ import annotations

import pytest

from nri_resmgr.scenario.findings import findings_of
from nri_resmgr.scenario.manifests import read_workload
from nri_resmgr.scenario.node import InProcessNode
from nri_resmgr.scenario.play import Player
from nri_resmgr.scenario.read import document_of
from nri_resmgr.scenario.rows import ContainerRow
from nri_resmgr.scenario.steps import RunPods
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import Bytes, MilliCpus

GIB = 1 << 30

SCENARIO = """
story:
  - run: web
    resources: {requests: {cpu: 4, memory: 4Gi}, limits: {cpu: 4, memory: 4Gi}}
    containers:
      - {name: app}
      - {name: log}
      - {name: db, limits: {cpu: 2, memory: 1Gi}}
"""
# No container has amounts of its own.
BARE = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec:
      resources: {limits: {cpu: 4, memory: 4Gi}}
      containers: [{name: app, image: x}, {name: log, image: x}]
"""
MANIFEST = """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  resources:
    requests: {cpu: "2", memory: 1Gi}
    limits: {cpu: "4", memory: 1Gi}
  containers:
    - {name: app, image: x}
    - {name: log, image: x, resources: {requests: {cpu: 500m}}}
"""


@pytest.mark.parametrize("kind", ["TopologyAwarePolicy", "StaticPolicy"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            SCENARIO,
            {
                "app": ("Burstable", 1000),
                "log": ("Burstable", 1000),
                "db": ("Guaranteed", 2000),
            },
            id="a Guaranteed pod",
        ),
        pytest.param(
            BARE, {"app": ("Burstable", 2000), "log": ("Burstable", 2000)}, id="only it"
        ),
        pytest.param(
            MANIFEST,
            {"app": ("Burstable", 1500), "log": ("Burstable", 500)},
            id="a Burstable pod of a manifest",
        ),
    ],
)
def test_containers_share_the_resources_of_the_pod(
    text: str, expected: dict[str, tuple[str, int]], kind: str
) -> None:
    node = InProcessNode(parse_spec("1s1n8c1t"), document_of(kind))
    Player(node).play(read_workload(text))

    specs = [one.spec for one in node.plugin.state.ledger.entries.values()]
    assert {one.name: (one.qos.value, one.request) for one in specs} == expected
    assert sum(one.request for one in specs) <= 4000
    assert node.notes.refusals == []


ONE = "{requests: {cpu: 1, memory: 1Gi}, limits: {cpu: 1, memory: 1Gi}}"


@pytest.mark.parametrize(
    ("own", "container", "qos"),
    [
        pytest.param(
            "{limits: {cpu: 2, memory: 2Gi}}", "{}", "Guaranteed", id="limits alone"
        ),
        pytest.param(
            "{requests: {cpu: 2, memory: 2Gi}, limits: {cpu: 2, memory: 2Gi}}",
            "{requests: {cpu: 1}}",
            "Guaranteed",
            id="equal ones, though the container is not",
        ),
        pytest.param(
            "{limits: {cpu: 2, memory: 2Gi}}",
            ONE,
            "Burstable",
            id="limits, and by default the requests of the containers",
        ),
        pytest.param("{limits: {cpu: 1, memory: 1Gi}}", ONE, "Guaranteed", id="equal"),
        pytest.param("{limits: {cpu: 2}}", ONE, "Burstable", id="no memory"),
        pytest.param(
            "{requests: {cpu: 1, memory: 1Gi}}", ONE, "Burstable", id="no limits"
        ),
        pytest.param(
            "{limits: {}}", ONE, "Guaranteed", id="nothing, so the containers'"
        ),
        pytest.param("{}", "{}", "BestEffort", id="nothing at all"),
    ],
)
def test_the_class_follows_from_the_amounts_of_the_pod(
    own: str, container: str, qos: str
) -> None:
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n"
    inner = f"  containers: [{{name: app, resources: {container}}}]\n"
    node = InProcessNode(parse_spec("1s1n8c1t"), "")
    Player(node).play(read_workload(f"{pod}  resources: {own}\n{inner}"))

    assert [one.qos for one in findings_of(node).placements] == [qos]


SIDECARS = """
story:
  - run: web
    resources: {limits: {cpu: 8, memory: 8Gi}}
    initContainers:
      - {name: early, requests: {cpu: 1, memory: 1Gi}}
      - {name: proxy, requests: {cpu: 2, memory: 2Gi}, restartPolicy: Always}
      - {name: late, requests: {cpu: %s, memory: 1Gi}}
    containers: [{name: app, requests: {cpu: 3, memory: 3Gi}}]
"""


@pytest.mark.parametrize(
    ("late", "request_of_pod"),
    [
        pytest.param(1, 5000, id="sidecar and container"),
        pytest.param(4, 6000, id="an init container beside the sidecar"),
    ],
)
def test_the_default_request_of_a_pod_is_the_peak_of_its_containers(
    late: int, request_of_pod: int
) -> None:
    (step,) = read_workload(SIDECARS % late).steps

    assert isinstance(step, RunPods)
    own = step.containers["app"].of_pod
    assert own == ContainerRow(
        request=MilliCpus(request_of_pod),
        limit=MilliCpus(8000),
        memory=Bytes(5 * GIB),
        memory_limit=Bytes(8 * GIB),
    )


def test_memory_that_no_container_requests_counts_in_the_scores_of_all() -> None:
    """The kubelet divides it by the number of containers."""
    text = """
story:
  - run: web
    resources: {requests: {cpu: 1, memory: 8Gi}}
    containers: [{name: app, requests: {memory: 2Gi}}, {name: log}]
"""
    node = InProcessNode(parse_spec("1s1n8c1t"), "")
    Player(node).play(read_workload(text))

    scores = [one.linux and one.linux.oom_score_adj for one in node.containers.values()]
    # 2 and 0 GiB, and 3 more, of 16 GiB.
    assert scores == [1000 - 1000 * 5 // 16, 1000 - 1000 * 3 // 16]
