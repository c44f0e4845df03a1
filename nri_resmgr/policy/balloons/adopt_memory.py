"""Memory of running containers: their former grants, as far as there is room."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from msgspec.structs import replace

from nri_resmgr.policy.balloons.context import BalloonsContext as Context
from nri_resmgr.policy.balloons.memory import (
    add_nearby_nodes,
    reoffer_memory,
    request_of,
    size_of,
)
from nri_resmgr.policy.balloons.state import BalloonsState as State
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.mems import MemoryLedger, MemoryRequest, restore_memory
from nri_resmgr.values import PolicyError


def with_memory(
    specs: Sequence[ContainerSpec], old: State, state: State, context: Context
) -> State:
    """Grant memory, first to containers that have some.

    They keep their nodes, and less than they ask for where there was not enough; what
    is free at the end is for those.
    """
    memory = state.memory
    had = {one.id: one.present.mems for one in specs}
    had |= {key: grant.zone for key, grant in old.memory.grants.items() if key in had}
    for spec in sorted(specs, key=lambda one: not had[one.id]):
        name = state.memberships[spec.id].balloon
        if name and context.type_of(state.balloons[name]).pin_memory:
            request = _request(spec, name, old, state, context)
            memory = reoffer_memory(request, had[spec.id], memory).ledger
            near = state.allowed_cpus(state.balloons[name])
            memory, _ = add_nearby_nodes((spec.id,), near, memory, context)
    return replace(state, memory=_with_rest(specs, memory, state, context))


def _with_rest(
    specs: Sequence[ContainerSpec],
    memory: MemoryLedger,
    state: State,
    context: Context,
) -> MemoryLedger:
    """Grant containers the memory that they lack, where there is room by now."""
    for spec in specs:
        known = memory.grants.get(spec.id)
        wanted = size_of(spec, context.settings.memory_by)
        if known is None or known.request.size >= wanted:
            continue
        balloon = state.balloons[state.memberships[spec.id].balloon]
        cpus = state.allowed_cpus(balloon)
        request = request_of(spec, context.type_of(balloon), cpus, context)
        with suppress(PolicyError):
            left = memory.release(spec.id)
            memory = restore_memory(request, known.zone, left).ledger
    return memory


def _request(
    spec: ContainerSpec, name: str, old: State, state: State, context: Context
) -> MemoryRequest:
    """Build a container's memory request: its former grant if the spec is the same.

    A grant may be less than the request, as much as there was room for.
    """
    balloon, by = state.balloons[name], context.settings.memory_by
    cpus = state.allowed_cpus(balloon)
    request = request_of(spec, context.type_of(balloon), cpus, context)
    if spec.id not in old.memory:
        return request
    granted, before = old.memory.grants[spec.id].request, old.ledger.spec_of(spec.id)
    same = size_of(before, by) == size_of(spec, by) and (
        (before.hugepages, granted.kinds) == (spec.hugepages, request.kinds)
    )
    if not same:
        return request
    return replace(request, size=granted.size, hugepages=granted.hugepages)
