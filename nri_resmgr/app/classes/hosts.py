"""State of RDT and block I/O classes, shared by setters and reconcilers."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from nri_resmgr.host.tree import Tree

if TYPE_CHECKING:
    from nri_resmgr.app.classes.blockio.host import BlockIoHost
    from nri_resmgr.app.classes.blockio.writer import BlockIoWriter
    from nri_resmgr.app.classes.rdt.host import RdtHost


class ClassHosts:
    """State of each kind, imported and made on first use: few nodes have such classes.

    Args:
        tree: The host; None without one.
    """

    def __init__(self, tree: Tree | None) -> None:
        self._tree = tree

    @cached_property
    def rdt(self) -> RdtHost:
        """The RDT groups of the host."""
        # Late: few nodes use RDT classes.
        from nri_resmgr.app.classes.rdt.host import RdtHost

        return RdtHost()

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
