"""Pictures of what a daemon explains: containers, and the pools for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from nri_resmgr.cli.explain import refusal_text
from nri_resmgr.control.node_picture import (
    holder_alone,
    holder_of,
    holder_of_reservation,
    plan_of,
)
from nri_resmgr.pictures.values import (
    Holder,
    Note,
    Picture,
    PoolList,
    ShownPool,
)
from nri_resmgr.topology import Machine
from nri_resmgr.values import NO_CPUS, CpuSet
from nri_resmgr.values.documents import JsonObject

_BETTER: Final = "better than those below because "


def picture_of_explanation(
    explanation: JsonObject, state: JsonObject, machine: Machine
) -> Picture:
    """Describe the picture of some containers, with the pools that were considered.

    Args:
        explanation: The answer to ``GET /v1/explain``.
        state: That to ``GET /v1/state``, which has the other containers and the pools.
        machine: The node's.
    """
    present = [one for one in explanation["containers"] if one["present"]]
    own = [holder_of(one["container"], machine) for one in present]
    own += [_claimed(one) for one in explanation["claimed"]]
    own += [holder_of_reservation(one) for one in explanation["reservations"]]
    known = {one["container"]["id"] for one in present}
    others = (
        holder_of(one, machine, is_aside=True)
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
        plans=(plan_of(state, machine, CpuSet.union(chosen)),),
        holders=(*own, *others),
        pools=pools,
        notes=tuple(_notes(explanation)),
    )


def _claimed(one: JsonObject) -> Holder:
    return holder_alone(one["title"], one["cpus"], "claimed")


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
