"""Good texts of every kind, for drawn ones to begin from."""

from __future__ import annotations

import contextlib
import json
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from nri_proto import nri_pb2
from nri_resmgr.app.configuration.status import Document, DocumentSource
from nri_resmgr.app.plugin.options import PluginOptions
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.checkpoint.encode import FORMAT, Draft
from nri_resmgr.config import API_VERSION
from nri_resmgr.policies import parse_config
from nri_resmgr.recordings.entries import (
    Answered,
    Called,
    Configured,
    Decided,
    Entry,
    Header,
    MachineChanged,
    RecordedCheckpoint,
)
from nri_resmgr.recordings.text import entry_line, header_line
from nri_resmgr.scenario.manifests import read_workload
from nri_resmgr.spool import SpoolHeader
from nri_resmgr.spool import encode as encode_spool
from nri_resmgr.stub import Container, LinuxCpu, LinuxMemory, LinuxPod, Pod
from nri_resmgr.stub.model import LinuxContainer, LinuxResources
from nri_resmgr.testing.kubelet import pods as kubelet
from nri_resmgr.topology.document import to_document
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import InputError
from tests.control.daemon_parts import make_parts
from tests.policy.story_outcomes import WANTED

MACHINE: Final = parse_spec("2s2n2c2t hugepages=2Mi:64 cxl=8Gi")
KINDS: Final = (
    *("StaticPolicy", "StaticPlusPolicy", "StaticPoolsPolicy", "TopologyAwarePolicy"),
    *("BalloonsPolicy", "DynamicPoolsPolicy", "PodpoolsPolicy", "NonePolicy"),
)

_TESTS: Final = Path(__file__).parents[1]
_GIB: Final = 1 << 30


@cache
def documents() -> tuple[str, ...]:
    """Return configurations: those of our stories, and of nri-plugins."""
    foreign = sorted((_TESTS / "config/nri_plugins").glob("*.yaml"))
    return tuple([one.read_text() for one in foreign] + list(_reported_documents()))


def _reported_documents() -> Iterator[str]:
    for path in sorted((_TESTS / "policy/cases").glob("*/*.yaml"))[::3]:
        story: Any = yaml.safe_load(path.read_text())
        if story.get("spec"):
            kind = story.get("kind", "TopologyAwarePolicy")
            top = {"apiVersion": API_VERSION, "kind": kind, "spec": story["spec"]}
            yield yaml.safe_dump(top, sort_keys=False)


@cache
def foreign() -> tuple[str, ...]:
    """Return configurations of other resource managers, and flags of a kubelet."""
    found = sorted((_TESTS / "config/migrate").glob("*.yaml"))
    return (*(one.read_text() for one in found), _KUBELET_FLAGS, _DEPLOYMENT)


@cache
def scenarios() -> tuple[str, ...]:
    """Return scenarios as JSON, which is YAML, too, and manifests."""
    return (*_stories(), _DEPLOYMENT)


def _stories() -> Iterator[str]:
    for path in sorted((_TESTS / "policy/cases").glob("*/*.yaml"))[::7]:
        story: Any = yaml.safe_load(path.read_text())
        steps = story.get("story", [])
        if all(isinstance(step, dict) for step in steps):
            story = {key: story[key] for key in ("machine", "spec") if key in story}
            given = [
                {k: v for k, v in one.items() if k not in _REMARKS} for one in steps
            ]
            text = json.dumps(story | {"story": given})
            with contextlib.suppress(InputError):  # of another kind, by its folder
                read_workload(text)
                yield text


# What stories say of their steps besides.
_REMARKS: Final = frozenset((*WANTED, *("shows", "unknown", "refused")))


