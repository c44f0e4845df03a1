"""The RDT and block I/O classes of the host, shared by setters and reconcilers."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from nri_resmgr.host.tree import HostTree, Tree

if TYPE_CHECKING:
    from nri_resmgr.app.classes.blockio.host import BlockIoHost
    from nri_resmgr.app.classes.blockio.writer import BlockIoWriter
    from nri_resmgr.app.classes.rdt.host import RdtHost


class ClassHosts:
    """One of each kind, made on first use: few nodes have any.

    Args:
        tree: The host; None where there is nothing to look up.
    """

    def __init__(self, tree: Tree | None) -> None:
        self._tree = tree

    @cached_property
    def rdt(self) -> RdtHost:
        """The host's RDT groups; imported late: few nodes have any."""
        from nri_resmgr.app.classes.rdt.host import RdtHost

        return RdtHost()

    @cached_property
    def blockio(self) -> BlockIoHost:
        """Block I/O classes on the host, likewise."""
        return self.blockio_writer.host

    @cached_property
    def blockio_writer(self) -> BlockIoWriter:
        """Writes block I/O files, likewise."""
        from nri_resmgr.app.classes.blockio.host import BlockIoHost
        from nri_resmgr.app.classes.blockio.writer import BlockIoWriter
        from nri_resmgr.host.knobs.files import WritableHostTree

        # Where there is only a record of a host, there is nothing to write to.
        is_live = isinstance(self._tree, HostTree)
        files = WritableHostTree(self._tree.root) if self._tree and is_live else None
        return BlockIoWriter(files, BlockIoHost(self._tree))
