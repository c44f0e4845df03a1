"""The containers of a story, out of what a step says of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nri_resmgr.app.annotations import read_preferences
from nri_resmgr.policy.events import NO_PIN, ContainerSpec, Pin
from nri_resmgr.policy.requests import shares_of
from nri_resmgr.topology import HugePages, Machine
from nri_resmgr.topology.hints import Hint, complete_hints
from nri_resmgr.values import (
    Bytes,
    CpuSet,
    MilliCpus,
    NodeSet,
    QosClass,
    parse_bytes,
    parse_cpus,
)

_QOS: Final = {
    "guaranteed": QosClass.GUARANTEED,
    "burstable": QosClass.BURSTABLE,
    "best-effort": QosClass.BEST_EFFORT,
}


def container_of(
    name: str, row: Mapping[str, Any], machine: Machine, warnings: list[str]
) -> ContainerSpec:
    """Read a container.

    Args:
        name: Its id; its name in the pod too, unless the row names one.
        row: What a step says of it. ``guaranteed``, ``burstable`` or
            ``best-effort`` give its QoS class and CPU request; ``limit`` its CPU
            limit, in thousandths; ``memory`` its memory request, for a Guaranteed
            one its limit, too.
        machine: Where it runs.
        warnings: Takes what is said of annotations that are passed over.
    """
    (qos,) = _QOS.keys() & row.keys()
    pod, namespace = row.get("pod", f"pod-of-{name}"), row.get("namespace", "default")
    called = row.get("name", name)
    read = read_preferences(
        row.get("annotations", {}), called, pod=f"{namespace}/{pod}"
    )
    warnings.extend(f"{one.key}: {one.why}" for one in read.problems)
    return ContainerSpec(
        id=name,
        pod=pod,
        title=f"{namespace}/{pod}/{called}",
        slot=row.get("slot", ""),
        namespace=namespace,
        qos=_QOS[qos],
        request=parse_cpus(str(row[qos] or 0)),
        limit=MilliCpus(int(row["limit"])) if "limit" in row else None,
        created=row.get("created", 0),
        present=_present(row.get("present", ""), parse_cpus(str(row[qos] or 0))),
        memory_request=parse_bytes(str(row.get("memory", 0))),
        memory_limit=_bytes(row.get("memory-limit", _same_limit(row))),
        hugepages=_hugepages(row.get("hugepages", {})),
        name=called,
        pod_name=pod,
        pod_uid=f"uid-of-{pod}",
        labels=row.get("labels", {}),
        tags=row.get("tags", {}),
        pod_labels=row.get("pod-labels", {}),
        pod_tags=row.get("pod-tags", {}),
        preferences=read.preferences,
        hints=complete_hints(map(_hint, row.get("hints", ())), machine),
        started=row.get("started", 0),
    )


def merged(known: Mapping[str, Any], step: Mapping[str, Any]) -> dict[str, Any]:
    """Say of a container what an update says, and what it leaves out as before."""
    named = _QOS.keys() & step.keys()
    kept = {key: what for key, what in known.items() if not named or key not in _QOS}
    return {**kept, **step}


def _present(text: str, request: MilliCpus) -> Pin:
    """Read ``0-3 on 0 with 512``; the kubelet's shares if it says none."""
    if not text:
        return NO_PIN
    place, _, shares = text.partition(" with ")
    cpus, _, mems = place.partition(" on ")
    weight = int(shares or shares_of(request))
    return Pin(CpuSet.parse(cpus), NodeSet.parse(mems), weight)


def _same_limit(row: Mapping[str, Any]) -> object:
    return row.get("memory") if "guaranteed" in row else None


def _bytes(amount: object) -> Bytes | None:
    return None if amount is None else parse_bytes(str(amount))


def _hugepages(row: Mapping[str, int]) -> tuple[HugePages, ...]:
    return tuple(HugePages(parse_bytes(size), count) for size, count in row.items())


def _hint(text: str) -> Hint:
    """Read ``nic at cpus 0-3``, ``gpu at nodes 1``, ``podresapi:gpu at nodes 1``."""
    provider, _, place = text.partition(" at ")
    what, _, ids = place.partition(" ")
    if what == "nodes":
        return Hint(provider, nodes=NodeSet.parse(ids))
    return Hint(provider, cpus=CpuSet.parse(ids))
