"""State of the host's classes, shared by setters and reconcilers."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from nri_resmgr.host.remembered import RememberedTree
from nri_resmgr.host.tree import Tree

if TYPE_CHECKING:  # few nodes have classes
    from nri_resmgr.app.classes.blockio.host import BlockIoHost
    from nri_resmgr.app.classes.blockio.writer import BlockIoWriter
    from nri_resmgr.app.classes.governors import Governors
    from nri_resmgr.app.classes.interrupts import KnownInterrupts
    from nri_resmgr.app.classes.limits.values import LimitHost
    from nri_resmgr.app.classes.memory.top_tier_host import TopTierHost
    from nri_resmgr.app.classes.rdt.host import RdtHost


class ClassHosts:
    """State of each kind, imported and made on first use: few nodes need it.

    It outlives configurations, so that a setter that is made again reads nothing again.

    Attributes:
        remembered: Files of the host that stay the same; None without a host.
    """

    def __init__(self, tree: Tree | None) -> None:
        self._tree = tree
        self.remembered = None if tree is None else RememberedTree(tree)

    @cached_property
    def governors(self) -> Governors | None:
        """Governors of frequencies; None without a host."""
        if self._tree is None:
            return None
        # Late: few nodes allow annotations of isolation.
        from nri_resmgr.app.classes.governors import Governors

        return Governors(self._tree)

    @cached_property
    def interrupts(self) -> KnownInterrupts | None:
        """Interrupts; None without a host."""
        if self._tree is None:
            return None
        # Late: few nodes restrict which may be moved.
        from nri_resmgr.app.classes.interrupts import KnownInterrupts

        return KnownInterrupts(self._tree)

    @cached_property
    def top_tier(self) -> TopTierHost:
        """Limits of fast memory."""
        # Late: few pods have such limits.
        from nri_resmgr.app.classes.memory.top_tier_host import TopTierHost

        return TopTierHost()

    @cached_property
    def limits(self) -> LimitHost:
        """Limits of adjusted containers."""
        # Late: few nodes have adjustments.
        from nri_resmgr.app.classes.limits.values import LimitHost

        return LimitHost()

    @cached_property
    def rdt(self) -> RdtHost:
        """The RDT groups of the host."""
        # Late: few nodes use RDT classes.
        from nri_resmgr.app.classes.rdt.host import RdtHost

        return RdtHost()

    def rdt_groups(self) -> tuple[str, ...] | None:
        """Return the names of the RDT groups; None before the first look at them."""
        host = self.rdt
        return host.names() if host.is_settled and host.control is not None else None

    @cached_property
    def blockio(self) -> BlockIoHost:
        """Block I/O classes on the devices of the host."""
        return self.blockio_writer.host

    @cached_property
    def blockio_writer(self) -> BlockIoWriter:
        """Writer of block I/O files."""
        # Late: few nodes use block I/O classes.
        from nri_resmgr.app.classes.blockio.writer import BlockIoWriter

        return BlockIoWriter.of(self._tree)
