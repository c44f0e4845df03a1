"""Kubernetes manifests as workloads: pods, Deployments and the like."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from nri_resmgr.config import BadSetting
from nri_resmgr.config.syntax import parse_yaml
from nri_resmgr.config.table import Table
from nri_resmgr.scenario.pods import MOST_REPLICAS, amounts_of_pod, run_of
from nri_resmgr.scenario.read import read_document
from nri_resmgr.scenario.rows import ContainerRow, read_texts
from nri_resmgr.scenario.steps import RunPods, Scenario

# Kinds with a pod template, and their key for the number of pods.
_REPLICAS: Final = {
    "Deployment": "replicas",
    "ReplicaSet": "replicas",
    "StatefulSet": "replicas",
    "ReplicationController": "replicas",
    "Job": "parallelism",
    "DaemonSet": "",
}
_KINDS: Final = ("Pod", *_REPLICAS, "List")


def read_workload(text: str) -> Scenario:
    """Read a scenario, or the pods of Kubernetes manifests.

    Manifests are one or more documents. Kinds without pods, such as Service, are
    ignored, as are fields without effect on placement.

    Raises:
        BadSyntax: The text is not YAML.
        BadSetting: The first mistake, or no manifest has pods.
    """
    parts = _documents(text)
    if not any(isinstance(part, Mapping) and "apiVersion" in part for part in parts):
        if len(parts) > 1:
            raise BadSetting("$", "a scenario is one document, but there are several")
        document = parts[0] if parts else None
        return read_document(document)
    steps = [step for n, part in enumerate(parts) for step in _runs(part, f"$[{n}]")]
    if not steps:
        raise BadSetting("$", f"no manifest has pods; known kinds: {', '.join(_KINDS)}")
    return Scenario(machine="", document="", steps=tuple(steps))


def _documents(text: str) -> list[object]:
    parts: list[list[str]] = [[]]
    for line in text.splitlines(keepends=True):
        if line.startswith("---") and line[3:].strip() in ("", "|", ">"):
            parts.append([])
        else:
            parts[-1].append(line)
    # Each is parsed on its own: parse_yaml limits the size of one document.
    documents = (parse_yaml("".join(lines)) for lines in parts)
    return [document for document in documents if document is not None]


def _runs(part: object, path: str) -> Iterator[RunPods]:
    top = _open(part, path)
    kind = top.text("kind", "")
    if kind == "List":
        for place, item in enumerate(_list(top, "items")):
            yield from _runs(item, f"{top.at('items')}[{place}]")
    elif kind == "Pod":
        yield _run(top, top, 1)
    elif kind in _REPLICAS:
        spec = top.open_table("spec")
        key = _REPLICAS[kind]
        replicas = spec.number(key, 0, MOST_REPLICAS, 1) if key else 1
        yield _run(spec.open_table("template"), top, replicas)


def _run(pod: Table, owner: Table, replicas: int) -> RunPods:
    metadata, named = pod.open_table("metadata"), owner.open_table("metadata")
    namespace = named.text("namespace", "") or metadata.text("namespace", "")
    about = ContainerRow(
        namespace=namespace or None,
        pod_labels=read_texts(metadata, "labels"),
        annotations=read_texts(metadata, "annotations"),
    )
    spec = pod.open_table("spec")
    containers = (_containers(spec, "initContainers"), _containers(spec, "containers"))
    own = amounts_of_pod(spec)
    return run_of(named.name("name"), about, containers, replicas, own)


def _containers(spec: Table, key: str) -> tuple[Table, ...]:
    rows = _list(spec, key)
    return tuple(_open(one, f"{spec.at(key)}[{n}]") for n, one in enumerate(rows))


def _open(part: object, path: str) -> Table:
    keys: Iterable[str] = part if isinstance(part, Mapping) else ()
    return Table.read(part, *keys, path=path)


def _list(table: Table, key: str) -> list[object]:
    found = table.rows.get(key, [])
    if not isinstance(found, list):
        raise BadSetting(table.at(key), "expected a list")
    return found
