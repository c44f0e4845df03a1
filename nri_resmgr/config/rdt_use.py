"""RDT in a policy's document: ``control.rdt``."""

from __future__ import annotations

import msgspec

from nri_resmgr.classes.rdt.settings import RdtConfig
from nri_resmgr.config.rdt import RDT_KEYS, read_rdt
from nri_resmgr.config.table import Table


class RdtUse(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be done with RDT classes.

    Attributes:
        config: Partitions and classes; None where the groups that the host has are
            the classes.
        by_qos: Whether a container without a class gets the one that is called like
            its QoS class.
        forces: Whether a class goes even if something else runs in it.
        adopts: Whether groups that others made are changed if they are called like
            one of ours.
        monitors: Whether there is a monitoring group for each pod.
    """

    config: RdtConfig | None = None
    by_qos: bool = False
    forces: bool = False
    adopts: bool = False
    monitors: bool = False


def read_rdt_use(control: Table) -> RdtUse | None:
    """Read ``rdt``: nri-plugins' keys, and ``adoptGroups`` and ``monitorPods``.

    Returns:
        None where it is not switched on; mistakes are told all the same.

    Raises:
        BadSetting: The first mistake.
    """
    own = ("enable", "usePodQoSAsDefaultClass", "force", "adoptGroups", "monitorPods")
    table = control.table("rdt", *own, *RDT_KEYS)
    config = read_rdt(table)
    enable, by_qos, forces, adopts, monitors = (
        table.flag(key, default=False) for key in own
    )
    if not enable:
        return None
    return RdtUse(
        # Without classes there is nothing to be made, as with nri-plugins.
        config=config if config.partitions else None,
        by_qos=by_qos,
        forces=forces,
        adopts=adopts,
        monitors=monitors,
    )
