"""Scenarios and manifests are read, or refused with a sentence that says where."""

from __future__ import annotations

import contextlib

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.config import BadSetting, BadSyntax
from nri_resmgr.config.syntax import parse_yaml
from nri_resmgr.scenario.manifests import read_workload
from nri_resmgr.scenario.read import read_scenario
from nri_resmgr.scenario.rows import ContainerRow
from nri_resmgr.scenario.steps import (
    Create,
    Delete,
    Reconfigure,
    Restart,
    RunPods,
    Scenario,
    Skipped,
    Stop,
    Update,
    Wait,
)
from nri_resmgr.topology import HugePages
from nri_resmgr.values import Bytes, InputError, MilliCpus, QosClass

GIB = 1 << 30

WHOLE = """
machine: 2s4c2t
kind: StaticPolicy
spec: {reservedResources: {cpu: 1}}
story:
  - {create: db, guaranteed: 2, memory: 1Gi, pod: p, hugepages: {2Mi: 3}}
  - {update: db, guaranteed: 3}
  - {restart: remembering}
  - {reconfigure: {reservedResources: {cpu: 2}}}
  - {wait: 60}
  - {stop: db}
  - run: web
    replicas: 2
    containers: [{name: app, requests: {cpu: 1500m}, limits: {cpu: 2}}]
  - {delete: web}
"""


def document(spec: object) -> str:
    return yaml.safe_dump(
        {"apiVersion": "config.nri/v1alpha1", "kind": "StaticPolicy", "spec": spec},
        sort_keys=False,
    )


def test_a_scenario_is_read_to_the_letter() -> None:
    db = ContainerRow(
        qos=QosClass.GUARANTEED,
        request=MilliCpus(2000),
        memory=Bytes(GIB),
        pod="p",
        hugepages=(HugePages(Bytes(2 << 20), 3),),
    )
    larger = ContainerRow(qos=QosClass.GUARANTEED, request=MilliCpus(3000))
    app = ContainerRow(
        qos=QosClass.BURSTABLE, request=MilliCpus(1500), limit=MilliCpus(2000)
    )

    assert read_scenario(parse_yaml(WHOLE)) == Scenario(
        "2s4c2t",
        document({"reservedResources": {"cpu": 1}}),
        (
            Create("db", db),
            Update("db", larger),
            Restart(restores=True),
            Reconfigure(document({"reservedResources": {"cpu": 2}})),
            Wait(60),
            Stop("db"),
            RunPods("web", {"app": app}, replicas=2),
            Delete("web"),
        ),
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param("story: 3", "$.story: missing, expected a list", id="no steps"),
        pytest.param(
            "machin: 1s\nstory: []",
            "$.machin: unknown key, did you mean machine?",
            id="a misspelt key",
        ),
        pytest.param(
            "story: [{crate: a, guaranteed: 1}]",
            "$.story[0].crate: unknown key, did you mean create?",
            id="a misspelt verb",
        ),
        pytest.param(
            "story: [{guaranteed: 1}]",
            "$.story[0]: no action, expected one of run,",
            id="no verb",
        ),
        pytest.param(
            "story: [{create: a}]",
            "$.story[0]: expected one of guaranteed, burstable, best-effort",
            id="no QoS class",
        ),
        pytest.param(
            "story: [{create: a, burstable: 1, guaranteed: 2}]",
            "$.story[0].burstable: guaranteed is given already",
            id="two QoS classes",
        ),
        pytest.param(
            "story: [{create: a, guaranteed: 1x}]",
            "$.story[0].guaranteed: bad quantity '1x'",
            id="an amount that is none",
        ),
        pytest.param(
            "story: [{create: a, guaranteed: 1, hints: [disk near 3]}]",
            "$.story[0].hints[0]: expected NAME at cpus LIST",
            id="a hint that is none",
        ),
        pytest.param(
            "story: [{create: a, guaranteed: 1, labels: {a: 1}}]",
            "$.story[0].labels.a: expected text, not 1: quote it",
            id="a label that YAML takes for a number",
        ),
        pytest.param(
            "story: [{run: web, containers: []}]",
            "pod web: no containers",
            id="a pod without containers",
        ),
        pytest.param(
            "story: [{run: web, containers: [{name: a}, {name: a}]}]",
            "$.story[0].containers[1].name: container a exists already",
            id="the same container twice",
        ),
        pytest.param(
            "story: [{restart: maybe}]",
            "$.story[0].restart: expected remembering or forgetting",
            id="a restart of no kind",
        ),
        pytest.param(
            "story: [{stop: }]", "$.story[0].stop: missing, expected", id="no name"
        ),
    ],
)
def test_a_mistake_is_reported_with_its_place(text: str, sentence: str) -> None:
    with pytest.raises(BadSetting) as raised:
        read_scenario(parse_yaml(text))

    assert sentence in str(raised.value)


