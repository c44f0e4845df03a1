"""Sets Speed Select as desired, and restores punits that are no longer desired."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final, TypeAlias

import msgspec

from nri_resmgr.host.knobs.report import KnobChanges, KnobDrift, KnobReport
from nri_resmgr.host.paths import SST_DEVICE
from nri_resmgr.host.speed_select.areas import Area
from nri_resmgr.host.speed_select.isst import IsstDevice, SpeedSelectUnsupported
from nri_resmgr.host.speed_select.journal import SstJournal
from nri_resmgr.host.speed_select.punit_writes import (
    PunitWriter,
    punit_writers,
    write_punit,
)
from nri_resmgr.host.speed_select.punits import read_punits
from nri_resmgr.host.state_dir import StateUnusable
from nri_resmgr.topology import Core
from nri_resmgr.topology.speed_select import Feature, Punit
from nri_resmgr.values import CpuSet

_Key: TypeAlias = tuple[int, int]
_Writers: TypeAlias = Mapping[_Key, tuple[PunitWriter, Area]]

_MISSING: Final = "no such punit"


class SpeedSelectKnobs:
    """Sets punits as desired, and restores all others that it has set.

    The original settings of a punit are journaled before it is first written. Not
    thread-safe.

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
        self._written: dict[_Key, Punit] = {}  # written last

    def with_originals(self, punits: Sequence[Punit]) -> tuple[Punit, ...]:
        """Return punits with their original settings."""
        return tuple(
            _set_to(punit, self._originals.get(_key(punit), punit)) for punit in punits
        )

    def apply(self, wanted: Sequence[Punit], *, again: bool = False) -> KnobReport:
        """Set punits as desired, and restore all others.

        A punit that is desired as it was written last is neither read nor written. The
        next call retries punits that were not written completely.

        With *again*, all of them are read and written, as after a drift.
        """
        changes = KnobChanges()
        if again:
            self._written.clear()
        named = {_key(punit): punit for punit in wanted}
        left = {k: punit for k, punit in self._originals.items() if k not in named}
        targets = left | {
            key: punit
            for key, punit in named.items()
            if key not in self._written or not _is_same(self._written[key], punit)
        }
        if targets:
            try:
                with self._open() as device:
                    self._write(device, targets, left.keys(), changes)
            except (OSError, SpeedSelectUnsupported) as error:
                for key, punit in targets.items():
                    self._fail(key, punit, error, changes)
        return changes.report()

    def verify(self, wanted: Sequence[Punit]) -> tuple[KnobDrift, ...]:
        """Compare punits with the desired settings.

        Raises:
            SpeedSelectUnsupported: The driver lacks a required fact.
            OSError: The driver refused.
        """
        with self._open() as device:
            present = {_key(punit): punit for punit in read_punits(device, self._cores)}
        return tuple(_drifts(present, wanted))

    def restore_all(self) -> KnobReport:
        """Restore all punits."""
        return self.apply(())

    def _write(
        self,
        device: IsstDevice,
        targets: Mapping[_Key, Punit],
        left: Collection[_Key],
        changes: KnobChanges,
    ) -> None:
        present = {_key(punit): punit for punit in read_punits(device, self._cores)}
        writers = punit_writers(device, self._cores)
        if not self._journal_originals(present, targets, changes):
            return
        for key, punit in targets.items():
            if key in left:
                self._restore(key, punit, present.get(key), writers, changes)
            elif key not in present:
                changes.fail(_path(key), describe(punit), _MISSING)
            elif self._set(key, punit, present[key], writers, changes):
                changes.written.append(_path(key))
        # Otherwise the journal has punits that are restored already, which is harmless.
        # The next call writes it again.
        with contextlib.suppress(StateUnusable):
            self._journal.write(tuple(self._originals.values()))

    def _journal_originals(
        self,
        present: Mapping[_Key, Punit],
        targets: Mapping[_Key, Punit],
        changes: KnobChanges,
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
                # Without a journal, a crash would lose the original: change nothing.
                for key, punit in targets.items():
                    changes.fail(_path(key), describe(punit), f"no journal: {error}")
                return False
            self._originals |= fresh
        return True

    def _set(
        self,
        key: _Key,
        punit: Punit,
        present: Punit,
        writers: _Writers,
        changes: KnobChanges,
    ) -> bool:
        """Write a punit; return whether its settings have changed."""
        self._written.pop(key, None)
        wanted = _set_to(present, punit)
        try:
            write_punit(*writers[key], present, wanted)
        except (OSError, SpeedSelectUnsupported) as error:
            self._fail(key, punit, error, changes)
            return False
        self._written[key] = punit
        return not _is_same(wanted, present)

    def _restore(
        self,
        key: _Key,
        original: Punit,
        present: Punit | None,
        writers: _Writers,
        changes: KnobChanges,
    ) -> None:
        if present is not None:
            self._set(key, original, present, writers, changes)
            if self._written.pop(key, None) is None:
                return
            changes.restored.append(_path(key))
        del self._originals[key]

    def _fail(
        self, key: _Key, punit: Punit, error: Exception, changes: KnobChanges
    ) -> None:
        self._written.pop(key, None)
        why = error.strerror if isinstance(error, OSError) else str(error)
        changes.fail(_path(key), describe(punit), (why or str(error)).lower())


def describe(punit: Punit) -> str:
    """Describe the settings of a punit in a few words.

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


def _drifts(
    present: Mapping[_Key, Punit], wanted: Sequence[Punit]
) -> Iterator[KnobDrift]:
    for punit in wanted:
        found = present.get(_key(punit))
        if found is None:
            yield KnobDrift(_path(_key(punit)), describe(punit), None)
        elif not _is_same(found, _set_to(found, punit)):
            expected = describe(_set_to(found, punit))
            yield KnobDrift(_path(_key(punit)), expected, describe(found))


def _set_to(present: Punit, wanted: Punit) -> Punit:
    """Return a punit with the desired settings and its present facts."""
    is_turbo = Feature.UNSUPPORTED not in (present.turbo, wanted.turbo)
    if len(present.clos) != len(wanted.clos):
        return present
    # CPUs that were offline when the settings were made stay in their class.
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
