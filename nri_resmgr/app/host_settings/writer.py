"""Writer of the host's settings, which also restores the original values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Final, TypeAlias

import msgspec

from nri_resmgr.app.host_settings.plan import NO_PLAN, HostFacts, HostPlan
from nri_resmgr.classes.cpu.facts import SST_DEVICE, CpuKnobFacts
from nri_resmgr.classes.irq.interrupts import DEFAULT_AFFINITY
from nri_resmgr.classes.irq.irqbalance import Bans, bans_for, misplaced_interrupts
from nri_resmgr.host.boot_journal import boot_of
from nri_resmgr.host.interrupts import read_interrupts
from nri_resmgr.host.irqbalance import MARK, IrqbalanceClient, IrqbalanceResult
from nri_resmgr.host.knobs.files import WritableHostTree
from nri_resmgr.host.knobs.journal import KnobJournal
from nri_resmgr.host.knobs.knobs import Knobs
from nri_resmgr.host.knobs.report import KnobDrift, KnobReport
from nri_resmgr.host.speed_select.device import open_isst
from nri_resmgr.host.speed_select.isst import IsstDevice, SpeedSelectUnsupported
from nri_resmgr.host.speed_select.journal import NAME as SST_JOURNAL
from nri_resmgr.host.speed_select.journal import SstJournal
from nri_resmgr.host.speed_select.knobs import SpeedSelectKnobs
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.host.tree import HostTree, Tree
from nri_resmgr.log import Logger
from nri_resmgr.topology import Machine

log = Logger(__name__)

OpenDevice: TypeAlias = Callable[[Tree], AbstractContextManager[IsstDevice]]

_INTERRUPTS: Final = "/proc/irq/"


class HostWriter:
    """Writes files, Speed Select and bans of irqbalance. One caller at a time.

    Args:
        state: State directory; keeps the original values.

    Raises:
        StateUnusable: The journals cannot be read.
        UnreadableHostFile: The boot id of the host cannot be read.

    Attributes:
        irqbalance: Outcome of the last request to irqbalance.
        knobs: The files, with their original values.
    """

    def __init__(
        self, tree: HostTree, state: StateDir, open_device: OpenDevice = open_isst
    ) -> None:
        self._open_device = open_device
        self._tree = tree
        self._state = state
        self._boot = boot_of(tree)
        journal = KnobJournal(state, self._boot)
        self.knobs = Knobs(WritableHostTree(tree.root or "/"), journal)
        _log_set_aside(journal)
        self._line = IrqbalanceClient(tree, state)
        self._has_bans = state.read(MARK) is not None
        self._is_sst_changed = state.read(SST_JOURNAL) is not None
        self._punits: SpeedSelectKnobs | None = None
        self._cores: object = None
        self.irqbalance = IrqbalanceResult()

    @property
    def is_idle(self) -> bool:
        """True if the host has its original settings."""
        return not (self.knobs.originals or self._has_bans or self._is_sst_changed)

    def use_machine(self, machine: Machine) -> None:
        """Take the cores of a machine; they change with hotplug."""
        if machine.cores is not self._cores:
            self._cores, self._punits = machine.cores, None
            journal = SstJournal(self._state, self._boot)
            opener = partial(self._open_device, self._tree)
            self._punits = SpeedSelectKnobs(opener, machine.cores, journal)
            _log_set_aside(journal)

    def before_us(self, facts: CpuKnobFacts) -> CpuKnobFacts:
        """Return facts with the original state of Speed Select."""
        if not facts.punits or self._punits is None:
            return facts
        return msgspec.structs.replace(
            facts, punits=self._punits.with_originals(facts.punits)
        )

    def apply(
        self,
        plan: HostPlan,
        facts: HostFacts,
        again: Collection[str] = (),
        *,
        sends_bans: bool = True,
    ) -> KnobReport:
        """Write a plan, and restore what is not in it.

        Args:
            plan: The wanted settings; `NO_PLAN` restores everything.
            facts: The facts that the plan was made from.
            again: Paths that others have changed and that are written again.
            sends_bans: Whether irqbalance may need other bans.

        Raises:
            StateUnusable: It cannot be recorded that irqbalance has bans.
        """
        reports = [self.knobs.apply(plan.files, again)]
        if plan.punits or self._is_sst_changed:
            reports.append(self._set_punits(plan, again))
        bans = bans_for(plan.placement, facts.irq_cpus)
        if sends_bans and (bans or self._has_bans):
            self._send(bans)
        return _joined(reports)

    def verify(
        self, plan: HostPlan, facts: HostFacts, *, is_balanced: bool
    ) -> tuple[KnobDrift, ...]:
        """Compare the host with a plan; *is_balanced* where irqbalance is running."""
        files = dict(plan.files)
        found: list[KnobDrift] = []
        if is_balanced:
            files = {path: text for path, text in files.items() if _is_exclusive(path)}
            found += self._misplaced(plan, facts)
        found += self.knobs.verify(files)
        if plan.punits and self._punits is not None:
            found += self._punit_drifts(self._punits, plan)
        return tuple(found)

    def restore_all(self) -> KnobReport:
        """Restore the original settings.

        Raises:
            StateUnusable: The record about irqbalance cannot be removed.
        """
        return self.apply(NO_PLAN, HostFacts())

    def _send(self, bans: Bans) -> None:
        # Until the answer is known: a request that failed may have been taken.
        self._has_bans = True
        self.irqbalance = self._line.send_bans(bans)
        self._has_bans = bool(bans) or bool(self.irqbalance.why)

    def _set_punits(self, plan: HostPlan, again: Collection[str]) -> KnobReport:
        knobs = self._punits
        if knobs is None:
            return KnobReport()
        is_again = any(path.startswith(SST_DEVICE) for path in again)
        report = knobs.apply(plan.punits, again=is_again)
        self._is_sst_changed = bool(plan.punits or report.failed)
        return report

    def _misplaced(self, plan: HostPlan, facts: HostFacts) -> Iterator[KnobDrift]:
        present = read_interrupts(self._tree)
        for one in misplaced_interrupts(plan.placement, present, facts.irq_cpus):
            if one.path not in self.knobs.refused:
                yield KnobDrift(one.path, plan.files[one.path], str(one.cpus))

    def _punit_drifts(
        self, knobs: SpeedSelectKnobs, plan: HostPlan
    ) -> Sequence[KnobDrift]:
        try:
            return knobs.verify(plan.punits)
        except (OSError, SpeedSelectUnsupported) as error:
            return (KnobDrift(SST_DEVICE, "readable", str(error)),)


def _log_set_aside(journal: KnobJournal | SstJournal) -> None:
    if path := journal.set_aside:
        log.error(
            "host.journal-set-aside",
            moved_to=path,
            effect="changes that it recorded are not restored",
        )


def _is_exclusive(path: str) -> bool:
    """Return whether a running irqbalance never writes a file."""
    return path == DEFAULT_AFFINITY or not path.startswith(_INTERRUPTS)


def _joined(reports: Iterable[KnobReport]) -> KnobReport:
    found = tuple(reports)
    return KnobReport(
        tuple(path for one in found for path in one.written),
        tuple(path for one in found for path in one.restored),
        tuple(failure for one in found for failure in one.failed),
        tuple(path for one in found for path in one.drifted),
    )
