"""The sentence of a refusal: what was asked, what is free, what would help."""

from __future__ import annotations

from nri_resmgr.policy.topology_aware.demand import CpuKind, Demand
from nri_resmgr.policy.topology_aware.errors import (
    NoPoolFits,
    amount_of_cpus,
    amount_of_memory,
)
from nri_resmgr.policy.topology_aware.promise import size_of
from nri_resmgr.policy.topology_aware.room import Room

_CPU = 1000  # thousandths


def refusal(
    demand: Demand, room: Room, tried: tuple[tuple[str, str], ...]
) -> NoPoolFits:
    """Say why no pool can take a container.

    Args:
        demand: What it asks for.
        room: The node without it.
        tried: Pools that looked good enough, with the sentence that says why not.
    """
    size = size_of(demand.spec)
    memory = f" with {amount_of_memory(size)}" if size else ""
    strict = demand.require_isolated or demand.spec.preferences.strict_hints
    return NoPoolFits(
        title=demand.spec.title or demand.spec.id,
        asked=f"{amount_of_cpus(demand.count, demand.fraction)}{memory}",
        free=_free(demand, room),
        tried=tried,
        helps=tuple(_helps(demand, room, strict=strict)),
    )


def _free(demand: Demand, room: Room) -> str:
    best = max(room.tree.pools, key=lambda pool: (room.books.spare(pool), -pool.id))
    spare = max(room.books.spare(best), 0)
    free = f"at most {spare // _CPU} CPUs ({spare}m) are free in one pool, {best.name}"
    if demand.require_isolated or (demand.isolated and room.tree.root.isolated):
        isolated = room.books.free_isolated(room.tree.root)
        free += f", and {len(isolated)} isolated CPUs"
    return free


def _helps(demand: Demand, room: Room, *, strict: bool) -> list[str]:
    helps = ["stop containers on this node"]
    most = len(room.tree.root.sharable)
    if demand.count > most:
        helps = [f"ask for at most {most} CPUs"]
    if demand.count and demand.kind is not CpuKind.SHARED:
        helps.append("annotate it with prefer-shared-cpus")
    if demand.require_isolated:
        helps.append("do not require isolated CPUs")
    if demand.spec.preferences.strict_hints:
        helps.append("do not make its topology hints strict")
    if not strict:
        helps.append('set "onFailure: shared" to run it on shared CPUs')
    return helps
