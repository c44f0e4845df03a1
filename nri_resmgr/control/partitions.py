"""The partitions of containers with exclusive CPUs, as JSON data and as sentences."""

from __future__ import annotations

from collections.abc import Iterator

from nri_resmgr.app.plugin.node_policy import NodePolicy
from nri_resmgr.app.running.by_cgroup import ByCgroup
from nri_resmgr.app.running.partitions import PartitionRequest, Partitions
from nri_resmgr.classes.isolation.exclusivity import Exclusivity
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.values.documents import JsonObject

_NOT_STARTED = "it has not been started yet"


def exclusivity_of(policy: NodePolicy) -> JsonObject:
    """Describe what keeps other processes off exclusive CPUs.

    ``whyNot`` is why partitions are configured and not made.
    """
    partitions = partitions_of(policy)
    requests = partitions.requests() if partitions else {}
    return {
        "configured": policy.config.exclusivity.value,
        "whyNot": _why_not(policy),
        "partitions": [
            {
                "container": one.title,
                "cpus": str(one.cpus),
                "kind": one.kind.value,
                "inForce": partitions.is_valid(key),
                "why": _why(partitions, key),
            }
            for key, one in sorted(requests.items(), key=lambda each: each[1].title)
            if partitions
        ],
    }


def partition_sentences(spec: ContainerSpec, policy: NodePolicy) -> Iterator[str]:
    """Yield what keeps other processes off the exclusive CPUs of a container."""
    partitions = partitions_of(policy)
    request = partitions.requests().get(spec.id) if partitions else None
    if partitions is not None and request is not None:
        yield _sentence(request, _why(partitions, spec.id))
    elif spec.id in policy.policy.exclusive_cpus(policy.state) and (
        why := _why_not(policy)
    ):
        key = f"exclusivity: {policy.config.exclusivity.value}"
        yield f"no partition of the kernel in spite of {key}: {why}"


def partitions_of(policy: NodePolicy) -> Partitions | None:
    """Return the partitions of a policy; None if cgroups are not written."""
    delivery = policy.delivery
    return delivery.partitions if isinstance(delivery, ByCgroup) else None


def _why_not(policy: NodePolicy) -> str:
    if policy.config.exclusivity is Exclusivity.CPUSET:
        return ""
    if (partitions := partitions_of(policy)) is not None:
        return partitions.why_not
    why = policy.delivery.problem
    return f"cgroups are not written{why and f': {why}'}"


def _why(partitions: Partitions, container: str) -> str:
    if partitions.is_valid(container):
        return ""
    result = partitions.results.get(container)
    return result.why if result and result.why else _NOT_STARTED


def _sentence(request: PartitionRequest, why: str) -> str:
    cpus, kind = request.cpus, f"{request.kind.value} partition"
    if why:
        return f"CPU {cpus}: not kept free by a partition of the kernel: {why}"
    return f"CPU {cpus}: kept free of all other processes by the kernel, as {kind}"
