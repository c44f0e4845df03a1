"""Chooses how changed pins are delivered to running containers."""

from __future__ import annotations

import enum
import os
from dataclasses import dataclass
from typing import Final

from nri_resmgr.app.plugin.node_policy import NodePolicy
from nri_resmgr.app.running.by_cgroup import ByCgroup
from nri_resmgr.app.running.delivery import ByRuntime, PinDelivery
from nri_resmgr.app.running.partitions import Partitions
from nri_resmgr.app.running.parts import DeliveryParts
from nri_resmgr.app.running.units import UnitProperties, bus_address
from nri_resmgr.host.boot_journal import boot_of
from nri_resmgr.host.cgroups.cpuset_watch import CpusetWatch
from nri_resmgr.host.cgroups.layout import read_cgroup_layout
from nri_resmgr.host.cgroups.partitions import (
    PartitionJournal,
    PartitionWriter,
    why_no_partitions,
)
from nri_resmgr.host.cgroups.writer import CgroupWriter
from nri_resmgr.host.knobs.files import WritableHostTree
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.host.tree import HostTree
from nri_resmgr.log import Logger
from nri_resmgr.topology import CgroupLayout
from nri_resmgr.values import HostError

log = Logger(__name__)

# What is found counts until the next start: a fault that passes must not decide it.
_LOOKS: Final = 2


class ApplyUpdates(enum.StrEnum):
    """The way in which running containers get changed pins."""

    AUTO = "auto"  # by their cgroups if these can be written
    CGROUP = "cgroup"
    RUNTIME = "runtime"


@dataclass(eq=False)
class CgroupsNotWritable(HostError):
    """Cgroups have to be written, and cannot."""

    why: str

    def __str__(self) -> str:
        # The reason has what to do about it, if that is known.
        return f"{self.why}; --apply-updates=runtime needs no write access to cgroups"


def delivery_for(
    how: ApplyUpdates,
    tree: HostTree,
    policy: NodePolicy,
    state: StateDir | None = None,
    *,
    watches: bool = False,
) -> PinDelivery:
    """Return the delivery of pins for a policy.

    With *watches*, what other programs write to cpusets is written again at once.

    Raises:
        CgroupsNotWritable: They must be, by `ApplyUpdates.CGROUP`.
    """
    if how is ApplyUpdates.RUNTIME:
        return ByRuntime(policy, "--apply-updates is runtime")
    host = WritableHostTree(tree.root)
    if why := _why_unwritable(CgroupWriter(host)):
        if how is ApplyUpdates.CGROUP:
            raise CgroupsNotWritable(why)
        log.warning("pins.by-runtime", why=str(CgroupsNotWritable(why)))
        return ByRuntime(policy, why)
    partitions = _partitions(tree, policy, state)
    watch = CpusetWatch(tree) if watches else None
    return ByCgroup(policy, host, DeliveryParts(partitions, _units(tree), watch))


def _units(tree: HostTree) -> UnitProperties | None:
    # systemd has properties for cpusets of cgroup v2 only.
    if read_cgroup_layout(tree) is not CgroupLayout.V2:
        return None
    return UnitProperties(tree, bus_address(os.environ, tree.root))


def _partitions(
    tree: HostTree, policy: NodePolicy, state: StateDir | None
) -> Partitions:
    try:
        why_not = why_no_partitions(tree)
    except HostError as error:
        why_not = str(error)

    def open_writer() -> PartitionWriter:
        journal = PartitionJournal(state, boot_of(tree)) if state else None
        return PartitionWriter(WritableHostTree(tree.root), journal)

    return Partitions(policy, tree, open_writer, why_not)


def _why_unwritable(writer: CgroupWriter) -> str:
    why = ""
    for _ in range(_LOOKS):
        try:
            why = writer.why_unwritable()
        except HostError as error:
            why = str(error)
        if not why:
            break
    return why
