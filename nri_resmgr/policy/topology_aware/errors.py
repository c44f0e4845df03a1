"""Why the topology-aware policy refuses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from nri_resmgr.policy.mems import MemoryShort
from nri_resmgr.policy.topology_aware.demand import CpuKind, Demand
from nri_resmgr.policy.topology_aware.memory import size_of
from nri_resmgr.policy.topology_aware.state import Room
from nri_resmgr.topology import HugePages
from nri_resmgr.values import PolicyError, format_bytes, format_cpus
from nri_resmgr.values.quantities import Bytes, MilliCpus


@dataclass(eq=False)
class UnknownCpuClass(PolicyError):
    """An annotation names a class that the configuration does not have."""

    title: str
    key: str
    name: str
    known: tuple[str, ...]

    def __str__(self) -> str:
        known = " or ".join(self.known) if self.known else "none, none is defined"
        return (
            f"{self.title}: annotation {self.key} asks for CPU class {self.name}, "
            f"expected {known}"
        )


@dataclass(eq=False)
class NoCpusOfItsOwn(PolicyError):
    """A container asks for what goes with CPUs of its own, and has none."""

    title: str
    key: str
    why: str

    def __str__(self) -> str:
        return (
            f"{self.title}: annotation {self.key} is about CPUs that a container has "
            f"to itself; {self.why}; to help, ask for whole CPUs with equal requests "
            "and limits, or take the annotation away"
        )


@dataclass(eq=False)
class PoolShort(PolicyError):
    """One pool cannot grant what is asked of it."""

    pool: str
    why: str

    def __str__(self) -> str:
        return f"{self.pool}: {self.why}"


@dataclass(eq=False)
class NoPoolFits(PolicyError):
    """No pool can grant what a container asks for.

    Attributes:
        title: The container, for people.
        asked: What it asks for, in words.
        free: What there is of that, in words.
        tried: Pools that looked good enough, with the sentence that says why not.
        helps: What would help, in words.
    """

    title: str
    asked: str
    free: str
    tried: tuple[tuple[str, str], ...]
    helps: tuple[str, ...]

    def __str__(self) -> str:
        told = list(dict.fromkeys(why for _, why in self.tried))[:_MOST_TOLD]
        tried = "".join(f"; {why}" for why in told)
        return (
            f"{self.title} asks for {self.asked}; {self.free}{tried}; "
            f"to help, {', or '.join(self.helps)}"
        )


# A machine can have more pools than a sentence should.
_MOST_TOLD = 3


def count_of_cpus(count: int, sort: str = "") -> str:
    """Say how many CPUs, as people do; *sort* is a word and a blank."""
    return f"{count} {sort}CPU{'s' if count != 1 else ''}"


def amount_of_cpus(count: int, fraction: MilliCpus) -> str:
    """Say how many CPUs, whole and shared, as people do."""
    parts = []
    if count:
        parts.append(f"{count_of_cpus(count)} of its own")
    if fraction or not count:
        parts.append(f"{format_cpus(fraction)} shared CPU")
    return " and ".join(parts)


def amount_of_memory(size: Bytes, hugepages: Iterable[HugePages] = ()) -> str:
    """Say how much memory comes with the CPUs, as people do; nothing for none."""
    parts = [f"{format_bytes(size)} of memory"] if size else []
    parts += [f"{one.count} pages of {format_bytes(one.size)}" for one in hugepages]
    return f" with {' and '.join(parts)}" if parts else ""


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
