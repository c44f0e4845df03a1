"""What the host's own files should have in them, by what a policy wants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from nri_resmgr.classes.cpu.cpufreq import SharedPolicy, shared_policies
from nri_resmgr.classes.cpu.desired import desired
from nri_resmgr.classes.cpu.facts import CpuKnobFacts
from nri_resmgr.classes.cpu.sst import desired_punits
from nri_resmgr.classes.irq.balloons import placed_for_balloons
from nri_resmgr.classes.irq.containers import placed_for_containers
from nri_resmgr.classes.irq.interrupts import Interrupt
from nri_resmgr.classes.irq.placement import Placement, Room, desired_files
from nri_resmgr.config.cpu_class_use import CpuClassUse
from nri_resmgr.policy.host_use import HostUse
from nri_resmgr.topology.speed_select import Punit
from nri_resmgr.values import CpuSet
from nri_resmgr.values.by_content import ByContent
from nri_resmgr.values.declared import frozen


@frozen
class HostFacts(ByContent):
    """What is known of a host, as it was before we changed anything.

    Attributes:
        cpus: What can be set about its CPUs.
        interrupts: Those that may be moved.
        room: Where these may go.
    """

    cpus: CpuKnobFacts = CpuKnobFacts()
    interrupts: tuple[Interrupt, ...] = ()
    room: Room = Room(CpuSet())


@frozen
class HostPlan(ByContent):
    """What a host should be like.

    Attributes:
        files: Path to text, in the order of writing.
        punits: Of Speed Select; none where it is left alone.
        placement: Where interrupts go; part of the files.
        shared: Frequency policies on which not every class gets what it says.
    """

    files: Mapping[str, str] = attrs.field(factory=dict, hash=False)
    punits: tuple[Punit, ...] = ()
    placement: Placement = Placement()
    shared: tuple[SharedPolicy, ...] = ()


NO_PLAN: Final = HostPlan()
"""Of a host that is left as it is."""


def moves_interrupts(use: HostUse) -> bool:
    """Tell whether anybody says anything about interrupts."""
    return bool(use.containers or use.balloons)


def plan_of(use: HostUse, classes: CpuClassUse | None, facts: HostFacts) -> HostPlan:
    """Say what a host should be like.

    Args:
        use: What the policy wants of it.
        classes: What the names of CPU classes mean.
        facts: What there is to be set.
    """
    placement = _placement(use, facts.interrupts, facts.room)
    files = desired_files(placement, facts.interrupts)
    if classes is None or not use.cpu_classes:
        return HostPlan(files, placement=placement)
    table, members = classes.classes, use.cpu_classes
    of_cpus = desired(table, members, facts.cpus, classes.domain)
    return HostPlan(
        {**of_cpus, **files},
        desired_punits(table, members, facts.cpus),
        placement,
        shared_policies(table, members, facts.cpus),
    )


def _placement(use: HostUse, interrupts: Sequence[Interrupt], room: Room) -> Placement:
    if use.balloons:
        return placed_for_balloons(interrupts, use.balloons, room)
    if use.containers:
        return placed_for_containers(interrupts, use.containers, room)
    return Placement()
