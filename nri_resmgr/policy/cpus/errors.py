"""What the CPU allocator refuses."""

from __future__ import annotations

from nri_resmgr.values import CpuSet, PolicyError
from nri_resmgr.values.error_fields import with_fields


@with_fields
class CpusExhausted(PolicyError):
    """Fewer CPUs are free than the request wants."""

    wanted: int
    free: CpuSet

    def __str__(self) -> str:
        which = f" ({self.free})" if self.free else ""
        return f"wanted {self.wanted} CPUs, {len(self.free)} free{which}"