MANIFESTS = """
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  template:
    metadata: {labels: {app: web}, annotations: {a/b: c}}
    spec:
      initContainers:
      - {name: first, image: i, resources: {limits: {cpu: 1, memory: 1Gi}}}
      containers:
      - name: app
        image: registry/app:1
        env: [{name: PORT, value: "80"}, {name: SECRET, valueFrom: {secretKeyRef: {}}}]
        resources: {limits: {cpu: "2", memory: 1Gi, hugepages-2Mi: 4Mi}}
"""


def test_a_deployment_makes_pods_as_kubernetes_would() -> None:
    def row(cpus: int, pages: tuple[HugePages, ...] | None) -> ContainerRow:
        return ContainerRow(
            qos=QosClass.GUARANTEED,
            request=MilliCpus(1000 * cpus),
            limit=MilliCpus(1000 * cpus),
            memory=Bytes(GIB),
            memory_limit=Bytes(GIB),
            hugepages=pages,
            namespace="shop",
            pod_labels={"app": "web"},
            annotations={"a/b": "c"},
        )

    pages = (HugePages(Bytes(2 << 20), 2),)
    app = msgspec.structs.replace(row(2, pages), env={"PORT": "80"})
    expected = RunPods(
        "web", {"first": row(1, None), "app": app}, frozenset({"first"}), 3
    )
    service = Skipped("Service", 1, "no pods come of them")
    assert read_workload(MANIFESTS) == Scenario("", "", (expected,), skipped=(service,))


@pytest.mark.parametrize(
    ("containers", "qos"),
    [
        pytest.param("[{name: a}, {name: b}]", QosClass.BEST_EFFORT, id="none asks"),
        pytest.param(
            "[{name: a, limits: {cpu: 1, memory: 1Gi}}, {name: b}]",
            QosClass.BURSTABLE,
            id="one has limits, one asks for nothing",
        ),
        pytest.param(
            "[{name: a, limits: {cpu: 1, memory: 1Gi}}]",
            QosClass.GUARANTEED,
            id="limits alone are requests, too",
        ),
        pytest.param(
            "[{name: a, limits: {cpu: 1, memory: 1Gi}, requests: {memory: 1Mi}}]",
            QosClass.BURSTABLE,
            id="a request below its limit",
        ),
        pytest.param(
            "[{name: a, limits: {cpu: 1}}]", QosClass.BURSTABLE, id="CPU alone"
        ),
    ],
)
def test_a_pod_has_the_class_that_kubernetes_gives_it(
    containers: str, qos: QosClass
) -> None:
    text = f"story: [{{run: p, containers: {containers}}}]"
    (step,) = read_scenario(parse_yaml(text)).steps

    assert isinstance(step, RunPods)
    assert {row.qos for row in step.containers.values()} == {qos}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param(
            "apiVersion: v1\nkind: Service\n", "no manifest has pods", id="no pods"
        ),
        pytest.param(
            "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"
            "spec: {containers: [{name: a, resources: {limits: {cpu: lots}}}]}",
            "$[0].spec.containers[0].resources.limits.cpu: bad quantity 'lots'",
            id="an amount that is none",
        ),
        pytest.param(
            "story: []\n---\nstory: []\n", "a scenario is one document", id="two"
        ),
        pytest.param("", "$.story: missing", id="nothing at all"),
    ],
)
def test_an_invalid_workload_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(InputError) as raised:
        read_workload(text)

    assert sentence in str(raised.value)


_words = st.sampled_from(
    [
        "create",
        "run",
        "story",
        "guaranteed",
        "containers",
        "name",
        "kind",
        "Pod",
        "spec",
    ]
)
_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | _words,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(_words | st.text(max_size=3), inner, max_size=4)
    ),
)


@given(_values)
def test_any_workload_is_read_or_refused(value: object) -> None:
    text = yaml.safe_dump({"story": [value], "machine": "1s2c"})

    with contextlib.suppress(BadSyntax, BadSetting):
        assert read_workload(text).machine == "1s2c"


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(BadSyntax, BadSetting):
        assert read_workload(text).steps == ()
