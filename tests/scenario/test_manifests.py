"""Manifests of Kubernetes: which kinds are read, which are left out by name."""

from __future__ import annotations

from collections import Counter

import pytest

from nri_resmgr.config import BadSetting
from nri_resmgr.scenario.manifests import read_workload
from nri_resmgr.scenario.node import InProcessNode
from nri_resmgr.scenario.play import Player
from nri_resmgr.scenario.steps import LeftOut, RunPods, Scenario, Skipped
from nri_resmgr.topology.synthetic import parse_spec

SPEC = "spec: {containers: [{name: app}]}"
POD = f"{{apiVersion: v1, kind: Pod, metadata: {{name: web}}, {SPEC}}}"
TEMPLATE = f"template: {{{SPEC}}}"
UNREAD = "it has containers, but its kind is not read"
NO_TEMPLATE = "it has containers, but no pod template"
UNKNOWN = "its kind is unknown"


def manifest(api: str, kind: str, rest: str = "", name: str = "web") -> str:
    inner = f", {rest}" if rest else ""
    return f"{{apiVersion: {api}, kind: {kind}, metadata: {{name: {name}}}{inner}}}"


def read(*documents: str) -> Scenario:
    return read_workload("\n---\n".join(documents))


@pytest.mark.parametrize(
    ("api", "kind", "rest", "pods"),
    [
        pytest.param("v1", "Pod", SPEC, 1, id="pod"),
        pytest.param(
            "apps/v1",
            "Deployment",
            f"spec: {{replicas: 3, {TEMPLATE}}}",
            3,
            id="deployment",
        ),
        pytest.param("apps/v1", "DaemonSet", f"spec: {{{TEMPLATE}}}", 1, id="daemons"),
        pytest.param(
            "v1",
            "ReplicationController",
            f"spec: {{replicas: 2, {TEMPLATE}}}",
            2,
            id="replication controller",
        ),
        pytest.param(
            "batch/v1",
            "Job",
            f"spec: {{parallelism: 2, {TEMPLATE}}}",
            2,
            id="job",
        ),
        pytest.param(
            "batch/v1",
            "CronJob",
            f"spec: {{jobTemplate: {{spec: {{parallelism: 2, {TEMPLATE}}}}}}}",
            2,
            id="one run of a cron job",
        ),
        pytest.param(
            "argoproj.io/v1alpha1",
            "Rollout",
            f"spec: {{replicas: 2, {TEMPLATE}}}",
            2,
            id="rollout",
        ),
        pytest.param("v1", "PodTemplate", TEMPLATE, 1, id="template"),
        pytest.param(
            "v1",
            "PodList",
            f"items: [{{metadata: {{name: web}}, {SPEC}}}]",
            1,
            id="list",
        ),
    ],
)
def test_the_pods_of_a_kind_are_read(api: str, kind: str, rest: str, pods: int) -> None:
    found = read(manifest(api, kind, rest))
    (step,) = found.steps

    assert isinstance(step, RunPods)
    assert (step.name, [*step.containers], step.replicas) == ("web", ["app"], pods)
    assert found.left_out == ()


@pytest.mark.parametrize(
    ("api", "kind", "rest", "why"),
    [
        pytest.param(
            "apps.kruise.io/v1alpha1", "SidecarSet", SPEC, NO_TEMPLATE, id="sidecars"
        ),
        pytest.param(
            "apps/v1",
            "Deploymnt",
            f"spec: {{{TEMPLATE}}}",
            UNREAD,
            id="a misspelled kind",
        ),
        pytest.param("apps/v1", "Deploiment", "", UNKNOWN, id="one without a spec"),
        pytest.param(
            "example.k8s.io/v1",
            "Fleet",
            SPEC,
            NO_TEMPLATE,
            id="in a group of Kubernetes",
        ),
        pytest.param(
            "cert-manager.io/v1", "Certificate", "", UNKNOWN, id="no template"
        ),
        pytest.param(
            "jobset.x-k8s.io/v1", "JobSet", "", UNKNOWN, id="a group like Kubernetes'"
        ),
        pytest.param(
            "argoproj.io/v1alpha1",
            "Rollout",
            "spec: {workloadRef: {kind: Deployment, name: web}}",
            "its workloadRef names another object",
            id="a template in another object",
        ),
        pytest.param(
            "kustomize.config.k8s.io/v1beta1",
            "Kustomization",
            "resources: [base]",
            "what it builds is not read; give `kubectl kustomize` to -",
            id="a Kustomization",
        ),
        pytest.param(
            "example.io/v1",
            "Fleet",
            "spec: {template: {spec: {containers: [{image: x}]}}}",
            "its pods cannot be read: "
            "%s.spec.template.spec.containers[0].name: missing, expected text",
            id="a container without a name",
        ),
        pytest.param(
            "example.io/v1",
            "Fleet",
            f"spec: {{replicas: many, {TEMPLATE}}}",
            "its pods cannot be read: %s.spec.replicas: expected a number, not 'many'",
            id="a number that is none",
        ),
        pytest.param(
            "example.io/v1",
            "Fleet",
            f"spec: {{replicas: 1000, a: {{replicas: 101, {TEMPLATE}}}}}",
            "its pods cannot be read: %s.spec.a: more than 100000 pods",
            id="too many pods",
        ),
    ],
)
def test_other_objects_with_pods_are_left_out_by_name(
    api: str, kind: str, rest: str, why: str
) -> None:
    one = manifest(api, kind, rest)
    alone, listed = read(POD, one), read(POD, manifest("v1", "List", f"items: [{one}]"))

    for found, path in ((alone, "$[1]"), (listed, "$[1].items[0]")):
        assert found.left_out == (LeftOut(api, kind, "web", why.replace("%s", path)),)
        assert len(found.steps) == 1


