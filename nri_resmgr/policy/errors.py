"""Refusals that policies share, with what was free and what would help."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from nri_resmgr.values import CpuSet, PolicyError


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
        isolated: Free CPUs that `isolcpus=` names, which this request cannot use.
        held: Exclusive CPUs that the container has.
    """

    title: str
    wanted: int
    free: CpuSet
    taken: CpuSet
    reserved: CpuSet
    isolated: CpuSet
    held: CpuSet

    def __str__(self) -> str:
        have = f", it has {_list(self.held)}" if self.held else ""
        plural = "s" if self.wanted != 1 else ""
        return (
            f"{self.title} asks for {self.wanted} exclusive CPU{plural}{have}; "
            f"free: {_list(self.free)}, held by other containers: {_list(self.taken)}, "
            f"reserved: {_list(self.reserved)}; to help, {self._help()}"
        )

    def _help(self) -> str:
        helps = []
        reach = self.free | self.taken | self.held
        if len(reach) >= self.wanted:
            helps.append("stop containers that hold CPUs")
        else:
            helps.append(f"ask for at most {len(reach)}")
        if len(reach | self.reserved) > self.wanted:
            helps.append("reserve fewer CPUs")
        if self.isolated:
            helps.append(
                f"ask for one at a time (isolated and free: {self.isolated}, "
                "given to single-CPU containers only)"
            )
        helps.append('set "onFailure: shared" to run it on shared CPUs')
        return ", or ".join(helps)


def _list(cpus: CpuSet) -> str:
    return f"{len(cpus)} ({cpus})" if cpus else "0"
