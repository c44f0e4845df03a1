"""Refusals of the topology-aware policy: what was asked, and what is free."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from nri_resmgr.policy.mems import MemoryShort, bytes_text
from nri_resmgr.policy.topology_aware.demand import Demand
from nri_resmgr.policy.topology_aware.memory import size_of
from nri_resmgr.policy.topology_aware.state import NodeView
from nri_resmgr.topology import HugePages
from nri_resmgr.values import ONE_CPU, PolicyError, format_cpus
from nri_resmgr.values.counts import count_are, count_text
from nri_resmgr.values.quantities import Bytes, MilliCpus

# Machines with sub-NUMA clusters have dozens of pools; one message shows a few.
_MOST_SHOWN: Final = 3


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
class ExclusiveCpusMissing(PolicyError):
    """An annotation requires exclusive CPUs, and the container has none.

    Attributes:
        advice: What would help, each tried by the policy.
    """

    title: str
    key: str
    why: str
    advice: str = ""

    def __str__(self) -> str:
        advice = f"; {self.advice}" if self.advice else ""
        return (
            f"{self.title}: annotation {self.key} requires exclusive CPUs; "
            f"{self.why}{advice}"
        )


@dataclass(eq=False)
class PoolShort(PolicyError):
    """One pool cannot grant what a container asks for."""

    pool: str
    why: str

    def __str__(self) -> str:
        return f"{self.pool}: {self.why}"


@dataclass(eq=False)
class NoPoolFits(PolicyError):
    """No pool can grant what a container asks for.

    Attributes:
        title: Of the container.
        asked: Text of what it asks for.
        free: Text of what is free.
        tried: Pools that were tried, with the sentence that says why they failed.
        short: Set where a pool failed for its memory.
        lacks_memory: Whether all pools did.
        advice: What would help. Only an error that leaves the policy has it: finding it
            costs several placements.
    """

    title: str
    asked: str
    free: str
    tried: tuple[tuple[str, str], ...]
    short: MemoryShort | None = None
    lacks_memory: bool = False
    advice: str = ""

    def __str__(self) -> str:
        shown = list(dict.fromkeys(why for _, why in self.tried))[:_MOST_SHOWN]
        tried = "".join(f"; {why}" for why in shown)
        advice = f"; {self.advice}" if self.advice else ""
        return f"{self.title} asks for {self.asked}; {self.free}{tried}{advice}"


def amount_of_cpus(count: int, fraction: MilliCpus) -> str:
    """Return the text of an amount of exclusive and shared CPUs."""
    parts = []
    if count:
        parts.append(count_text(count, "exclusive CPU"))
    if fraction or not count:
        parts.append(f"{format_cpus(fraction)} shared CPU")
    return " and ".join(parts)


def amount_of_memory(size: Bytes, hugepages: Iterable[HugePages] = ()) -> str:
    """Return the text of an amount of memory, to follow one of CPUs; empty for 0."""
    parts = [f"{bytes_text(size)} of memory"] if size else []
    parts += [
        f"{count_text(one.count, 'page')} of {bytes_text(one.size)}"
        for one in hugepages
    ]
    return f" with {' and '.join(parts)}" if parts else ""


Failure: TypeAlias = tuple[str, PolicyError]
"""The name of a pool that was tried, and its error."""


def refusal(demand: Demand, view: NodeView, tried: Sequence[Failure]) -> NoPoolFits:
    """Return the error that says why no pool can take a container."""
    memory = amount_of_memory(size_of(demand.spec), demand.spec.hugepages)
    short = [error for _, error in tried if isinstance(error, MemoryShort)]
    lacks_memory = bool(short) and len(short) == len(tried)
    return NoPoolFits(
        title=demand.spec.title or demand.spec.id,
        asked=f"{amount_of_cpus(demand.count, demand.fraction)}{memory}",
        # The last pool tried is the largest, or as short as all others.
        free=short[-1].supply if lacks_memory else _free(demand, view),
        tried=() if lacks_memory else failure_texts(tried),
        short=short[-1] if short else None,
        lacks_memory=lacks_memory,
    )


def failure_texts(tried: Sequence[Failure]) -> tuple[tuple[str, str], ...]:
    """Return the pools that were tried, with the sentences that say why they failed."""
    return tuple(
        (
            pool,
            f"{pool}: {error.supply}" if isinstance(error, MemoryShort) else str(error),
        )
        for pool, error in tried
    )


def _free(demand: Demand, view: NodeView) -> str:
    best = max(
        view.tree.pools,
        key=lambda pool: (view.pool_ledger.free_capacity(pool), -pool.id),
    )
    ledger = view.pool_ledger
    capacity = max(ledger.free_capacity(best), 0)
    whole, shared = capacity // ONE_CPU, len(ledger.free_sharable(best))
    free = shared_text(capacity)
    if capacity:
        most = f"or {count_text(whole, 'whole CPU')}" if whole else "and no whole CPU"
        free = f"{best.name} has the most free: {capacity}m of shared CPU, {most}"
    if whole < demand.count <= shared and not ledger.shared[best.id]:
        # Its containers have no request, so that the sums alone do not explain it.
        of = count_text(shared, "free CPU")
        free += f", since 1 of {of} must stay for containers that share them"
    if demand.require_isolated or (demand.isolated and view.tree.root.isolated):
        isolated = ledger.free_isolated(view.tree.root)
        free += f"; {count_are(len(isolated), 'isolated CPU')} free"
    return free


def shared_text(capacity: int) -> str:
    """Return the sentence that says how many thousandths can be shared."""
    return f"{capacity}m of shared CPU is free" if capacity else "no shared CPU is free"
