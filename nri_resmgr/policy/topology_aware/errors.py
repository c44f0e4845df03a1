"""Why the topology-aware policy refuses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nri_resmgr.topology import HugePages
from nri_resmgr.values import PolicyError, format_bytes, format_cpus
from nri_resmgr.values.quantities import Bytes, MilliCpus


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
