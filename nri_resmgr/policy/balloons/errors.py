"""Why the balloons policy refuses."""

from __future__ import annotations

from dataclasses import dataclass

from nri_resmgr.values import CpuSet, PolicyError


@dataclass(eq=False)
class NoSuchType(PolicyError):
    """A container's annotation names a balloon type that there is not."""

    title: str
    asked: str
    known: tuple[str, ...]

    def __str__(self) -> str:
        known = ", ".join(self.known)
        return f"{self.title} asks for balloon type {self.asked!r}; there are: {known}"


@dataclass(eq=False)
class NoBalloonFits(PolicyError):
    """No balloon of a container's type can take it.

    Attributes:
        title: The container, for people.
        asked: What it asks for, in words.
        kind: The name of its type.
        free: CPUs that are in no balloon.
        balloons: The balloons of the type, in words.
        helps: What would help, in words.
    """

    title: str
    asked: str
    kind: str
    free: CpuSet
    balloons: tuple[str, ...]
    helps: tuple[str, ...]

    def __str__(self) -> str:
        cpus = f" ({self.free})" if self.free else ""
        there = "; ".join(self.balloons) or "there is none yet"
        return (
            f"{self.title} asks for {self.asked} CPU of a balloon of type {self.kind}; "
            f"{there}; CPUs in no balloon: {len(self.free)}{cpus}; "
            f"to help, {', or '.join(self.helps)}"
        )


@dataclass(eq=False)
class BalloonShort(PolicyError):
    """A balloon cannot have the CPUs that it should have."""

    name: str
    wanted: int
    free: CpuSet

    def __str__(self) -> str:
        which = f" ({self.free})" if self.free else ""
        return (
            f"balloon {self.name} needs {self.wanted} more CPUs, "
            f"{len(self.free)}{which} are free"
        )
