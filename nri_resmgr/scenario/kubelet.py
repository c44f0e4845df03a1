"""Pods and containers as a kubelet passes them to a runtime."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Final
from uuid import UUID

from nri_resmgr.policy.requests import (
    DEFAULT_PERIOD,
    oom_score_adj_of,
    quota_of,
    shares_of,
)
from nri_resmgr.scenario.rows import ContainerRow
from nri_resmgr.stub import Container, LinuxCpu, LinuxMemory, LinuxResources, Pod
from nri_resmgr.stub.model import HugepageLimit, LinuxContainer, LinuxPod
from nri_resmgr.values import Bytes, MilliCpus, QosClass, format_cpus

_SLICES: Final = {
    QosClass.GUARANTEED: "/kubepods.slice/kubepods-pod{}.slice",
    QosClass.BURSTABLE: "/kubepods.slice/kubepods-burstable.slice"
    "/kubepods-burstable-pod{}.slice",
    QosClass.BEST_EFFORT: "/kubepods.slice/kubepods-besteffort.slice"
    "/kubepods-besteffort-pod{}.slice",
}
_OOM_SCORES: Final = {QosClass.GUARANTEED: -997, QosClass.BEST_EFFORT: 1000}
ANNOUNCED: Final = "noderesource.dev/resources"
_SLOT: Final = "io.kubernetes.container.name"


def pod_of(name: str, row: ContainerRow, overhead: ContainerRow | None = None) -> Pod:
    """Return a pod's sandbox, with the annotations of *row*, one of its containers."""
    namespace = row.namespace or "default"
    uid = _uid(f"{namespace}/{name}")
    parent = _SLICES[row.qos or QosClass.BEST_EFFORT].format(uid.replace("-", "_"))
    return Pod(
        id=name,
        name=name,
        uid=uid,
        namespace=namespace,
        labels=row.pod_labels or {},
        annotations={**(row.pod_tags or {}), **(row.annotations or {})},
        linux=LinuxPod(
            pod_overhead=resources_of(overhead) if overhead else None,
            pod_resources=resources_of(row.of_pod) if row.of_pod else None,
            cgroup_parent=parent,
        ),
    )


def container_of(name: str, row: ContainerRow, capacity: Bytes) -> Container:
    """Return a container as the runtime sends it, not pinned yet.

    *name* is its id, and its name unless the row has one. The kubelet computes the OOM
    score from *capacity*, the memory of the node.
    """
    slot = {_SLOT: row.slot} if row.slot else {}
    return Container(
        id=name,
        name=row.name or name,
        labels={**(row.labels or {}), **slot},
        annotations=row.tags or {},
        args=row.args or (),
        env=row.environment,
        linux=LinuxContainer(
            resources=resources_of(row), oom_score_adj=_oom_score(row, capacity)
        ),
    )


def resources_of(row: ContainerRow) -> LinuxResources:
    """Return the cgroup values of a container's requests and limits."""
    shares, limit = shares_of(row.request or MilliCpus(0)), row.effective_limit
    return LinuxResources(
        cpu=LinuxCpu(shares, quota_of(limit) if limit else 0, DEFAULT_PERIOD),
        memory=LinuxMemory(limit=row.effective_memory_limit or 0),
        hugepage_limits=tuple(
            HugepageLimit(_page_size(pages.size), pages.count * pages.size)
            for pages in row.hugepages or ()
        ),
    )


def _oom_score(row: ContainerRow, capacity: Bytes) -> int:
    if row.qos is QosClass.BURSTABLE:
        memory = (row.memory or 0) + (row.pod_memory or 0)
        return oom_score_adj_of(Bytes(memory), capacity)
    return _OOM_SCORES[row.qos or QosClass.BEST_EFFORT]


def _page_size(size: int) -> str:
    """Return the name of a page size in cgroups: ``2MB``, ``1GB``."""
    for name, factor in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if size % factor == 0:
            return f"{size // factor}{name}"
    return f"{size}B"


def _uid(text: str) -> str:
    digest = hashlib.sha256(text.encode()).hexdigest()
    return str(UUID(digest[:32]))


def announcement(rows: Mapping[str, ContainerRow]) -> dict[str, str]:
    """Return the annotation that announces the requests of a pod's containers."""
    containers = {name: _amounts(row) for name, row in rows.items()}
    return {ANNOUNCED: json.dumps({"containers": containers})}


def _amounts(row: ContainerRow) -> dict[str, dict[str, str]]:
    requests = {"cpu": row.request, "memory": row.memory}
    limits = {"cpu": row.effective_limit, "memory": row.effective_memory_limit}
    return {"requests": _quantities(requests), "limits": _quantities(limits)}


def _quantities(amounts: Mapping[str, int | None]) -> dict[str, str]:
    return {
        key: format_cpus(MilliCpus(amount)) if key == "cpu" else str(amount)
        for key, amount in amounts.items()
        if amount
    }
