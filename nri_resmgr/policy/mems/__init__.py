"""The memory allocator: grants of memory nodes that never exceed their capacity.

Pure functions from a request and a frozen ledger to an offer. An offer is a value;
`MemoryOffer.commit` gives the ledger that it leads to.

* `request`, `zones`: requests, and the zones of nodes that each may have.
* `ledger`, `accounts`: all grants, with the sums that decisions need.
* `allocate`: offers to new, changed and restored requests; begin to read here.
* `settle`: widens requests, least important first, until no node is over-committed.
* `fill`, `layout`: amounts over nodes as a maximum flow; nodes as bit masks.
* `errors`: refusals, in sentences with units.

docs/memory-allocator.md has the terms, the order of widening and the calls.

What it guarantees:

* All granted memory can be had at the same time: there is a way to lay every request
  into the nodes of its zone.
* A request is only refused if no widening of any requests would make room for it, and
  none is widened where to widen less important ones suffices.
* A zone gets a node only where that is needed, and none of them shrinks: a running
  container loses no node, except by `replace_memory`.

How: whether all fit is a question of maximum flow from zones to nodes. By Hall's
theorem they fit unless some set of nodes is short: the zones inside of it want more
than it has. A failed search for a path ends with the smallest such set, in `fill`, and
only requests inside of it are worth widening. `settle` widens the least important of
them until the set is not short any more, and looks again. In the end it takes back, in
the reverse order, what turned out not to be necessary. Whether that leads anywhere is
known before: the sums by how far requests may be widened are one more such question.

What was rejected:

* To count only the zones that requests have, as nri-plugins' libmem does. Where zones
  overlap, each can have room and all of them together too little: see the example.
* To lay all amounts anew at each decision, and again for each step that is taken back.
  The ledger carries the flow, which one request more or less changes by little, and
  only where nodes are short it is computed from nothing.
* To keep the rows of requests that may be widened up to date from the start. They are
  built when memory is short for the first time. With other changes of that kind, the
  creation of a Burstable container took 312 to 319 thousand instructions instead of
  400.
* To widen requests until none is left, for what does not fit in the end, and to sum up
  all requests for its refusal then: for a refusal, the topology-aware policy tries some
  40 pools and changes, which took 7 ms with 66 containers on 2 sockets.
* To move these rows at each step. Most requests that are widened for a large one are
  narrowed again in the end, so rows are moved once, by `replace_rows`.
* An order of its own for taking steps back, by priority and age. No law and no example
  showed a difference from the reverse order of widening.

What it costs: a request for which there is room takes 11 to 22 µs with 500 requests
known, one that has others widened 0.2 to 0.4 ms, on 8 nodes (docs/benchmarks.md,
"Allocators"). Work grows with the number of zones and nodes; the number of requests
only counts where the ledger is copied. Policies that compare many pools call
`fit_memory`.

Checked by: tests/laws/test_memory_allocator.py, against every assignment that is
possible on small machines; tests/laws/test_memory_flow.py, against Hall's theorem at
each step; tests/laws/test_memory_allocator_accounting.py, against a recount of all
sums; tests/laws/test_memory_fit.py. The laws of each policy check the ledger again
(tests/laws/memory_recount.py).

An example: three requests for 5 GiB on four nodes with 4 GiB each. Looked at alone,
each zone of two nodes has its 8 GiB free. But the three zones together want 15 GiB of
nodes that have 12, so the third request, the youngest, is widened to the fourth node:

>>> from nri_resmgr.topology.synthetic import parse_spec
>>> from nri_resmgr.values import NodeSet, parse_bytes
>>> ledger = MemoryLedger.of(parse_spec("4s1c memory=4Gi"))
>>> for name, nodes in {"a": "0-1", "b": "1-2", "c": "0,2"}.items():
...     near = NodeSet.parse(nodes)
...     request = MemoryRequest(id=name, affinity=near, size=parse_bytes("5Gi"))
...     offer, fit = allocate_memory(request, ledger), fit_memory(request, ledger)
...     print(name, ledger.free(near) >> 30, fit.fits, offer.zone)
...     ledger = offer.commit(ledger)
a 8 True 0-1
b 8 True 1-2
c 8 False 0-3
>>> [(str(one.why.nodes), one.why.over >> 30) for one in offer.widened]
[('0-2', 3)]
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
