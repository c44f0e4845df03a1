"""What the host's own files should have in them, by what a policy wants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from nri_resmgr.classes.cpu.cpu_class import TurboDomain
from nri_resmgr.classes.cpu.cpufreq import SharedPolicy, shared_policies
from nri_resmgr.classes.cpu.desired import desired
from nri_resmgr.classes.cpu.facts import CpuKnobFacts
from nri_resmgr.classes.cpu.requests import with_requests
from nri_resmgr.classes.cpu.sst import desired_punits
from nri_resmgr.classes.irq.interrupts import Interrupt
from nri_resmgr.classes.irq.placement import (
    InterruptCpus,
    InterruptPlacement,
    desired_files,
    placed_for_balloons,
    placed_for_containers,
    without_cpus,
)
from nri_resmgr.classes.isolation.cgroup_files import IsolatedCgroup, cgroup_files
from nri_resmgr.classes.isolation.host import cpu_class_requests
from nri_resmgr.classes.isolation.requests import IrqBalancing
from nri_resmgr.config.cpu_class_use import CpuClassUse
from nri_resmgr.policy.host_use import HostUse
from nri_resmgr.topology.speed_select import Punit
from nri_resmgr.values import CpuSet


class HostFacts(msgspec.Struct, frozen=True):
    """What is known of a host, as it was before we changed anything.

    Attributes:
        cpus: What can be set about its CPUs.
        interrupts: Those that may be moved.
        irq_cpus: Where these may go.
        cgroups: Of isolated containers, as far as they have one by now.
        quiet: CPUs that isolated containers want no interrupts on.
        isolated: The CPUs of ``isolcpus=``.
    """

    cpus: CpuKnobFacts = CpuKnobFacts()
    interrupts: tuple[Interrupt, ...] = ()
    irq_cpus: InterruptCpus = InterruptCpus(CpuSet())
    cgroups: tuple[IsolatedCgroup, ...] = ()
    quiet: CpuSet = CpuSet()
    isolated: CpuSet = CpuSet()


class HostPlan(msgspec.Struct, frozen=True):
    """What a host should be like.

    Attributes:
        files: Path to text, in the order of writing.
        punits: Of Speed Select; none where it is left alone.
        placement: Where interrupts go; part of the files.
        shared: Frequency policies on which not every class gets what it says.
    """

    files: Mapping[str, str] = {}
    punits: tuple[Punit, ...] = ()
    placement: InterruptPlacement = InterruptPlacement()
    shared: tuple[SharedPolicy, ...] = ()


NO_PLAN: Final = HostPlan()
"""Of a host that is left as it is."""


def moves_interrupts(use: HostUse) -> bool:
    """Tell whether anybody says anything about interrupts."""
    return bool(
        use.containers
        or use.balloons
        or any(one.request.irq is not IrqBalancing.ENABLED for one in use.isolated)
    )


def sets_cpus(use: HostUse) -> bool:
    """Tell whether anybody says anything about frequencies or idle states."""
    return bool(use.cpu_classes or cpu_class_requests(use.isolated))


def plan_of(use: HostUse, classes: CpuClassUse | None, facts: HostFacts) -> HostPlan:
    """Say what a host should be like.

    What a container asks for its own CPUs goes over the class that they are in.

    Args:
        use: What the policy wants of it.
        classes: What the names of CPU classes mean.
        facts: What there is to be set.
    """
    placement = without_cpus(
        _placement(use, facts.interrupts, facts.irq_cpus),
        facts.interrupts,
        facts.quiet,
        facts.irq_cpus,
    )
    files = {
        **desired_files(placement, facts.interrupts),
        **cgroup_files(facts.cgroups, facts.isolated),
    }
    if not sets_cpus(use):
        return HostPlan(files, placement=placement)
    table, members = with_requests(
        classes.classes if classes else {},
        use.cpu_classes,
        cpu_class_requests(use.isolated),
    )
    domain = classes.domain if classes else TurboDomain.PACKAGE
    return HostPlan(
        {**desired(table, members, facts.cpus, domain), **files},
        desired_punits(table, members, facts.cpus),
        placement,
        shared_policies(table, members, facts.cpus),
    )


def _placement(
    use: HostUse, interrupts: Sequence[Interrupt], irq_cpus: InterruptCpus
) -> InterruptPlacement:
    if use.balloons:
        return placed_for_balloons(interrupts, use.balloons, irq_cpus)
    if use.containers:
        return placed_for_containers(interrupts, use.containers, irq_cpus)
    return InterruptPlacement()
