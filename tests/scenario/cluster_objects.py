"""Objects of a cluster, as ``kubectl get -o yaml`` prints those that count."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from nri_resmgr.scenario.manifests import read_objects
from nri_resmgr.scenario.objects import Found

_APIS = {"CronJob": "batch/v1", "Job": "batch/v1", "Rollout": "argoproj.io/v1alpha1"}


def pod(
    name: str,
    node: str,
    *,
    owner: str = "",
    cpu: int = 2,
    since: str = "2026-01-01T00:00:00Z",
) -> dict[str, Any]:
    """Return a running pod; *owner* is a kind and a name."""
    kind, _, of = owner.partition(" ")
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "shop",
            "ownerReferences": [{"kind": kind, "name": of}] if owner else [],
        },
        "spec": {"nodeName": node, **containers(cpu)},
        "status": {"phase": "Running", "startTime": since},
    }


def web_pod(name: str, node: str) -> dict[str, Any]:
    """Return a pod of the Deployment ``web``, by its ReplicaSet."""
    labels = {"app": "web", "pod-template-hash": "7d4b9"}
    return labelled(pod(name, node, owner="ReplicaSet web-7d4b9"), labels)


def labelled(document: dict[str, Any], labels: Mapping[str, str]) -> dict[str, Any]:
    """Return an object with these labels."""
    return document | {"metadata": document["metadata"] | {"labels": dict(labels)}}


def containers(cpu: int) -> dict[str, Any]:
    """Return the containers of a Guaranteed pod: one."""
    limits = {"cpu": cpu, "memory": "1Gi"}
    return {"containers": [{"name": "app", "resources": {"limits": limits}}]}


def rolled(kind: str, name: str, *, replicas: int = 3, cpu: int = 4) -> dict[str, Any]:
    """Return an object with a template of such pods."""
    spec: dict[str, Any] = {"template": {"spec": containers(cpu)}}
    if kind == "CronJob":
        spec = {"jobTemplate": {"spec": {"parallelism": replicas, **spec}}}
    elif kind != "DaemonSet":
        spec["replicas"] = replicas
    metadata = {"name": name, "namespace": "shop"}
    api = _APIS.get(kind, "apps/v1")
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec}


def objects(*documents: Mapping[str, Any]) -> list[Found]:
    """Return what is read of these."""
    return read_objects({"file": yaml.safe_dump_all(documents)}) if documents else []
