"""Turns containers of a scenario into the specs that policies decide on."""

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
    """Return the spec of a container.

    Args:
        name: Its id, and its name in the pod unless the row has one.
        row: The container in the scenario, with its QoS class.
        machine: The machine of the node.
        warnings: Warnings about ignored annotations are appended.

    Raises:
        BadAnnotation: An annotation that must not be ignored is invalid.
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
    """Return the memory limit; of a Guaranteed container by default the request."""
    if row.memory_limit is None and row.qos is QosClass.GUARANTEED:
        return row.memory
    return row.memory_limit
