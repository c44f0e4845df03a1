"""What containers ask for and have, as plain data; nothing that pods keep secret."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from nri_resmgr.app.verification.verifier import Verification
from nri_resmgr.control.subject import Subject
from nri_resmgr.control.times import time_text
from nri_resmgr.control.verification import verified_container
from nri_resmgr.policy.events import NO_PIN, ContainerSpec, Pin, RequestOrigin
from nri_resmgr.policy.views import PoolUse
from nri_resmgr.values import NO_CPUS, CpuSet

Data = dict[str, Any]


class View(msgspec.Struct, frozen=True):
    """The policy's state at one moment.

    Attributes:
        specs: The containers that are here, by id.
        pins: What should hold for them.
        pools: The pools.
        pool_of: The name of each container's pool.
        exclusive: CPUs that one container each has to itself.
        verification: Compares decisions with the kernel's word; None where nobody does.
    """

    specs: Mapping[str, ContainerSpec]
    pins: Mapping[str, Pin]
    pools: Sequence[PoolUse]
    pool_of: Mapping[str, str]
    exclusive: CpuSet
    verification: Verification | None


def view_of(subject: Subject) -> View:
    """Look at what holds now."""
    policy, state = subject.policy.policy, subject.policy.state
    pools = policy.pools(state)
    return View(
        specs={key: entry.spec for key, entry in state.ledger.entries.items()},
        pins=policy.pins(state),
        pools=pools,
        pool_of={one: pool.name for pool in pools for one in pool.containers},
        exclusive=CpuSet.union(pool.exclusive for pool in pools),
        verification=subject.verification(),
    )


def containers_of(view: View) -> Iterator[Data]:
    """Yield a row per container, by namespace, pod and age."""
    specs = view.specs.values()
    for spec in sorted(specs, key=lambda s: (s.namespace, s.pod_name, s.created, s.id)):
        yield container_of(spec, view)


def container_of(spec: ContainerSpec, view: View) -> Data:
    """Describe one container that is here.

    Its labels, annotations, environment and arguments stay where they are.
    """
    pin = view.pins.get(spec.id, NO_PIN)
    return {
        "id": spec.id,
        "namespace": spec.namespace,
        "pod": spec.pod_name,
        "podUid": spec.pod_uid,
        "name": spec.name,
        "qos": spec.qos.value,
        "pool": view.pool_of.get(spec.id, ""),
        "cpus": str(pin.cpus),
        "exclusive": str(pin.cpus & view.exclusive if pin.cpus else NO_CPUS),
        "mems": str(pin.mems),
        "request": _request_of(spec),
        "source": spec.source.value,
        "accuracy": "exact" if spec.source is RequestOrigin.ANNOTATION else "estimated",
        "created": time_text(spec.created),
        "started": time_text(spec.started),
        "verification": verified_container(view.verification, spec.id),
    }


def _request_of(spec: ContainerSpec) -> Data:
    return {
        "cpu": spec.request,
        "cpuLimit": spec.limit,
        "memory": spec.memory_request,
        "memoryLimit": spec.memory_limit,
    }
