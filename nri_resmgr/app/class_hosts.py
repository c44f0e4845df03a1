"""What is known of classes on the host, for those who name them and who make them."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from nri_resmgr.host.tree import HostTree, Tree


class ClassHosts:
    """One of each kind, made when somebody asks: few nodes have any.

    Args:
        tree: The host; None where there is nothing to look up.
    """

    def __init__(self, tree: Tree | None) -> None:
        self._tree = tree

    def give_rdt_up(self, why: str) -> None:
        """Note that nobody has containers follow their RDT classes any more."""
        self.rdt.troubles.give_up(why)

    def give_blockio_up(self, why: str) -> None:
        """Note the same of block I/O classes."""
        self.blockio.troubles.give_up(why)

    @cached_property
    def rdt(self) -> Any:
        """The `RdtHost`; its class is imported late."""
        from nri_resmgr.app.rdt_host import RdtHost

        return RdtHost()

    @cached_property
    def blockio(self) -> Any:
        """The `BlockIoHost`, likewise."""
        return self.blockio_work.host

    @cached_property
    def blockio_work(self) -> Any:
        """The `BlockIoWork`, likewise."""
        from nri_resmgr.app.blockio_host import BlockIoHost
        from nri_resmgr.app.blockio_work import BlockIoWork
        from nri_resmgr.host.knob_files import HostFiles

        # Where there is only a record of a host, there is nothing to write to.
        is_live = isinstance(self._tree, HostTree)
        files = HostFiles(self._tree.root) if self._tree and is_live else None
        return BlockIoWork(files, BlockIoHost(self._tree))
