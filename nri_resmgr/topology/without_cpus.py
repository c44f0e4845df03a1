"""A machine as it is for those who may not use some of its CPUs."""

from __future__ import annotations

from msgspec.structs import replace

from nri_resmgr.topology.cores import cache_order
from nri_resmgr.topology.machine import Machine
from nri_resmgr.values import CpuSet


def without_cpus(machine: Machine, gone: CpuSet) -> Machine:
    """Return the machine as if the CPUs *gone* were offline.

    They are still present, and nodes without other CPUs keep their memory.

    Raises:
        ContradictoryMachine: No CPU would be left.
    """
    gone &= machine.online
    if not gone:
        return machine
    cores = [replace(one, cpus=one.cpus - gone) for one in machine.cores]
    caches = [replace(one, cpus=one.cpus - gone) for one in machine.caches]
    cores = sorted((one for one in cores if one.cpus), key=lambda one: one.cpus.first)
    return replace(
        machine,
        cores=tuple(cores),
        cpus=tuple(one for one in machine.cpus if one.id not in gone),
        nodes=tuple(replace(one, cpus=one.cpus - gone) for one in machine.nodes),
        caches=tuple(sorted((one for one in caches if one.cpus), key=cache_order)),
        present=machine.present,
        isolated=machine.isolated - gone,
        devices=tuple(replace(one, cpus=one.cpus - gone) for one in machine.devices),
        speed_select=tuple(
            replace(
                one,
                cpus=one.cpus - gone,
                base_cpus=one.base_cpus - gone,
                clos=tuple(replace(c, cpus=c.cpus - gone) for c in one.clos),
            )
            for one in machine.speed_select
        ),
    )
