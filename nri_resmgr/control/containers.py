"""Containers as JSON data: requests, pinning, verification; nothing secret."""

from __future__ import annotations

from collections.abc import Iterator

from nri_resmgr.app.observers.policy_in_force import PolicySnapshot
from nri_resmgr.app.verification.verifier import Verification
from nri_resmgr.control.daemon_view import DaemonView
from nri_resmgr.control.delivery import delivery_of
from nri_resmgr.control.times import time_text
from nri_resmgr.policy.events import (
    EXACT_ORIGINS,
    NO_PIN,
    ContainerSpec,
    RequestOrigin,
)
from nri_resmgr.values import NO_CPUS
from nri_resmgr.values.documents import JsonObject


def containers_of(snapshot: PolicySnapshot, daemon: DaemonView) -> Iterator[JsonObject]:
    """Yield the data of each container, sorted by namespace, pod and age."""
    specs = snapshot.specs.values()
    for spec in sorted(specs, key=lambda s: (s.namespace, s.pod_name, s.created, s.id)):
        yield container_of(spec, snapshot, daemon)


def container_of(
    spec: ContainerSpec, snapshot: PolicySnapshot, daemon: DaemonView
) -> JsonObject:
    """Describe a present container, with its verification, if that is on.

    Its CPUs and memory nodes are the decided ones; `delivery` states whether they wait.
    Labels, annotations, environment and arguments may be secret and are left out.
    """
    pin = snapshot.pins.get(spec.id, NO_PIN)
    return {
        "id": spec.id,
        "namespace": spec.namespace,
        "pod": spec.pod_name,
        "podUid": spec.pod_uid,
        "name": spec.name,
        "qos": spec.qos.value,
        "pool": snapshot.pool_of.get(spec.id, ""),
        "cpus": str(pin.cpus),
        "exclusive": str(pin.cpus & snapshot.exclusive if pin.cpus else NO_CPUS),
        "mems": str(pin.mems),
        "request": {
            "cpu": spec.request,
            "cpuLimit": spec.limit,
            "memory": spec.memory_request,
            "memoryLimit": spec.memory_limit,
            "hugepages": [
                {"size": one.size, "count": one.count} for one in spec.hugepages
            ],
            "extended": dict(sorted(spec.extended.items())),
            "ofPod": spec.shares_budget,
        },
        "source": spec.source.value,
        "adjustment": spec.adjusted.name if spec.adjusted else "",
        "ownSource": spec.own_source.value,
        "priority": _priority(spec),
        "accuracy": "exact" if spec.source in EXACT_ORIGINS else "estimated",
        "created": time_text(spec.created),
        "started": time_text(spec.started),
        "delivery": delivery_of(spec.id, daemon),
        "verification": _verified(daemon.verification(), spec.id),
    }


def _priority(spec: ContainerSpec) -> JsonObject | None:
    if spec.priority is None:
        return None
    # No other source has it.
    return {"value": spec.priority, "source": RequestOrigin.KUBELET.value}


def verification_of(found: Verification | None) -> JsonObject | None:
    """Describe the last verification of all cgroups; None if it is off."""
    if found is None:
        return None
    counts = found.counts()
    return {
        "intervalSeconds": found.options.interval,
        "repairs": found.options.repairs,
        "rounds": found.rounds,
        "last": time_text(found.ended),
        "containers": {word.value: counts[word] for word in sorted(counts)},
    }


def _verified(found: Verification | None, container: str) -> JsonObject | None:
    if found is None:
        return None
    finding = found.finding_of(container)
    return {
        "verdict": finding.verdict.value,
        "differences": [
            {"kind": one.kind.value, "wanted": one.wanted, "found": one.found}
            for one in finding.differences
        ],
        "why": finding.why,
        "repairs": found.repairs.attempts_of(container),
        "abandoned": found.repairs.is_abandoned(container),
    }