@pytest.mark.parametrize(
    ("api", "kind", "rest"),
    [
        ("v1", "Service", "spec: {ports: [{port: 80}]}"),
        ("v1", "ConfigMap", "data: {pod: 'spec: {containers: []}'}"),
        ("apps/v1", "ControllerRevision", f"data: {{{SPEC}}}"),
        ("networking.k8s.io/v1", "Ingress", ""),
        ("policy/v1", "PodDisruptionBudget", ""),
    ],
)
def test_kinds_without_pods_are_skipped(api: str, kind: str, rest: str) -> None:
    found = read(POD, manifest(api, kind, rest), manifest(api, kind, rest))

    assert (len(found.steps), found.left_out) == (1, ())
    assert found.skipped == (Skipped(kind, 2, "no pods come of them"),)


def test_an_object_without_kind_and_name_is_left_out() -> None:
    (one,) = read(POD, "{apiVersion: v1, metadata: {namespace: shop}}").left_out

    assert (one.title, one.why) == ("shop", UNKNOWN)
    assert str(one) == "object shop (v1)"


def test_a_document_that_is_no_object_is_left_out() -> None:
    (one,) = read(POD, "{replicaCount: 3}").left_out

    assert str(one) == "object without a name"
    assert one.why == "it has no apiVersion and kind"


def test_objects_whose_owner_is_read_are_skipped() -> None:
    """In the dump of a cluster a pod is there three times."""
    deployment = manifest("apps/v1", "Deployment", f"spec: {{replicas: 2, {TEMPLATE}}}")
    owner = "ownerReferences: [{apiVersion: apps/v1, kind: %s, name: %s}]"
    of_set = POD.replace(
        "name: web", f"name: web-1-a, {owner % ('ReplicaSet', 'web-1')}"
    )
    replicas = manifest("apps/v1", "ReplicaSet", f"spec: {{replicas: 2, {TEMPLATE}}}")
    replicas = replicas.replace(
        "name: web", f"name: web-1, {owner % ('Deployment', 'web')}"
    )
    of_node = POD.replace("name: web", f"name: static, {owner % ('Node', 'n')}")
    other = of_set.replace("metadata: {", "metadata: {namespace: shop, ")

    found = read(deployment, replicas, of_set, of_node, other)

    assert [step.name for step in found.steps if isinstance(step, RunPods)] == [
        "web",
        "static",
        "web-1-a",
    ]
    why = "the objects that own them are read"
    assert found.skipped == (Skipped("Pod", 1, why), Skipped("ReplicaSet", 1, why))


def test_pods_that_have_ended_are_skipped() -> None:
    ended = POD.replace("name: web", "name: old")[:-1] + ", status: {phase: %s}}"
    found = read(
        ended % "Running", POD, *(ended % one for one in ("Succeeded", "Failed"))
    )

    assert len(found.steps) == 2
    assert found.skipped == (Skipped("Pod", 2, "they have ended"),)


def test_only_objects_that_are_left_out_are_a_mistake_that_names_them() -> None:
    fleets = [manifest("a.io/v1", "Fleet", name=f"f{n}") for n in range(7)]

    with pytest.raises(BadSetting) as raised:
        read(*fleets)

    named = ", ".join(f"Fleet f{n} (a.io/v1)" for n in range(5))
    assert str(raised.value).endswith(f"List; left out: {named} and 2 more")


def test_objects_of_the_same_name_are_kept_apart() -> None:
    job = f"spec: {{jobTemplate: {{spec: {{{TEMPLATE}}}}}}}"
    other = POD.replace("name: web", "name: web, namespace: shop")
    node = InProcessNode(parse_spec("1s1n4c1t"), "")
    Player(node).play(read(POD, manifest("batch/v1", "CronJob", job), other))

    pods = Counter(f"{pod.namespace}/{pod.name}" for pod in node.pods.values())
    assert pods == Counter(["default/web", "default/web-cronjob", "shop/web"])


def test_two_objects_of_a_kind_with_the_same_name_are_a_mistake() -> None:
    node = InProcessNode(parse_spec("1s1n4c1t"), "")

    with pytest.raises(BadSetting, match="'web' runs already"):
        Player(node).play(read(POD, POD))


def pods_of(*documents: str) -> list[str]:
    node = InProcessNode(parse_spec("1s1n4c1t"), "")
    Player(node).play(read(*documents))
    return [pod.name for pod in node.pods.values()]


def test_pods_of_replicas_are_kept_apart_from_others() -> None:
    two = manifest("apps/v1", "Deployment", f"spec: {{replicas: 2, {TEMPLATE}}}")
    pod = POD.replace("name: web", "name: web-0")

    assert pods_of(two, pod) == ["web-0", "web-1", "web-0-pod"]
    assert pods_of(pod, two) == ["web-0", "web-deployment-0", "web-deployment-1"]


def test_a_name_that_kubernetes_generates_has_a_number() -> None:
    job = manifest("batch/v1", "Job", f"spec: {{{TEMPLATE}}}")
    job = job.replace("name: web", "generateName: load-")
    many = job.replace("spec: {", "spec: {parallelism: 2, ", 1)

    assert pods_of(job, many) == [
        "load-generated-1",
        "load-generated-2-0",
        "load-generated-2-1",
    ]
    nameless = job.replace("generateName: load-", "labels: {}")
    with pytest.raises(BadSetting, match=r"metadata\.name: missing"):
        read(nameless)
