"""The memory allocator: grants of memory nodes that never exceed their capacity.

Pure functions from a request and a frozen ledger to an offer. An offer is a value;
`MemoryOffer.commit` gives the ledger that it leads to.

* `request`, `zones`: requests, and the zones of nodes that each may have.
* `ledger`, `accounts`: all grants, with the sums that decisions need.
* `allocate`: offers to new, changed and restored requests; begin to read here.
* `settle`: widens requests, least important first, until no node is over-committed.
* `fill`, `layout`: amounts over nodes as a maximum flow; nodes as bit masks.
* `errors`: refusals, in sentences with units.

docs/memory-allocator.md has the theory.
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
    MemoryShort,
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
    "MemoryLayout",
    "MemoryLedger",
    "MemoryOffer",
    "MemoryPriority",
    "MemoryRequest",
    "MemoryShort",
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
