"""Pictures of what a daemon answers: its node, and why containers have their CPUs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from nri_resmgr.cli.amounts import cpus_text
from nri_resmgr.cli.explain import refusal_text
from nri_resmgr.pictures.values import (
    HeldCpus,
    Holder,
    Note,
    Picture,
    Plan,
    PoolList,
    ShownPool,
)
from nri_resmgr.policy.overhead_name import OVERHEAD_NAME
from nri_resmgr.topology import Machine
from nri_resmgr.topology.document import from_document
from nri_resmgr.values import NO_CPUS, CpuSet
from nri_resmgr.values.counts import count_text
from nri_resmgr.values.documents import JsonObject

_BETTER: Final = "better than those below because "


def picture_of_state(state: JsonObject, topology: JsonObject) -> Picture:
    """Describe the picture of a node: all containers, reservations and claims.

    Args:
        state: The answer to ``GET /v1/state``.
        topology: That to ``GET /v1/topology``.

    Raises:
        BadMachineDocument: The machine is not one that this release knows.
    """
    machine = from_document(topology["machine"])
    count = count_text(len(state["containers"]), "container")
    return Picture(
        title=f"{state['policy']}: {count}",
        plans=(_plan(state, machine),),
        holders=tuple(_holders_of_state(state, machine)),
    )


def picture_of_explanation(
    explanation: JsonObject, state: JsonObject, topology: JsonObject
) -> Picture:
    """Describe the picture of some containers, with the pools that were considered.

    Args:
        explanation: The answer to ``GET /v1/explain``.
        state: That to ``GET /v1/state``, which has the other containers and the pools.
        topology: That to ``GET /v1/topology``.

    Raises:
        BadMachineDocument: The machine is not one that this release knows.
    """
    machine = from_document(topology["machine"])
    present = [one for one in explanation["containers"] if one["present"]]
    own = [_container(one["container"], machine) for one in present]
    own += [_claimed(one) for one in explanation["claimed"]]
    own += [_reservation(one) for one in explanation["reservations"]]
    known = {one["container"]["id"] for one in present}
    others = (
        _container(one, machine, is_aside=True)
        for one in state["containers"]
        if one["id"] not in known
    )
    cpus_of = {pool["name"]: CpuSet.parse(pool["cpus"]) for pool in state["pools"]}
    pools = tuple(
        found
        for place, one in enumerate(present)
        if (found := _pools(one, place, cpus_of)).pools
    )
    chosen = (pool.cpus for each in pools for pool in each.pools if pool.is_chosen)
    titles = dict.fromkeys(one.title for one in own)
    return Picture(
        title=f"{state['policy']}: {', '.join(titles) or 'no present container'}",
        plans=(_plan(state, machine, CpuSet.union(chosen)),),
        holders=(*own, *others),
        pools=pools,
        notes=tuple(_notes(explanation)),
    )


def _plan(state: JsonObject, machine: Machine, chosen: CpuSet = NO_CPUS) -> Plan:
    reserved = CpuSet.union(CpuSet.parse(one["reserved"]) for one in state["pools"])
    return Plan(machine, reserved=reserved, chosen=chosen)


def _holders_of_state(state: JsonObject, machine: Machine) -> Iterator[Holder]:
    for one in state["containers"]:
        yield _container(one, machine)
    yield from map(_reservation, state["reservations"])
    for one in state["cpuClaims"]["claims"]:
        users = ", ".join(one["containers"]) or "no container at present"
        yield _alone(
            f"claim {one['name']} of {one['driver']}", one["cpus"], f"for {users}"
        )
    for one in state.get("preparedClaims", ()):  # an older daemon has none
        if not one["containers"]:  # else those have its CPUs
            title = f"claim {one['namespace']}/{one['name']}"
            yield _alone(title, one["cpus"], "for no container at present")


def _container(one: JsonObject, machine: Machine, *, is_aside: bool = False) -> Holder:
    asks = cpus_text(one["request"]["cpu"])
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


def _claimed(one: JsonObject) -> Holder:
    return _alone(one["title"], one["cpus"], "claimed")


def _reservation(one: JsonObject) -> Holder:
    pod = f"{one['namespace']}/{one['pod']}"
    is_overhead = one["name"] == OVERHEAD_NAME
    title = f"{pod} (overhead)" if is_overhead else f"{pod}/{one['name']}"
    return _alone(title, one["cpus"], "reserved" if is_overhead else "not created yet")


def _alone(title: str, cpus: str, words: str) -> Holder:
    held = CpuSet.parse(cpus)
    where = f"CPUs {cpus}" if held else "a part of the shared CPUs"
    return Holder(title, f"({words}): {where}", (HeldCpus(held, held),))


def _pools(one: JsonObject, place: int, cpus_of: dict[str, CpuSet]) -> PoolList:
    """Describe the pools that rank best now, and the one that the container is in."""
    own, ranked = one["container"]["pool"], one["candidates"]
    shown = [
        ShownPool(
            name=found["pool"],
            cpus=cpus_of.get(found["pool"], NO_CPUS),
            # That of the last one says why there are no others.
            words=f"{_BETTER if found is not ranked[-1] else ''}{found['sentence']}",
            details=", ".join(
                f"{score['criterion']} {score['value']}" for score in found["scores"]
            ),
            is_chosen=found["pool"] == own,
        )
        for found in ranked
    ]
    if own and not any(pool.is_chosen for pool in shown):
        shown.append(ShownPool(own, cpus_of.get(own, NO_CPUS), is_chosen=True))
    heading = f"pools for {one['title']}, if it were placed now, best first"
    if not ranked:
        heading = f"pool of {one['title']}"
    return PoolList(heading, place, tuple(shown))


def _notes(explanation: JsonObject) -> Iterator[Note]:
    for one in explanation["containers"]:
        removed = "" if one["present"] else " (removed)"
        for sentence in _why(one["placement"]):
            yield Note(f"{one['title']}{removed}: {sentence}")
    for one in explanation["claimed"]:
        yield from (Note(f"{one['title']}: {text}") for text in one["sentences"])
    for row in explanation["refusals"]:
        yield Note(f"recently refused: {refusal_text(row)}", is_refusal=True)


def _why(placement: JsonObject | None) -> Sequence[str]:
    if placement is None:
        return ("the decision is no longer known",)
    decided = f"decided at {placement['time']} by rule {placement['rule']}"
    return (decided, *placement["sentences"])
