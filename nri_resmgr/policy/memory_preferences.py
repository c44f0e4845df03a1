"""What containers want of the memory allocator, whichever policy they are placed by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nri_resmgr.policy.mems import MemoryPriority
from nri_resmgr.topology import MemoryKind
from nri_resmgr.values import QosClass

# HBM is scarce and never given to who does not ask for it.
USUAL_KINDS: Final = frozenset({MemoryKind.DRAM, MemoryKind.PMEM, MemoryKind.CXL})
"""The kinds of memory for who names none."""

PRIORITIES: Final[Mapping[QosClass, MemoryPriority]] = {
    QosClass.GUARANTEED: MemoryPriority.GUARANTEED,
    QosClass.BURSTABLE: MemoryPriority.BURSTABLE,
    QosClass.BEST_EFFORT: MemoryPriority.BEST_EFFORT,
}
"""How late a container is widened, by its QoS class."""