_KUBELET_FLAGS: Final = """
KUBELET_EXTRA_ARGS=--cpu-manager-policy=static --reserved-cpus=0-1 \\
  --cpu-manager-policy-options=full-pcpus-only=true --topology-manager-policy=restricted
"""
_DEPLOYMENT: Final = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  template:
    metadata: {labels: {app: web}, annotations: {a/b: c}}
    spec:
      initContainers: [{name: first, resources: {limits: {cpu: 1, memory: 1Gi}}}]
      containers:
      - {name: app, resources: {limits: {cpu: "2", memory: 1Gi, hugepages-2Mi: 4Mi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {containers: [{name: a}]}
"""


@cache
def annotated() -> tuple[str, ...]:
    """Return the annotations of pods that users have, as JSON."""
    found = yaml.safe_load((_TESTS / "app/annotation_samples.yaml").read_text())
    return tuple(json.dumps(one["annotations"]) for one in found)


def pod(name: str = "p", given: dict[str, str] | None = None) -> Pod:
    """Make a Guaranteed pod."""
    return Pod(
        id=f"pod-{name}",
        name=name,
        uid=f"uid-{name}",
        namespace="default",
        annotations=given or {},
        linux=LinuxPod(cgroup_parent=f"/kubepods.slice/kubepods-pod{name}.slice"),
    )


def container(name: str, cpus: float = 1) -> Container:
    """Make the container of a pod."""
    resources = LinuxResources(
        cpu=LinuxCpu(int(cpus * 1024), int(cpus * 100_000), 100_000),
        memory=LinuxMemory(limit=_GIB),
    )
    linux = LinuxContainer(resources=resources)
    return Container(id=name, name=name, pod_sandbox_id=f"pod-{name}", linux=linux)


@cache
def busy_policy(kind: str) -> ResourcePolicy:
    """Return a node that is `fresh_policy` the first time; leave it as it is."""
    return fresh_policy(kind)


def fresh_policy(kind: str) -> ResourcePolicy:
    """Make a node on which a few containers run."""
    document = f"apiVersion: {API_VERSION}\nkind: {kind}\nspec: {_SPECS[kind]}\n"
    options = PluginOptions(document=Document(document, DocumentSource.FILE))
    policy = ResourcePolicy(MACHINE, parse_config(document), plugin_options=options)
    policy.synchronize([], [])
    for name, cpus in (("a", 1), ("b", 2), ("c", 0.25), ("d", 1.5)):
        policy.create_container(pod(name), container(name, cpus))
    return policy


_SPECS: Final = {
    "NonePolicy": "{}",
    "StaticPolicy": "{reservedResources: {cpu: 1}}",
    "StaticPlusPolicy": "{reservedResources: {cpu: 1}}",
    "StaticPoolsPolicy": (
        "{pools: [{name: own, exclusive: true, cpuLists: [{cpus: 4-5}]}, "
        "{name: shared, cpuLists: [{cpus: 0-3}]}]}"
    ),
    "DynamicPoolsPolicy": (
        "{reservedResources: {cpu: 1}, pools: [{name: own, namespaces: [default]}]}"
    ),
    "PodpoolsPolicy": (
        "{reservedResources: {cpu: 1}, pools: [{name: own, cpu: 2, instances: 1}]}"
    ),
    "TopologyAwarePolicy": "{reservedResources: {cpu: 1}, preferSharedCPUs: true}",
    "BalloonsPolicy": (
        "{reservedResources: {cpu: 1}, balloonTypes: "
        "[{name: own, minBalloons: 1, maxCPUs: 4, namespaces: [default]}]}"
    ),
}


@cache
def checkpoint_lines(kind: str) -> tuple[str, ...]:
    """Return what is written down of such a node."""
    policy = busy_policy(kind)
    return tuple(Draft().lines_of(policy.policy, policy.state))


def checkpoints() -> tuple[str, ...]:
    """Return a whole checkpoint."""
    return (sealed("".join(checkpoint_lines(KINDS[0])), KINDS[0]),)


def sealed(body: str, kind: str) -> str:
    """Put the header before records, as if these had been written like that."""
    crc = zlib.crc32(body.encode("utf-8", "surrogateescape"))
    head = {"checkpoint": "nri-resmgr", "format": FORMAT, "crc32": crc}
    head |= {"policy": kind, "version": "1", "written": "now"}
    return f"{json.dumps(head)}\n{body}"


@cache
def recording() -> tuple[str, ...]:
    """Return the lines of a recording."""
    return (header_line(Header("1", 17, MACHINE)), *map(entry_line, _entries()))


def _entries() -> Iterator[Entry]:
    sandbox = nri_pb2.PodSandbox(id="p", name="p", namespace="default")
    made = nri_pb2.Container(id="c", pod_sandbox_id="p", name="c")
    request = nri_pb2.CreateContainerRequest(pod=sandbox, container=made)
    text = documents()[-1]
    yield Configured(17, text)
    yield RecordedCheckpoint(17, "{}")
    yield Called(18, 1, "Synchronize", nri_pb2.SynchronizeRequest(pods=[sandbox]))
    yield Called(18, 2, "CreateContainer", request)
    yield Answered(19, 2, "CreateContainer", nri_pb2.CreateContainerResponse())
    yield Decided(20, "Created", _reasons())
    yield Called(21, 3, "UpdateContainers", nri_pb2.UpdateContainersRequest(), True)
    yield Answered(22, 3, "UpdateContainers", None, 8, "no room")
    yield MachineChanged(23, parse_spec("1s1n2c1t"))


def _reasons() -> tuple[Any, ...]:
    parts = make_parts()
    parts.run("c", 1)
    return tuple(one for row in parts.history.since(0, 9) for one in row.reasons)


def machine_text() -> str:
    """Return the model of a machine as JSON."""
    return json.dumps(to_document(MACHINE))


MACHINES: Final = (
    "2s2n4c2t hugepages=2Mi:256 cxl=2x8Gi:movable offline=3",
    "2s1d2n2c ids=0,2,4,6 distances=10,20,20,20;20,10,20,20;20,20,10,20;20,20,20,10",
)
CLAIMS: Final = (
    '{"claims": {"c-1": {"uid": "c-1", "driver": "dra.cpu", "name": "shop/four", '
    '"cpus": "4-7", "pods": ["u-1"]}}, "containers": {"a": {"id": "a", "pod": "p", '
    '"pod_uid": "u-1", "title": "shop/web/main", "claims": ["c-1"], "cpus": "4-7"}}}'
)
VARIABLES: Final = ("DRA_CPUSET_c-1=0-3,8", "A=1\nDRA_CPUSET_a=1\nDRA_CPUSET_b=2")
SESSION: Final = "\n".join(
    json.dumps({"from": "runtime", "request": request, "message": message})
    for request, message in (
        ("Configure", {"runtime_name": "containerd", "runtime_version": "2.0.0"}),
        ("Synchronize", {"pods": [{"id": "p", "pid": 7}], "more": True}),
        ("Synchronize", {"containers": [{"id": "c", "pod_sandbox_id": "p"}]}),
        ("StateChange", {"event": "RUN_POD_SANDBOX", "pod": {"id": "q"}}),
        ("CreateContainer", {"container": {"linux": {"resources": {"cpu": {}}}}}),
    )
)
CACHED: Final = Document("kind: x\n", DocumentSource.RUNTIME)

HEADS: Final = (
    "GET /v1/events?since=7&follow=1 HTTP/1.1\r\nHost: h\r\n\r\n",
    "PUT /v1/log HTTP/1.1\r\nHost: h\r\nContent-Length: 44\r\n\r\n",
    "GET /v1/explain?pod=shop%2Fa&container=main HTTP/1.0\r\n\r\n",
)

KUBECONFIGS: Final = (
    (
        "current-context: a\n"
        "contexts: [{name: a, context: {cluster: b, user: c, namespace: d}}]\n"
        "clusters: [{name: b, cluster: {server: 'https://[::1]:6443', "
        "certificate-authority-data: YQ==, insecure-skip-tls-verify: true}}]\n"
        "users: [{name: c, user: {tokenFile: t, client-key: k, "
        "client-certificate: c}}]\n"
    ),
    (
        "current-context: a\ncontexts: [{name: a, context: {cluster: b, user: c}}]\n"
        "clusters: [{name: b, cluster: {server: 'https://x'}}]\n"
        "users: [{name: c, user: {exec: {command: x}}}]\n"
    ),
)

WATCHES: Final = (
    (
        '{"type":"ADDED","object":{"metadata":{"name":"a","uid":"u","resourceVersion":"2",'
        '"generation":1,"labels":{"x":"y"}},"data":{"policy":"x"}}}'
    ),
    (
        '{"type":"ERROR","object":{"kind":"Status","code":429,"message":"busy",'
        '"details":{"retryAfterSeconds":1}}}'
    ),
    (
        '{"metadata":{"resourceVersion":"9","continue":"x"},"items":[{"metadata":{"name":'
        '"a","uid":"u","resourceVersion":"2"}}]}'
    ),
    '{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}}}',
)

RESOURCES: Final = (
    json.dumps(
        {
            "initContainers": {
                "i": {"limits": {"cpu": "1"}, "restartPolicy": "Always"}
            },
            "containers": {"c": {"requests": {"cpu": "500m", "memory": "1Gi"}}},
            "pod": {"limits": {"hugepages-2Mi": "4Mi", "example.com/device": 1}},
        }
    ),
)


SPOOLED: Final = encode_spool(
    SpoolHeader("StaticPolicy", "default", "kube-system", "u1", 3, "7", "worker-1"),
    "apiVersion: config.nri/v1alpha1\nkind: StaticPolicy\n",
).decode()

REVIEWS: Final = tuple(
    json.dumps(
        {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {
                "uid": "u1",
                "operation": operation,
                "resource": {"group": "", "version": "v1", "resource": "pods"},
                "object": {
                    "metadata": {
                        "annotations": {"rdtclass.resource-policy.nri.io/pod": "gold"}
                    },
                    "spec": {
                        "containers": [
                            {"name": "c", "resources": {"limits": {"cpu": "500m"}}}
                        ],
                        "initContainers": [{"name": "i", "restartPolicy": "Always"}],
                    },
                },
                "oldObject": None,
            },
        }
    )
    for operation in ("CREATE", "UPDATE")
)

CERTIFICATE: Final = """\
-----BEGIN CERTIFICATE-----
MIIBxzCCAW2gAwIBAgIUI6no4n2fJUlNtKlj9TGuoqscYOIwCgYIKoZIzj0EAwIw
HTEbMBkGA1UEAwwSbnJpLXJlc21nci13ZWJob29rMB4XDTI2MTEyNTAwMzExOVoX
DTI5MDIyNzAwMzExOVowHTEbMBkGA1UEAwwSbnJpLXJlc21nci13ZWJob29rMFkw
EwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE/KjTA6ro9ZP9ivlnXAAxD2A8BhUDMmOX
AiiVUQw4C4EphGqVd54AwvNPTIBHbAIkzUJFSJxZRXa7dFRA8ZSoqaOBijCBhzAM
BgNVHRMBAf8EAjAAMA4GA1UdDwEB/wQEAwIHgDATBgNVHSUEDDAKBggrBgEFBQcD
ATAdBgNVHQ4EFgQUPrr/kH8aWFZjp2TWjXH8Ux5M6NQwHwYDVR0jBBgwFoAUrWpB
UAJJ6U3kLVLaVE40l3DWYIYwEgYDVR0RBAswCYIHYS5iLnN2YzAKBggqhkjOPQQD
AgNIADBFAiEAwE3nOhMJwFyPFw54FT2CgaJ8jLlRsXBaCr8uO4ZZv1YCIHsIzP8M
aSkFsYXh1Rowx+9ghAt1NkM6TpMa0mqYewUh
-----END CERTIFICATE-----
"""

WITH_SECRETS: Final = (
    "- name: DB_PASSWORD\n  value: |\n    x\n  token: 'y z'\n",
    'sent {"auth": "{\\"token\\": \\"x\\"}"} to https://a:b@c --api-key z\n',
    "Authorization: Bearer eyJhbGciOi.eyJzdWIiOi.x\n-----BEGIN PRIVATE KEY-----\nx",
)

ADJUSTMENTS: Final = (
    """\
- apiVersion: criresmgr.intel.com/v1alpha1
  kind: Adjustment
  metadata: {name: a, namespace: kube-system, uid: u1, generation: 2}
  spec:
    scope:
    - nodes: [node-1, worker-*]
      containers: [{key: ":,:pod/name,name", operator: Matches, values: ["*:*"]}]
    resources: {requests: {cpu: 750m, memory: 500Mi}, limits: {cpu: 1500m}}
    classes: {rdt: gold, blockio: fast}
    toptierLimit: 500Mi
""",
    "[]",
)


def kubelets_pods() -> Iterator[str]:
    """Yield pods as the kubelet sends them, a character for each byte."""
    asked = {"cpu": "1m", "memory": "1Gi"}
    limits = {"cpu": "2", "memory": "2Gi", "vendor.com/gpu": "1"}
    one = kubelet.pod(
        "uid-1",
        kubelet.container("log", asked, restart_policy="Always"),
        kubelet.container("web", asked, limits),
    )
    one.spec.resources.CopyFrom(kubelet.resources(asked, limits))
    one.status.containerStatuses.append(
        kubelet.status("web", asked, limits, allocated=asked.items())
    )
    yield one.SerializeToString().decode("latin-1")
