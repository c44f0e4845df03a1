"""Reconcilers of the daemon: one for each part of the host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nri_resmgr.app.background.reconciler import Reconciler

if TYPE_CHECKING:  # few nodes need any applier; see `nri_resmgr.daemon.targets`
    from nri_resmgr.app.classes.blockio.files import BlockIoFiles
    from nri_resmgr.app.classes.rdt.groups import RdtGroups
    from nri_resmgr.app.host_settings.settings import HostSettings
    from nri_resmgr.app.observers.observer import DecisionObserver


class Reconcilers:
    """All reconcilers; none has an applier at first.

    Attributes:
        host: CPU classes, Speed Select, interrupts and isolation.
        rdt: RDT groups.
        blockio: Block I/O of running containers.
    """

    def __init__(self) -> None:
        self.host: Reconciler[HostSettings] = Reconciler("host")
        self.rdt: Reconciler[RdtGroups] = Reconciler("rdt")
        self.blockio: Reconciler[BlockIoFiles] = Reconciler("blockio")

    @property
    def observers(self) -> tuple[DecisionObserver, ...]:
        """All of them, as observers of decisions and configurations."""
        return (self.host, self.rdt, self.blockio)

    def close(self) -> None:
        """Restore the host; block I/O files end with their containers."""
        self.host.close()
        self.rdt.close()
