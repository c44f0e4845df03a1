"""Why a container cannot have the class of CPUs, or the interrupts, it asks for."""

from __future__ import annotations

from dataclasses import dataclass

from nri_resmgr.values import PolicyError


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
