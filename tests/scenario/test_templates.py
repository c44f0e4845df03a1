"""Pod templates are found in objects of any kind, with the numbers of their pods."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.scenario.manifests import read_workload
from nri_resmgr.scenario.steps import ByShape, RunPods

TEMPLATE = "template: {spec: {containers: [{name: app}]}}"


def pods_of(rest: str, api: str = "x.io/v1", kind: str = "Kind") -> dict[str, int]:
    """Return the numbers of pods by the names of the runs."""
    text = f"{{apiVersion: {api}, kind: {kind}, metadata: {{name: web}}, {rest}}}"
    found = read_workload(text)
    runs = [step for step in found.steps if isinstance(step, RunPods)]
    (about,) = found.by_shape
    assert (about.api, about.kind, about.title) == (api, kind, "web")
    assert list(about.pods.values()) == [run.replicas for run in runs]
    return {run.name: run.replicas for run in runs}


@pytest.mark.parametrize(
    ("api", "kind", "spec", "pods"),
    [
        pytest.param(
            "ray.io/v1",
            "RayCluster",
            f"""
            headGroupSpec: {{{TEMPLATE}}},
            workerGroupSpecs: [
              {{groupName: gpu, replicas: 2, minReplicas: 1, numOfHosts: 4,
                {TEMPLATE}}},
              {{groupName: cpu, minReplicas: 3, maxReplicas: 9, {TEMPLATE}}}]""",
            {"web-head": 1, "web-gpu": 8, "web-cpu": 3},
            id="RayCluster",
        ),
        pytest.param(
            "ray.io/v1",
            "RayJob",
            f"""
            submitterPodTemplate: {{spec: {{containers: [{{name: s}}]}}}},
            rayClusterSpec: {{headGroupSpec: {{{TEMPLATE}}}}}""",
            {"web-submitter": 1, "web-head": 1},
            id="RayJob",
        ),
        pytest.param(
            "jobset.x-k8s.io/v1alpha2",
            "JobSet",
            f"""
            replicatedJobs: [
              {{name: a, replicas: 2,
                template: {{spec: {{parallelism: 3, completions: 3, {TEMPLATE}}}}}}},
              {{name: b, template: {{spec: {{{TEMPLATE}}}}}}}]""",
            {"web-a": 6, "web-b": 1},
            id="JobSet",
        ),
        pytest.param(
            "kubeflow.org/v1",
            "PyTorchJob",
            f"""
            pytorchReplicaSpecs: {{
              Master: {{replicas: 1, {TEMPLATE}}}, Worker: {{replicas: 4, {TEMPLATE}}}}}
            """,
            {"web-master": 1, "web-worker": 4},
            id="PyTorchJob",
        ),
        pytest.param(
            "leaderworkerset.x-k8s.io/v1",
            "LeaderWorkerSet",
            """
            replicas: 2, leaderWorkerTemplate: {
              size: 4,
              leaderTemplate: {spec: {containers: [{name: l}]}},
              workerTemplate: {spec: {containers: [{name: w}]}}}""",
            {"web-leader": 2, "web-worker": 6},
            id="LeaderWorkerSet",
        ),
        pytest.param(
            "leaderworkerset.x-k8s.io/v1",
            "LeaderWorkerSet",
            """
            replicas: 2, leaderWorkerTemplate: {
              size: 4, workerTemplate: {spec: {containers: [{name: w}]}}}""",
            {"web": 8},
            id="LeaderWorkerSet without leaders of their own",
        ),
        pytest.param(
            "batch.volcano.sh/v1alpha1",
            "Job",
            f"""
            minAvailable: 3,
            tasks: [{{name: ps, replicas: 1, {TEMPLATE}}},
                    {{replicas: 2, {TEMPLATE}}}]""",
            {"web-ps": 1, "web-tasks-1": 2},
            id="Job of Volcano",
        ),
        pytest.param(
            "serving.knative.dev/v1",
            "Service",
            TEMPLATE,
            {"web": 1},
            id="Service of Knative",
        ),
        pytest.param(
            "apps.kruise.io/v1alpha1",
            "CloneSet",
            f"replicas: 5, {TEMPLATE}",
            {"web": 5},
            id="CloneSet",
        ),
        pytest.param(
            "keda.sh/v1alpha1",
            "ScaledJob",
            f"jobTargetRef: {{parallelism: 2, {TEMPLATE}}}",
            {"web": 2},
            id="ScaledJob",
        ),
        pytest.param(
            "agones.dev/v1",
            "Fleet",
            f"replicas: 3, template: {{spec: {{ports: [], {TEMPLATE}}}}}",
            {"web": 3},
            id="Fleet of Agones",
        ),
        pytest.param(
            "elasticsearch.k8s.elastic.co/v1",
            "Elasticsearch",
            """
            nodeSets: [{name: hot, count: 3,
                        podTemplate: {spec: {containers: [{name: elasticsearch}]}}}]""",
            {"web": 3},
            id="Elasticsearch",
        ),
        pytest.param(
            "x.io/v1",
            "Twice",
            f"a: {{x: {{{TEMPLATE}}}}}, b: {{x: {{{TEMPLATE}}}}}",
            {"web-x": 1, "web-x-1": 1},
            id="two parts of one name",
        ),
        pytest.param(
            "x.io/v1", "None", f"replicas: 0, {TEMPLATE}", {"web": 0}, id="no replicas"
        ),
    ],
)
def test_the_pods_of_an_object_are_found(
    api: str, kind: str, spec: str, pods: dict[str, int]
) -> None:
    assert pods_of(f"spec: {{{spec}}}", api, kind) == pods


def test_what_a_status_has_does_not_run() -> None:
    assert pods_of(f"spec: {{{TEMPLATE}}}, status: {{{TEMPLATE}}}") == {"web": 1}


def test_an_object_found_by_shape_is_described() -> None:
    spec = f"spec: {{a: {{replicas: 2, {TEMPLATE}}}, b: {{{TEMPLATE}}}}}"
    metadata = "metadata: {name: web, namespace: ml}"
    (about,) = read_workload(
        f"{{apiVersion: x.io/v1, kind: Kind, {metadata}, {spec}}}"
    ).by_shape

    assert about == ByShape("x.io/v1", "Kind", "ml/web", {"a": 2, "b": 1})


_keys = st.sampled_from(["a", "tasks", "worker", "spec", "template", "groups"])
_trees = st.recursive(
    st.integers(1, 3).map(lambda number: {"LEAF": number}),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3),
        st.dictionaries(_keys, inner, min_size=1, max_size=3),
    ),
    max_leaves=8,
)


def _planted(tree: object) -> tuple[object, list[int]]:
    """Replace leaves by pod templates; return also the numbers of their pods."""
    if isinstance(tree, list):
        parts = [_planted(one) for one in tree]
        return [one for one, _ in parts], [n for _, found in parts for n in found]
    assert isinstance(tree, dict)
    if "LEAF" in tree:
        template = {"spec": {"containers": [{"name": "app"}]}}
        return {"replicas": tree["LEAF"], "template": template}, [tree["LEAF"]]
    planted = {key: _planted(one) for key, one in tree.items()}
    return (
        {key: one for key, (one, _) in planted.items()},
        [number for _, found in planted.values() for number in found],
    )


@given(_trees)
def test_every_template_is_found_wherever_it_is(tree: object) -> None:
    spec, numbers = _planted(tree)
    document = {"apiVersion": "x.io/v1", "kind": "Kind", "metadata": {"name": "web"}}
    found = read_workload(yaml.safe_dump({**document, "spec": spec}, sort_keys=False))
    runs = [step for step in found.steps if isinstance(step, RunPods)]

    assert [run.replicas for run in runs] == numbers
    assert len({run.name for run in runs}) == len(runs)
