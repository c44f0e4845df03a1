"""What the CPU allocator refuses."""

from __future__ import annotations

from dataclasses import dataclass

from nri_resmgr.values import CpuSet, PolicyError


@dataclass(eq=False)
class CpusExhausted(PolicyError):
    """Fewer CPUs are free than the request wants."""

    wanted: int
    free: CpuSet

    def __str__(self) -> str:
        which = f" ({self.free})" if self.free else ""
        return f"wanted {self.wanted} CPUs, {len(self.free)} free{which}"
