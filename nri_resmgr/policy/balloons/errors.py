"""Refusals of the balloons policy."""

from __future__ import annotations

from dataclasses import dataclass

from nri_resmgr.values import CpuSet, PolicyError
from nri_resmgr.values.counts import count_text


@dataclass(eq=False)
class NoSuchType(PolicyError):
    """A container's annotation names an unknown balloon type."""

    title: str
    requested: str
    known: tuple[str, ...]

    def __str__(self) -> str:
        known = ", ".join(self.known)
        return (
            f"{self.title} asks for balloon type {self.requested!r}; there are: {known}"
        )


@dataclass(eq=False)
class NoBalloonFits(PolicyError):
    """No balloon of a container's type can take it.

    *free* are CPUs that are in no balloon. There is a phrase about each balloon of the
    type. Only an error that leaves the policy has advice: finding it costs several
    placements.
    """

    title: str
    requested: str
    kind: str
    free: CpuSet
    balloons: tuple[str, ...]
    advice: str = ""

    def __str__(self) -> str:
        cpus = f" ({self.free})" if self.free else ""
        advice = f"; {self.advice}" if self.advice else ""
        return (
            f"{self.title} asks for {self.requested} CPU of a balloon of type "
            f"{self.kind}; {'; '.join(self.balloons)}; "
            f"CPUs in no balloon: {len(self.free)}{cpus}{advice}"
        )


@dataclass(eq=False)
class BalloonShort(PolicyError):
    """Too few CPUs are free for the size that a balloon must have.

    Attributes:
        advice: What would help. Only the error of a document has it, as above.
    """

    name: str
    wanted: int
    free: CpuSet
    advice: str = ""

    def __str__(self) -> str:
        which = f" ({self.free})" if self.free else ""
        advice = f"; {self.advice}" if self.advice else ""
        return (
            f"balloon {self.name} needs {count_text(self.wanted, 'more CPU')}, free: "
            f"{len(self.free)}{which}{advice}"
        )
