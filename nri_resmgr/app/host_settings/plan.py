"""Plan of the host's settings: contents of files, and Speed Select."""

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
from nri_resmgr.config.cpu_classes import CpuClassUse
from nri_resmgr.policy.host_use import HostUse
from nri_resmgr.topology.speed_select import Punit
from nri_resmgr.values import CpuSet


class HostFacts(msgspec.Struct, frozen=True):
    """Facts about a host, as it was before any change of this daemon.

    Attributes:
        cpus: What can be set about its CPUs.
        interrupts: The interrupts that may be moved.
        irq_cpus: The CPUs that they may be moved to.
        cgroups: Cgroups of isolated containers that have one by now.
        interrupt_free: CPUs that isolated containers want no interrupts on.
        isolated: The CPUs of ``isolcpus=``.
    """

    cpus: CpuKnobFacts = CpuKnobFacts()
    interrupts: tuple[Interrupt, ...] = ()
    irq_cpus: InterruptCpus = InterruptCpus(CpuSet())
    cgroups: tuple[IsolatedCgroup, ...] = ()
    interrupt_free: CpuSet = CpuSet()
    isolated: CpuSet = CpuSet()


class HostPlan(msgspec.Struct, frozen=True):
    """Wanted settings of a host.

    Attributes:
        files: Path to text, in the order of writing.
        punits: Wanted state of Speed Select; empty to leave it unchanged.
        placement: CPUs of interrupts; its files are among *files*.
        shared: Frequency policies shared by classes that ask for different values.
    """

    files: Mapping[str, str] = {}
    punits: tuple[Punit, ...] = ()
    placement: InterruptPlacement = InterruptPlacement()
    shared: tuple[SharedPolicy, ...] = ()


NO_PLAN: Final = HostPlan()
"""Changes nothing on the host."""


def moves_interrupts(use: HostUse) -> bool:
    """Return whether a container or balloon type asks for anything about interrupts."""
    return bool(
        use.containers
        or use.balloons
        or any(one.request.irq is not IrqBalancing.ENABLED for one in use.isolated)
    )


def sets_cpus(use: HostUse) -> bool:
    """Return whether frequencies or idle states of any CPU are set."""
    return bool(use.cpu_classes or cpu_class_requests(use.isolated))


def plan_of(use: HostUse, classes: CpuClassUse | None, facts: HostFacts) -> HostPlan:
    """Compute the wanted settings of a host.

    Requests of a container about its exclusive CPUs override their class.
    """
    placement = without_cpus(
        _placement(use, facts.interrupts, facts.irq_cpus),
        facts.interrupts,
        facts.interrupt_free,
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
