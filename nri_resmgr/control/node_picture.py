"""The picture of a node, of its state as the daemon answers it."""

from __future__ import annotations

from collections.abc import Iterator

from nri_resmgr.pictures.values import HeldCpus, Holder, Picture, Plan
from nri_resmgr.policy.overhead_name import OVERHEAD_NAME
from nri_resmgr.topology import Machine
from nri_resmgr.values import NO_CPUS, CpuSet, MilliCpus
from nri_resmgr.values.counts import count_text
from nri_resmgr.values.documents import JsonObject
from nri_resmgr.values.quantities import format_cpus


def picture_of_state(state: JsonObject, machine: Machine) -> Picture:
    """Describe the picture of a node: all containers, reservations and claims.

    Args:
        state: The answer to ``GET /v1/state``.
        machine: The node's.
    """
    count = count_text(len(state["containers"]), "container")
    return Picture(
        title=f"{state['policy']}: {count}",
        plans=(plan_of(state, machine),),
        holders=tuple(_holders_of_state(state, machine)),
    )


def plan_of(state: JsonObject, machine: Machine, chosen: CpuSet = NO_CPUS) -> Plan:
    """Describe the plan of the machine, with its reserved and the *chosen* CPUs."""
    reserved = CpuSet.union(CpuSet.parse(one["reserved"]) for one in state["pools"])
    return Plan(machine, reserved=reserved, chosen=chosen)


def _holders_of_state(state: JsonObject, machine: Machine) -> Iterator[Holder]:
    for one in state["containers"]:
        yield holder_of(one, machine)
    yield from map(holder_of_reservation, state["reservations"])
    for one in state["cpuClaims"]["claims"]:
        users = ", ".join(one["containers"]) or "no container at present"
        yield holder_alone(
            f"claim {one['name']} of {one['driver']}", one["cpus"], f"for {users}"
        )
    for one in state.get("preparedClaims", ()):  # an older daemon has none
        if not one["containers"]:  # else those have its CPUs
            title = f"claim {one['namespace']}/{one['name']}"
            yield holder_alone(title, one["cpus"], "for no container at present")


def holder_of(one: JsonObject, machine: Machine, *, is_aside: bool = False) -> Holder:
    """Describe a container; one that is not asked about is *aside*."""
    asks = format_cpus(MilliCpus(one["request"]["cpu"]))
    exclusive = f" (exclusive: {one['exclusive']})" if one["exclusive"] else ""
    where = f"CPUs {one['cpus'] or 'any'}{exclusive}, memory {one['mems'] or 'any'}"
    pool = f", pool {one['pool']}" if one["pool"] else ""
    # One that is not pinned runs anywhere, also beside exclusive ones.
    cpus = CpuSet.parse(one["cpus"]) or machine.online
    return Holder(
        title=f"{one['namespace']}/{one['pod']}/{one['name']}",
        words=f"({one['qos']}, asks for {asks}): {where}{pool}",
        held=(HeldCpus(cpus, CpuSet.parse(one["exclusive"])),),
        is_aside=is_aside,
    )


def holder_of_reservation(one: JsonObject) -> Holder:
    """Describe what is kept for a container that is not there, or for a pod."""
    pod = f"{one['namespace']}/{one['pod']}"
    is_overhead = one["name"] == OVERHEAD_NAME
    title = f"{pod} (overhead)" if is_overhead else f"{pod}/{one['name']}"
    return holder_alone(
        title, one["cpus"], "reserved" if is_overhead else "not created yet"
    )


def holder_alone(title: str, cpus: str, words: str) -> Holder:
    """Describe a holder with exclusive CPUs."""
    held = CpuSet.parse(cpus)
    where = f"CPUs {cpus}" if held else "a part of the shared CPUs"
    return Holder(title, f"({words}): {where}", (HeldCpus(held, held),))
