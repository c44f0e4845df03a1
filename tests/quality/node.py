"""What places the containers of a node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from nri_resmgr.values import NO_NODES, CpuSet, NodeSet
from tests.quality.life import Arrival


class Place(msgspec.Struct, frozen=True):
    """Where a container runs.

    Attributes:
        cpus: All CPUs that it may use.
        own: Those of them that no other container may use.
        mems: Its memory nodes; none if its memory may come from anywhere.
    """

    cpus: CpuSet
    own: CpuSet
    mems: NodeSet = NO_NODES


class Placer(Protocol):
    """Places containers on one node."""

    def create(self, one: Arrival) -> bool:
        """Place a container; return False if it is refused."""

    def stop(self, one: Arrival) -> None:
        """Take the place of a container back."""

    def places(self) -> Mapping[int, Place]:
        """Return the places of all containers, by number."""
