"""The memory allocator: grants of memory nodes that never exceed their capacity.

Pure functions from a request and a frozen ledger to an offer. An offer is a value;
`MemoryOffer.commit` gives the ledger that it leads to.
"""

from __future__ import annotations

from nri_resmgr.policy.mems.allocate import (
    MemoryFit,
    adopt_memory,
    allocate_memory,
    fit_memory,
    grow_memory,
    replace_memory,
    resize_memory,
    restore_memory,
)
from nri_resmgr.policy.mems.errors import (
    MemoryKindMissing,
    MemoryShort,
    NormalMemoryMissing,
    StaleOffer,
    bytes_text,
)
from nri_resmgr.policy.mems.layout import BASE_PAGES, MemoryLayout
from nri_resmgr.policy.mems.ledger import MemoryLedger, MemoryOffer, Spill, Widening
from nri_resmgr.policy.mems.request import (
    PRIORITIES,
    USUAL_KINDS,
    MemoryGrant,
    MemoryPriority,
    MemoryRequest,
)
from nri_resmgr.policy.mems.zones import ZoneRule

__all__ = [
    "BASE_PAGES",
    "PRIORITIES",
    "USUAL_KINDS",
    "MemoryFit",
    "MemoryGrant",
    "MemoryKindMissing",
    "MemoryLayout",
    "MemoryLedger",
    "MemoryOffer",
    "MemoryPriority",
    "MemoryRequest",
    "MemoryShort",
    "NormalMemoryMissing",
    "Spill",
    "StaleOffer",
    "Widening",
    "ZoneRule",
    "adopt_memory",
    "allocate_memory",
    "bytes_text",
    "fit_memory",
    "grow_memory",
    "replace_memory",
    "resize_memory",
    "restore_memory",
]
