"""State of RDT and block I/O classes, shared by setters and reconcilers."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from nri_resmgr.host.tree import Tree

if TYPE_CHECKING:  # few nodes have classes
    from nri_resmgr.app.classes.blockio.host import BlockIoHost
    from nri_resmgr.app.classes.blockio.writer import BlockIoWriter
    from nri_resmgr.app.classes.limits.values import LimitHost
    from nri_resmgr.app.classes.memory.top_tier_host import TopTierHost
    from nri_resmgr.app.classes.rdt.host import RdtHost


class ClassHosts:
    """State of each kind, imported and made on first use: few nodes need it."""

    def __init__(self, tree: Tree | None) -> None:
        self._tree = tree

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
