"""Refusals that policies share, with what was free and what would help."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from nri_resmgr.values import CpuSet, PolicyError
from nri_resmgr.values.counts import count_text


class OnFailure(enum.StrEnum):
    """Treatment of a new container that does not fit."""

    REFUSE = "refuse"
    SHARED = "shared"


@dataclass(eq=False)
class ExclusiveCpusShort(PolicyError):
    """A container asks for more exclusive CPUs than are free.

    Attributes:
        free: CPUs that can be granted now.
        taken: Exclusive CPUs of other containers.
        reserved: CPUs that are never granted.
        isolated: Free CPUs that `isolcpus=` names, which this request cannot use, and
            one for a single CPU can.
        held: Exclusive CPUs that the container has.
        advice: What would help. Only an error that leaves the policy has it: finding it
            costs several placements.
    """

    title: str
    wanted: int
    free: CpuSet
    taken: CpuSet
    reserved: CpuSet
    isolated: CpuSet
    held: CpuSet
    advice: str = ""

    def __str__(self) -> str:
        have = f", it has {_list(self.held)}" if self.held else ""
        asked = count_text(self.wanted, "exclusive CPU")
        advice = f"; {self.advice}" if self.advice else ""
        return (
            f"{self.title} asks for {asked}{have}; "
            f"free: {_list(self.free)}, held by other containers: {_list(self.taken)}, "
            f"reserved: {_list(self.reserved)}{advice}"
        )


def _list(cpus: CpuSet) -> str:
    return f"{len(cpus)} ({cpus})" if cpus else "0"
