"""The resources of a pod itself (``spec.resources``), divided among its containers.

The kubelet gives a container without limits those of its pod, and as its request the
limit: each such container seems to ask for the whole pod.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from nri_resmgr.policy.events import ContainerSpec, PodBudget
from nri_resmgr.policy.requests import limited_cpus, requested_cpus
from nri_resmgr.stub.model import LinuxCpu, LinuxMemory, LinuxResources, Pod
from nri_resmgr.values import Bytes, MilliCpus, QosClass


def budget_of(pod: Pod) -> PodBudget | None:
    """Return the budget that a pod was created with; None if no CPU limit is known."""
    resources = pod.linux.pod_resources if pod.linux else None
    return updated_budget(resources, None) if resources else None


def updated_budget(
    resources: LinuxResources, known: PodBudget | None
) -> PodBudget | None:
    """Return the budget of a pod after an update of its sums.

    Args:
        resources: The sums; absent ones, and 0, are not specified.
        known: The budget before; None without one.
    """
    cpu, memory = resources.cpu or LinuxCpu(), resources.memory or LinuxMemory()
    limit = limited_cpus(cpu.quota, cpu.period)
    size = max(memory.limit or 0, 0)
    if known is not None:
        request = requested_cpus(cpu.shares, limit) if cpu.shares else known.request
        memory_limit = Bytes(size) if size else known.memory_limit
        return PodBudget(request, limit or known.limit, memory_limit)
    if limit is None or not cpu.shares:
        return None
    request = requested_cpus(cpu.shares, limit)
    return PodBudget(request, limit, Bytes(size) if size else None)


def divided(
    specs: Sequence[ContainerSpec],
    budget: PodBudget,
    *,
    detects: bool = True,
    before: PodBudget | None = None,
) -> tuple[ContainerSpec, ...]:
    """Return containers of a pod with amounts that do not exceed those of the pod.

    Containers with requests of their own keep these. The others share what is left, on
    shared CPUs: they have no CPUs of their own that could be exclusive. Unless it
    *detects*, only containers that share the budget already are such others. *before*
    is the budget until now, if it changes: containers may still have its limits.
    """
    amount = sum(one.request for one in specs)
    # Each amount is rounded to a thousandth. All others exceed no budget.
    exceeded = detects and amount > budget.request + len(specs)
    members = [
        one.shares_budget or (exceeded and _claims_all(one, budget)) for one in specs
    ]
    if not any(members):
        return tuple(specs)
    pairs = tuple(zip(specs, members, strict=True))
    count = sum(members)
    own = sum(one.request for one, is_member in pairs if not is_member)
    memory = sum(one.memory_request for one, is_member in pairs if not is_member)
    limits = {budget.memory_limit, before.memory_limit if before else None}
    part = MilliCpus(max(budget.request - own, 0) // count)
    memory_part = Bytes(max((budget.memory_limit or 0) - memory, 0) // count)
    return tuple(
        _with_part(one, part, memory_part, limits) if is_member else one
        for one, is_member in pairs
    )


def _claims_all(spec: ContainerSpec, budget: PodBudget) -> bool:
    return spec.limit == budget.limit and spec.request == spec.limit


def _with_part(
    spec: ContainerSpec, part: MilliCpus, memory_part: Bytes, limits: set[Bytes | None]
) -> ContainerSpec:
    # Only a Guaranteed pod's memory request is known, by its limit. That of a member
    # may be known to have been resized before that of the pod is.
    is_ahead = spec.shares_budget and spec.memory_request == spec.memory_limit
    inherits = spec.memory_limit is not None and (
        spec.memory_limit in limits or is_ahead
    )
    is_guaranteed = spec.qos is QosClass.GUARANTEED or spec.shares_budget
    return replace(
        spec,
        request=part,
        memory_request=memory_part
        if inherits and is_guaranteed
        else (spec.memory_request),
        # It may use more than its part, as a Burstable container may.
        qos=QosClass.BURSTABLE if spec.qos is QosClass.GUARANTEED else spec.qos,
        shares_budget=True,
    )
