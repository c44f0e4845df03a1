"""Reader of the facts about a host that a plan of its settings needs."""

from __future__ import annotations

from collections.abc import Mapping

from nri_resmgr.app.host_settings.plan import HostFacts, moves_interrupts, sets_cpus
from nri_resmgr.app.host_settings.wanted import Wanted
from nri_resmgr.app.host_settings.writer import HostWriter
from nri_resmgr.classes.cpu.facts import CpuKnobFacts
from nri_resmgr.classes.irq.interrupts import Interrupt, changed_since, controlled
from nri_resmgr.classes.irq.placement import InterruptCpus
from nri_resmgr.classes.isolation.host import interrupt_free_cpus
from nri_resmgr.host.cgroups.isolated import IsolatedCgroups
from nri_resmgr.host.interrupts import read_default_cpus, read_interrupts
from nri_resmgr.host.irqbalance import Irqbalance, find_irqbalance
from nri_resmgr.host.knobs.cpu import read_cpu_knobs
from nri_resmgr.host.tree import Tree
from nri_resmgr.log import Logger
from nri_resmgr.topology import Machine
from nri_resmgr.values import CpuSet

log = Logger(__name__)


class FactsReader:
    """Reads what a plan needs; reads again only what may have changed.

    Attributes:
        irqbalance: The running irqbalance; None without one, or before it is needed.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._machine: Machine | None = None
        self._cpus = CpuKnobFacts()
        self._interrupts: tuple[Interrupt, ...] | None = None
        self._cgroups = IsolatedCgroups(tree)
        self._logged: frozenset[tuple[str, str]] = frozenset()
        self.irqbalance: Irqbalance | None = None

    def read(
        self, wanted: Wanted, writer: HostWriter | None, *, afresh: bool
    ) -> HostFacts:
        """Read what a plan for *wanted* needs.

        Args:
            wanted: What the policy wants.
            writer: Has the original values of files; None in a dry run.
            afresh: Whether to read the interrupts again.

        Raises:
            HostError: A file cannot be read.
        """
        cpus, use = CpuKnobFacts(), wanted.use
        if sets_cpus(use):
            if wanted.machine is not self._machine:
                self._cpus = read_cpu_knobs(self._tree, wanted.machine)
                self._machine = wanted.machine
            cpus = self._cpus if writer is None else writer.before_us(self._cpus)
        cgroups = self._cgroups.find(use.isolated)
        isolated = wanted.machine.isolated
        if not moves_interrupts(use):
            self._interrupts = None
            return HostFacts(cpus, cgroups=cgroups, isolated=isolated)
        if afresh or self._interrupts is None:
            self._read_interrupts(writer)
        banned = self.irqbalance.own.cpus if self.irqbalance else CpuSet()
        originals = writer.knobs.originals if writer else {}
        default = read_default_cpus(self._tree, originals)
        irq_cpus = InterruptCpus(use.available & wanted.machine.online, banned, default)
        allowed = controlled(self._interrupts or (), wanted.controllable)
        interrupt_free = interrupt_free_cpus(use.isolated, wanted.machine)
        return HostFacts(cpus, allowed, irq_cpus, cgroups, interrupt_free, isolated)

    def ineffective_isolation_of(self, facts: HostFacts) -> Mapping[str, str]:
        """Return the containers whose isolation has no effect; log each reason once.

        Args:
            facts: The facts read before the files were written.

        Returns:
            The reason by the container's id.

        Raises:
            HostError: A file cannot be read.
        """
        found = self._cgroups.ineffective(facts.cgroups, facts.isolated)
        for one, why in found:
            if (one.container, why) not in self._logged:
                cpus = str(one.cpus)
                log.warning(
                    "isolation.ineffective", container=one.container, cpus=cpus, why=why
                )
        self._logged = frozenset((one.container, why) for one, why in found)
        return dict(self._logged)

    def _read_interrupts(self, writer: HostWriter | None) -> None:
        before = self._interrupts
        originals = writer.knobs.originals if writer else {}
        self._interrupts = read_interrupts(self._tree, originals)
        self.irqbalance = find_irqbalance(self._tree)
        if before and (changed := changed_since(before, self._interrupts)):
            names = [f"{one.number} {one.name}" for one in changed]
            log.info("interrupts.changed", interrupts=names)
