"""The policy without decisions: containers run wherever the kernel puts them.

`policy` is all of it: each event adds a container to the ledger, or drops it, with an
empty pin. It exists for nodes that use the other features alone, classes of scheduling,
RDT, block I/O and memory, metrics and events, and for a switch away from a policy that
pins: the ledger keeps the pins that containers came with, so that a later policy finds
the containers where they are.
"""

from __future__ import annotations

from nri_resmgr.policy.none.policy import NonePolicy, NoneState

__all__ = ["NonePolicy", "NoneState"]
