"""Brings a host about that is as planned, and puts back what it was like."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Final, TypeAlias

import msgspec

from nri_resmgr.app.host_settings.plan import NO_PLAN, HostFacts, HostPlan
from nri_resmgr.classes.cpu.facts import SST_DEVICE, CpuKnobFacts
from nri_resmgr.classes.irq.interrupts import DEFAULT_AFFINITY
from nri_resmgr.classes.irq.irqbalance import Bans, bans_for, misplaced_interrupts
from nri_resmgr.host.interrupts import read_interrupts
from nri_resmgr.host.irqbalance import MARK, IrqbalanceLine, Told
from nri_resmgr.host.isst import IsstDevice, SpeedSelectUnsupported
from nri_resmgr.host.knob_files import HostFiles
from nri_resmgr.host.knob_journal import KnobJournal, boot_of
from nri_resmgr.host.knob_report import Drift, KnobReport
from nri_resmgr.host.knobs import Knobs
from nri_resmgr.host.speed_select import open_isst
from nri_resmgr.host.sst_journal import NAME as SST_JOURNAL
from nri_resmgr.host.sst_journal import SstJournal
from nri_resmgr.host.sst_knobs import SpeedSelectKnobs
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.host.tree import HostTree, Tree
from nri_resmgr.log import Logger
from nri_resmgr.topology import Machine

log = Logger(__name__)

OpenDevice: TypeAlias = Callable[[Tree], AbstractContextManager[IsstDevice]]

_INTERRUPTS: Final = "/proc/irq/"


class HostWriter:
    """Files, Speed Select and irqbalance of a host. One caller at a time.

    Args:
        tree: The host.
        state: Where it is noted how all was before us.
        open_device: Opens the device of Speed Select, given the host.

    Raises:
        StateUnusable: What is noted there cannot be read.
        UnreadableHostFile: The host does not let us know which boot this is.

    Attributes:
        told: What became of telling irqbalance.
    """

    def __init__(
        self, tree: HostTree, state: StateDir, open_device: OpenDevice = open_isst
    ) -> None:
        self._open_device = open_device
        self._tree = tree
        self._state = state
        self._boot = boot_of(tree)
        journal = KnobJournal(state, self._boot)
        self._knobs = Knobs(HostFiles(tree.root or "/"), journal)
        _tell_set_aside(journal)
        self._line = IrqbalanceLine(tree, state)
        self._is_told = state.read(MARK) is not None
        self._is_set = state.read(SST_JOURNAL) is not None
        self._punits: SpeedSelectKnobs | None = None
        self._cores: object = None
        self.told = Told()

    @property
    def originals(self) -> Mapping[str, str]:
        """The value of every file in our hands before it came there."""
        return self._knobs.originals

    @property
    def refused(self) -> Mapping[str, str]:
        """Interrupts that cannot be moved, and why."""
        return dict(self._knobs.refused)

    @property
    def seen(self) -> Mapping[str, str]:
        """What the kernel made of the values that we wrote."""
        return self._knobs.seen

    @property
    def is_idle(self) -> bool:
        """Whether the host is as it was before us."""
        return not (self.originals or self._is_told or self._is_set)

    def follow(self, machine: Machine) -> None:
        """Go by the cores of another machine."""
        if machine.cores is not self._cores:
            self._cores, self._punits = machine.cores, None
            journal = SstJournal(self._state, self._boot)
            opener = partial(self._open_device, self._tree)
            self._punits = SpeedSelectKnobs(opener, machine.cores, journal)
            _tell_set_aside(journal)

    def before_us(self, facts: CpuKnobFacts) -> CpuKnobFacts:
        """Return facts with Speed Select as it was."""
        if not facts.punits or self._punits is None:
            return facts
        return msgspec.structs.replace(
            facts, punits=self._punits.before_us(facts.punits)
        )

    def apply(
        self,
        plan: HostPlan,
        facts: HostFacts,
        again: Collection[str] = (),
        *,
        tells: bool = True,
    ) -> KnobReport:
        """Make the host as planned.

        Args:
            plan: What it shall be like; nothing for as it was.
            facts: What the plan was made from.
            again: Paths of what was written before and is otherwise now.
            tells: Whether irqbalance may have to be told something.

        Raises:
            StateUnusable: It cannot be noted that irqbalance is told something.
        """
        reports = [self._knobs.apply(plan.files, again)]
        if plan.punits or self._is_set:
            reports.append(self._set_punits(plan, again))
        bans = bans_for(plan.placement, facts.irq_cpus)
        if tells and (bans or self._is_told):
            self._tell(bans)
        return _joined(reports)

    def look(
        self, plan: HostPlan, facts: HostFacts, *, is_balanced: bool
    ) -> tuple[Drift, ...]:
        """Compare the host with a plan.

        Args:
            plan: What it should be like.
            facts: What the plan was made from.
            is_balanced: Whether irqbalance moves interrupts, too.
        """
        files = dict(plan.files)
        found: list[Drift] = []
        if is_balanced:
            files = {path: text for path, text in files.items() if _is_ours(path)}
            found += self._strays(plan, facts)
        found += self._knobs.verify(files)
        if plan.punits and self._punits is not None:
            found += self._drifts_of_punits(self._punits, plan)
        return tuple(found)

    def restore_all(self) -> KnobReport:
        """Put everything back.

        Raises:
            StateUnusable: What is noted about irqbalance cannot be removed.
        """
        return self.apply(NO_PLAN, HostFacts())

    def _tell(self, bans: Bans) -> None:
        self._is_told = True
        self.told = self._line.tell(bans)
        self._is_told = bool(bans) or bool(self.told.why)

    def _set_punits(self, plan: HostPlan, again: Collection[str]) -> KnobReport:
        knobs = self._punits
        if knobs is None:
            return KnobReport()
        is_again = any(path.startswith(SST_DEVICE) for path in again)
        report = knobs.apply(plan.punits, again=is_again)
        self._is_set = bool(plan.punits or report.failed)
        return report

    def _strays(self, plan: HostPlan, facts: HostFacts) -> Iterator[Drift]:
        present = read_interrupts(self._tree)
        for one in misplaced_interrupts(plan.placement, present, facts.irq_cpus):
            if one.path not in self._knobs.refused:
                yield Drift(one.path, plan.files[one.path], str(one.cpus))

    def _drifts_of_punits(
        self, knobs: SpeedSelectKnobs, plan: HostPlan
    ) -> Sequence[Drift]:
        try:
            return knobs.verify(plan.punits)
        except (OSError, SpeedSelectUnsupported) as error:
            return (Drift(SST_DEVICE, "readable", str(error)),)


def _tell_set_aside(journal: KnobJournal | SstJournal) -> None:
    if path := journal.set_aside:
        log.error("host.journal-set-aside", path=path, so="what it was of stays as is")


def _is_ours(path: str) -> bool:
    """Tell whether nobody but us writes a file while irqbalance runs."""
    return path == DEFAULT_AFFINITY or not path.startswith(_INTERRUPTS)


def _joined(reports: Iterable[KnobReport]) -> KnobReport:
    found = tuple(reports)
    return KnobReport(
        tuple(path for one in found for path in one.written),
        tuple(path for one in found for path in one.restored),
        tuple(failure for one in found for failure in one.failed),
        tuple(path for one in found for path in one.drifted),
    )
