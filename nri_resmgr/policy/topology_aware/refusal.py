"""The sentence of a refusal: what was asked, what is free, what would help."""

from __future__ import annotations

from typing import TypeAlias

from nri_resmgr.policy.mems import MemoryShort
from nri_resmgr.policy.topology_aware.demand import CpuKind, Demand
from nri_resmgr.policy.topology_aware.errors import (
    NoPoolFits,
    amount_of_cpus,
    amount_of_memory,
    count_of_cpus,
)
from nri_resmgr.policy.topology_aware.node_view import Room
from nri_resmgr.policy.topology_aware.promise import size_of
from nri_resmgr.values import PolicyError

_CPU = 1000  # thousandths


Failures: TypeAlias = list[tuple[str, PolicyError]]
"""Names of pools that were tried, and why each could not."""


def refusal(demand: Demand, room: Room, tried: Failures) -> NoPoolFits:
    """Say why no pool can take a container.

    Args:
        demand: What it asks for.
        room: The node without it.
        tried: Pools that looked good enough.
    """
    memory = amount_of_memory(size_of(demand.spec), demand.spec.hugepages)
    short = [error for _, error in tried if isinstance(error, MemoryShort)]
    lacks_memory = bool(short) and len(short) == len(tried)
    return NoPoolFits(
        title=demand.spec.title or demand.spec.id,
        asked=f"{amount_of_cpus(demand.count, demand.fraction)}{memory}",
        # The last pool that is tried is the largest, or as short as all others.
        free=short[-1].supply if lacks_memory else _free(demand, room),
        tried=() if lacks_memory else in_words(tried),
        helps=(
            *(short[-1].helps if lacks_memory else _helps(demand, room)),
            *_helps_with_rules(demand),
        ),
    )


def in_words(tried: Failures) -> tuple[tuple[str, str], ...]:
    """Give each pool that was tried the sentence that says why it could not."""
    if not tried:  # as for nearly every container
        return ()
    return tuple(
        (
            pool,
            f"{pool}: {error.supply}" if isinstance(error, MemoryShort) else str(error),
        )
        for pool, error in tried
    )


def _free(demand: Demand, room: Room) -> str:
    best = max(room.tree.pools, key=lambda pool: (room.books.spare(pool), -pool.id))
    spare = max(room.books.spare(best), 0)
    whole = count_of_cpus(spare // _CPU)
    free = f"at most {whole} ({spare}m) are free in one pool, {best.name}"
    if demand.require_isolated or (demand.isolated and room.tree.root.isolated):
        isolated = room.books.free_isolated(room.tree.root)
        free += f", and {count_of_cpus(len(isolated), 'isolated ')}"
    return free


def _helps(demand: Demand, room: Room) -> list[str]:
    helps = ["stop containers on this node"]
    most = len(room.tree.root.sharable)
    if demand.count > most:
        helps = [f"ask for at most {count_of_cpus(most)}"]
    if demand.count and demand.kind is not CpuKind.SHARED:
        helps.append("annotate it with prefer-shared-cpus")
    return helps


def _helps_with_rules(demand: Demand) -> list[str]:
    helps = []
    if demand.require_isolated:
        helps.append("do not require isolated CPUs")
    if demand.spec.preferences.strict_hints:
        helps.append("do not make its topology hints strict")
    return helps or ['set "onFailure: shared" to run it on shared CPUs']
