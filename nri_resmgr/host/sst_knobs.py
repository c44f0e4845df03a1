"""Speed Select as somebody wants it, and as it was once nobody does."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final, TypeAlias

import msgspec

from nri_resmgr.host.isst import IsstDevice, SpeedSelectUnsupported
from nri_resmgr.host.knob_report import Drift, KnobReport, Work
from nri_resmgr.host.platform import SST_DEVICE
from nri_resmgr.host.punit_areas import Area
from nri_resmgr.host.punit_writes import PunitWriter, punit_writers, write_punit
from nri_resmgr.host.punits import read_punits
from nri_resmgr.host.sst_journal import SstJournal
from nri_resmgr.host.state_dir import StateUnusable
from nri_resmgr.topology import Core
from nri_resmgr.topology.speed_select import Feature, Punit
from nri_resmgr.values import CpuSet

_Key: TypeAlias = tuple[int, int]
_Writers: TypeAlias = Mapping[_Key, tuple[PunitWriter, Area]]

_MISSING: Final = "no such punit"


class SpeedSelectKnobs:
    """Makes punits as wanted, and puts back what nobody wants any more.

    How a punit was is in the journal before it is written to for the first time. One
    caller at a time.

    Args:
        open_device: Opens the device for one call of ours.
        cores: The cores of the machine.
        journal: Where originals are kept.

    Raises:
        StateUnusable: The journal cannot be read.
    """

    def __init__(
        self,
        open_device: Callable[[], AbstractContextManager[IsstDevice]],
        cores: Sequence[Core],
        journal: SstJournal,
    ) -> None:
        self._open = open_device
        self._cores = cores
        self._journal = journal
        self._originals = {_key(punit): punit for punit in journal.read()}
        self._kept = dict(self._originals)  # as the journal has them
        self._written: dict[_Key, Punit] = {}  # what it is like after our last write

    def before_us(self, punits: Sequence[Punit]) -> tuple[Punit, ...]:
        """Return punits as they were before we changed any.

        Args:
            punits: As they are now.
        """
        return tuple(
            _set_to(punit, self._originals.get(_key(punit), punit)) for punit in punits
        )

    def apply(self, wanted: Sequence[Punit], *, again: bool = False) -> KnobReport:
        """Set punits as wanted, and all others of ours back.

        Nothing is asked or written where a punit is wanted as we wrote it last. A
        punit that was not written as a whole is tried again by the next call.

        Args:
            wanted: Punits as they shall be.
            again: Look at them even so, as after a drift.
        """
        work = Work()
        if again:
            self._written.clear()
        named = {_key(punit): punit for punit in wanted}
        left = {k: punit for k, punit in self._originals.items() if k not in named}
        targets = left | {
            key: punit for key, punit in named.items() if self._is_due(key, punit)
        }
        if targets:
            try:
                with self._open() as device:
                    self._write(device, targets, left.keys(), work)
            except (OSError, SpeedSelectUnsupported) as error:
                for key, punit in targets.items():
                    self._fail(key, punit, error, work)
        return work.report()

    def verify(self, wanted: Sequence[Punit]) -> tuple[Drift, ...]:
        """Compare punits with what is wanted.

        Raises:
            SpeedSelectUnsupported: The driver tells nothing.
            OSError: The driver refused.
        """
        with self._open() as device:
            present = {_key(punit): punit for punit in read_punits(device, self._cores)}
        return tuple(_drifts(present, wanted))

    def restore_all(self) -> KnobReport:
        """Set everything back."""
        return self.apply(())

    def _write(
        self,
        device: IsstDevice,
        targets: Mapping[_Key, Punit],
        left: Collection[_Key],
        work: Work,
    ) -> None:
        present = {_key(punit): punit for punit in read_punits(device, self._cores)}
        writers = punit_writers(device, self._cores)
        if not self._note(present, targets, work):
            return
        for key, punit in targets.items():
            if key in left:
                self._restore(key, punit, present.get(key), writers, work)
            elif key not in present:
                work.fail(_path(key), describe(punit), _MISSING)
            elif self._set(key, punit, present[key], writers, work):
                work.written.append(_path(key))
        self._keep()

    def _is_due(self, key: _Key, punit: Punit) -> bool:
        return key not in self._written or not _is_same(self._written[key], punit)

    def _note(
        self, present: Mapping[_Key, Punit], targets: Mapping[_Key, Punit], work: Work
    ) -> bool:
        fresh = {
            key: present[key]
            for key in targets
            if key in present and key not in self._originals
        }
        if fresh:
            try:
                self._journal.write((*self._originals.values(), *fresh.values()))
            except StateUnusable as error:
                # What could not be put back after a crash is not changed.
                for key, punit in targets.items():
                    work.fail(_path(key), describe(punit), f"no journal: {error}")
                return False
            self._originals |= fresh
            self._kept = dict(self._originals)
        return True

    def _set(
        self,
        key: _Key,
        punit: Punit,
        present: Punit,
        writers: _Writers,
        work: Work,
    ) -> bool:
        """Write a punit; tell whether there was something to write and it was done."""
        self._written.pop(key, None)
        wanted = _set_to(present, punit)
        try:
            write_punit(*writers[key], present, wanted)
        except (OSError, SpeedSelectUnsupported) as error:
            self._fail(key, punit, error, work)
            return False
        self._written[key] = punit
        return not _is_same(wanted, present)

    def _restore(
        self,
        key: _Key,
        original: Punit,
        present: Punit | None,
        writers: _Writers,
        work: Work,
    ) -> None:
        if present is not None:
            self._set(key, original, present, writers, work)
            if self._written.pop(key, None) is None:
                return
            work.restored.append(_path(key))
        del self._originals[key]

    def _fail(self, key: _Key, punit: Punit, error: Exception, work: Work) -> None:
        self._written.pop(key, None)
        why = error.strerror if isinstance(error, OSError) else str(error)
        work.fail(_path(key), describe(punit), (why or str(error)).lower())

    def _keep(self) -> None:
        if self._originals == self._kept:
            return
        try:
            self._journal.write(tuple(self._originals.values()))
        except StateUnusable:
            # It names punits that are as they were. That does no harm now; the next
            # call writes it again.
            return
        self._kept = dict(self._originals)


def describe(punit: Punit) -> str:
    """Say in a few words what a punit is set to.

    >>> from nri_resmgr.values import CpuSet
    >>> from nri_resmgr.topology.speed_select import Clos
    >>> describe(Punit(0, 0, CpuSet.of(0, 1), clos=(Clos(cpus=CpuSet.of(0, 1)),)))
    'turbo unsupported, core power unsupported, proportional, clos 0: 0-1'
    """
    parts = []
    for number, clos in enumerate(punit.clos):
        if clos.cpus:
            limits = f" {clos.min or 'min'}-{clos.max or 'max'} kHz"
            is_limited = clos.min is not None or clos.max is not None
            text = f"clos {number}: {clos.cpus}{limits if is_limited else ''}"
            parts.append(text)
    head = f"turbo {punit.turbo}, core power {punit.power}, {punit.order}"
    return ", ".join((head, *parts))


def _drifts(present: Mapping[_Key, Punit], wanted: Sequence[Punit]) -> Iterator[Drift]:
    for punit in wanted:
        found = present.get(_key(punit))
        if found is None:
            yield Drift(_path(_key(punit)), describe(punit), None)
        elif not _is_same(found, _set_to(found, punit)):
            expected = describe(_set_to(found, punit))
            yield Drift(_path(_key(punit)), expected, describe(found))


def _set_to(present: Punit, wanted: Punit) -> Punit:
    """Return what a punit is like once it is set as wanted, with its facts of now."""
    is_turbo = Feature.UNSUPPORTED not in (present.turbo, wanted.turbo)
    if len(present.clos) != len(wanted.clos):
        return present
    # CPUs that were offline when it was wanted stay where they are.
    others = present.cpus - CpuSet.union(clos.cpus for clos in wanted.clos)
    pairs = zip(present.clos, wanted.clos, strict=True)
    return msgspec.structs.replace(
        present,
        turbo=wanted.turbo if is_turbo else present.turbo,
        power=wanted.power,
        order=wanted.order,
        clos=tuple(
            msgspec.structs.replace(
                new, cpus=new.cpus & present.cpus | old.cpus & others
            )
            for old, new in pairs
        ),
    )


def _is_same(one: Punit, other: Punit) -> bool:
    fields = [(p.turbo, p.power, p.order, p.clos) for p in (one, other)]
    return fields[0] == fields[1]


def _key(punit: Punit) -> _Key:
    return punit.package, punit.id


def _path(key: _Key) -> str:
    return f"{SST_DEVICE} punit {key[0]}/{key[1]}"
