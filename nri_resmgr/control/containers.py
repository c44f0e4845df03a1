"""Containers as JSON data: requests, pinning, verification; nothing secret."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from nri_resmgr.app.verification.verifier import Verification
from nri_resmgr.control.daemon_view import DaemonView
from nri_resmgr.control.times import time_text
from nri_resmgr.policy.events import NO_PIN, ContainerSpec, Pin, RequestOrigin
from nri_resmgr.policy.views import PoolUse
from nri_resmgr.values import NO_CPUS, CpuSet
from nri_resmgr.values.documents import JsonObject


class PolicySnapshot(msgspec.Struct, frozen=True):
    """The policy's state at one moment.

    Attributes:
        specs: The present containers, by id.
        pins: The pinning that each should have.
        pools: The pools.
        pool_of: The name of each container's pool.
        exclusive: All exclusive CPUs.
        verification: Compares cgroups with decisions; None if it is off.
    """

    specs: Mapping[str, ContainerSpec]
    pins: Mapping[str, Pin]
    pools: Sequence[PoolUse]
    pool_of: Mapping[str, str]
    exclusive: CpuSet
    verification: Verification | None


def snapshot_of(daemon: DaemonView) -> PolicySnapshot:
    """Take a snapshot of the policy."""
    policy, state = daemon.policy.policy, daemon.policy.state
    pools = policy.pools(state)
    return PolicySnapshot(
        specs={key: entry.spec for key, entry in state.ledger.entries.items()},
        pins=policy.pins(state),
        pools=pools,
        pool_of={one: pool.name for pool in pools for one in pool.containers},
        exclusive=CpuSet.union(pool.exclusive for pool in pools),
        verification=daemon.verification(),
    )


def containers_of(snapshot: PolicySnapshot) -> Iterator[JsonObject]:
    """Yield the data of each container, sorted by namespace, pod and age."""
    specs = snapshot.specs.values()
    for spec in sorted(specs, key=lambda s: (s.namespace, s.pod_name, s.created, s.id)):
        yield container_of(spec, snapshot)


def container_of(spec: ContainerSpec, snapshot: PolicySnapshot) -> JsonObject:
    """Describe a present container.

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
        "request": _request_of(spec),
        "source": spec.source.value,
        "accuracy": "exact" if spec.source is RequestOrigin.ANNOTATION else "estimated",
        "created": time_text(spec.created),
        "started": time_text(spec.started),
        "verification": verified_container(snapshot.verification, spec.id),
    }


def _request_of(spec: ContainerSpec) -> JsonObject:
    return {
        "cpu": spec.request,
        "cpuLimit": spec.limit,
        "memory": spec.memory_request,
        "memoryLimit": spec.memory_limit,
    }


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


def verified_container(found: Verification | None, container: str) -> JsonObject | None:
    """Describe the last verification of a container; None if it is off."""
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
