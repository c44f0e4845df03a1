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
from nri_resmgr.app.checkpoint.write import FORMAT, Draft
from nri_resmgr.app.configuration.acceptance import ActiveConfiguration
from nri_resmgr.app.configuration.status import Document, DocumentSource
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.config import API_VERSION, parse_config
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
from nri_resmgr.stub import Container, LinuxCpu, LinuxMemory, LinuxPod, Pod
from nri_resmgr.stub.model import LinuxContainer, LinuxResources
from nri_resmgr.topology.document import to_document
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import InputError
from tests.control.daemon_parts import make_parts
from tests.policy.story_outcomes import WANTED

MACHINE: Final = parse_spec("2s2n2c2t hugepages=2Mi:64 cxl=8Gi")
KINDS: Final = ("StaticPolicy", "TopologyAwarePolicy", "BalloonsPolicy")

_TESTS: Final = Path(__file__).parents[1]
_GIB: Final = 1 << 30


@cache
def documents() -> tuple[str, ...]:
    """Return configurations: those of our stories, and of nri-plugins."""
    foreign = sorted((_TESTS / "config/nri_plugins").glob("*.yaml"))
    return tuple([one.read_text() for one in foreign] + list(_told_documents()))


def _told_documents() -> Iterator[str]:
    for path in sorted((_TESTS / "policy/cases").glob("*/*.yaml"))[::3]:
        story: Any = yaml.safe_load(path.read_text())
        if story.get("spec"):
            kind = story.get("kind", "TopologyAwarePolicy")
            top = {"apiVersion": API_VERSION, "kind": kind, "spec": story["spec"]}
            yield yaml.safe_dump(top, sort_keys=False)


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
            told = [
                {k: v for k, v in one.items() if k not in _REMARKS} for one in steps
            ]
            text = json.dumps(story | {"story": told})
            with contextlib.suppress(InputError):  # of another kind, by its folder
                read_workload(text)
                yield text


# What stories say of their steps besides.
_REMARKS: Final = frozenset((*WANTED, *("shows", "unknown", "refused")))


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


def pod(name: str = "p", told: dict[str, str] | None = None) -> Pod:
    """Make a Guaranteed pod."""
    return Pod(
        id=f"pod-{name}",
        name=name,
        uid=f"uid-{name}",
        namespace="default",
        annotations=told or {},
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
    policy = ResourcePolicy(MACHINE, parse_config(document))
    policy.use_configuration(
        ActiveConfiguration(Document(document, DocumentSource.FILE))
    )
    policy.synchronize([], [])
    for name, cpus in (("a", 1), ("b", 2), ("c", 0.25), ("d", 1.5)):
        policy.create_container(pod(name), container(name, cpus))
    return policy


_SPECS: Final = {
    "StaticPolicy": "{reservedResources: {cpu: 1}}",
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
CACHED: Final = Document("kind: x\n", DocumentSource.RUNTIME)

HEADS: Final = (
    "GET /v1/events?since=7&follow=1 HTTP/1.1\r\nHost: h\r\n\r\n",
    "PUT /v1/log HTTP/1.1\r\nHost: h\r\nContent-Length: 44\r\n\r\n",
    "GET /v1/explain?pod=shop%2Fa&container=main HTTP/1.0\r\n\r\n",
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
