"""What can be granted at one moment: the ground that a choice stands on."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from nri_resmgr.policy.ledger import Ledger
from nri_resmgr.policy.mems import MemoryLedger
from nri_resmgr.policy.topology_aware.pool_ledger import Books, Grant
from nri_resmgr.policy.topology_aware.pools import PoolTree
from nri_resmgr.policy.topology_aware.settings import TopologyAwareSettings


class Room(msgspec.Struct, frozen=True):
    """The node without the container that is being placed.

    Attributes:
        tree: The pools.
        settings: What the policy is told to do.
        ledger: All containers.
        grants: What they have of the CPUs, by container id.
        books: The sums of the grants.
        memory: What they have of the memory.
    """

    tree: PoolTree
    settings: TopologyAwareSettings
    ledger: Ledger
    grants: Mapping[str, Grant]
    books: Books
    memory: MemoryLedger
