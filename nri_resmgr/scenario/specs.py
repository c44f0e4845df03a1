"""Containers as policies see them, out of what a scenario says of them."""

from __future__ import annotations

from nri_resmgr.app.annotations import read_preferences
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.scenario.rows import ContainerRow
from nri_resmgr.topology import Machine
from nri_resmgr.topology.hints import complete_hints
from nri_resmgr.values import Bytes, MilliCpus, QosClass


def spec_of_row(
    name: str, row: ContainerRow, machine: Machine, warnings: list[str]
) -> ContainerSpec:
    """Say what policies need to know of a container, to the letter.

    Args:
        name: Its id; its name in the pod too, unless the row names one.
        row: What the scenario says of it, its QoS class included.
        machine: Where it runs.
        warnings: Takes what is said of annotations that are passed over.

    Raises:
        BadAnnotation: One that must not be misread means nothing.
    """
    pod, namespace = row.pod or f"pod-of-{name}", row.namespace or "default"
    called = row.name or name
    read = read_preferences(row.annotations or {}, called, pod=f"{namespace}/{pod}")
    warnings.extend(f"{one.key}: {one.why}" for one in read.problems)
    return ContainerSpec(
        id=name,
        pod=pod,
        title=f"{namespace}/{pod}/{called}",
        slot=row.slot or "",
        namespace=namespace,
        qos=row.qos or QosClass.BEST_EFFORT,
        request=row.request or MilliCpus(0),
        limit=row.limit,
        created=row.created or 0,
        present=row.pinned,
        memory_request=row.memory or Bytes(0),
        memory_limit=memory_limit_of(row),
        hugepages=row.hugepages or (),
        name=called,
        pod_name=pod,
        pod_uid=f"uid-of-{pod}",
        labels=row.labels or {},
        tags=row.tags or {},
        pod_labels=row.pod_labels or {},
        pod_tags=row.pod_tags or {},
        preferences=read.preferences,
        hints=complete_hints(row.hints or (), machine),
        started=row.started or 0,
    )


def memory_limit_of(row: ContainerRow) -> Bytes | None:
    """Give the memory limit; a Guaranteed container's is what it asks for."""
    if row.memory_limit is None and row.qos is QosClass.GUARANTEED:
        return row.memory
    return row.memory_limit
