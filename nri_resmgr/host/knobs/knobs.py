"""Sets host files as desired, and restores files that are no longer desired."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final

from nri_resmgr.host.knobs.files import WritableTree, is_same
from nri_resmgr.host.knobs.journal import KnobJournal
from nri_resmgr.host.knobs.report import KnobChanges, KnobDrift, KnobReport
from nri_resmgr.host.state_dir import StateUnusable
from nri_resmgr.host.tree import UnreadableHostFile

# Errors of interrupts that the kernel or their driver places: a retry is no use.
_FINAL: Final = frozenset((errno.EIO, errno.EPERM, errno.EACCES, errno.EROFS))
_INTERRUPTS: Final = "/proc/irq/"

_MISSING: Final = "no such file"
_PAIRS: Final = {
    "scaling_min_freq": "scaling_max_freq",
    "min_freq_khz": "max_freq_khz",
}
_GOVERNOR: Final = "scaling_governor"
_PREFERENCE: Final = "energy_performance_preference"
_MAXIMA: Final = {top: bottom for bottom, top in _PAIRS.items()}


class Knobs:
    """Sets host files to desired values, and restores all others that it has set.

    The original value of a file is journaled before the file is first written, so that
    a crash never loses it. Not thread-safe.

    Raises:
        StateUnusable: The journal cannot be read.

    Attributes:
        refused: Interrupts that cannot be moved, with the reason. They are not retried
            while they are desired.
    """

    def __init__(self, files: WritableTree, journal: KnobJournal) -> None:
        self._files = files
        self._journal = journal
        # A copy: it changes below, and the journal may return an object of its own.
        self._originals = dict(journal.read())
        self._texts: dict[str, str] = {}  # written last
        self._seen: dict[str, str] = {}  # read back after that
        self.refused: dict[str, str] = {}

    @property
    def originals(self) -> Mapping[str, str]:
        """Original values of all files that are set now."""
        return dict(self._originals)

    @property
    def seen(self) -> Mapping[str, str]:
        """Values that the kernel reported after the last writes."""
        return dict(self._seen)

    def apply(
        self, desired: Mapping[str, str], again: Collection[str] = ()
    ) -> KnobReport:
        """Set files to the desired values, and restore all others.

        A value is written only if it differs from the last written one. Files are
        written in the order of the mapping, except that minimum and maximum are written
        in the order that the kernel accepts. Files of *again*, such as drifted ones,
        are written in any case.
        """
        changes = KnobChanges()
        for path in self.refused.keys() - desired.keys():
            del self.refused[path]
        for path in again:
            self._texts.pop(path, None)
        wanted = {p: text for p, text in desired.items() if p not in self.refused}
        self._journal_originals(wanted, changes)
        # Restore in reverse order: later files may depend on earlier ones.
        left = [path for path in reversed(self._originals) if path not in wanted]
        due = {path for path, text in wanted.items() if self._texts.get(path) != text}
        changing = {*left, *due}
        # With a governor, the kernel changes the preference of its policy as well.
        targets = {path: self._originals[path] for path in left} | {
            path: text
            for path, text in wanted.items()
            if path in due or _governor(path) in changing
        }
        for path, text in in_order(targets, self._present):
            if path in wanted:
                self._set(path, text, changes)
            else:
                self._restore(path, text, changes)
        # Otherwise the journal has files that are restored already, which is harmless.
        # The next call writes it again.
        with contextlib.suppress(StateUnusable):
            self._journal.write(dict(self._originals))
        return changes.report()

    def verify(self, desired: Mapping[str, str]) -> tuple[KnobDrift, ...]:
        """Compare files with desired values, or with how the kernel reports these."""
        return tuple(self._drifts(desired))

    def restore_all(self) -> KnobReport:
        """Restore all files."""
        return self.apply({})

    def _journal_originals(self, wanted: dict[str, str], changes: KnobChanges) -> None:
        """Journal originals of new files; remove files without one from *wanted*."""
        fresh: dict[str, str] = {}
        for path in [path for path in wanted if path not in self._originals]:
            try:
                original = self._files.read(path)
            except UnreadableHostFile as error:
                changes.fail(path, wanted.pop(path), error.why.lower())
                continue
            if original is None:
                changes.fail(path, wanted.pop(path), _MISSING)
            else:
                fresh[path] = original
        if not fresh:
            return
        try:
            self._journal.write(self._originals | fresh)
        except StateUnusable as error:
            # Without a journal, a crash would lose the original: change nothing.
            for path in fresh:
                changes.fail(path, wanted.pop(path), f"no journal: {error}")
            return
        self._originals |= fresh

    def _present(self, path: str) -> str | None:
        try:
            return self._files.read(path)
        except UnreadableHostFile:
            return None

    def _set(self, path: str, text: str, changes: KnobChanges) -> None:
        present = self._present(path)
        if present is not None and is_same(path, present, text):
            self._texts[path], self._seen[path] = text, present
            return
        self._texts.pop(path, None)
        try:
            self._files.write(path, text)
        except OSError as error:
            changes.fail(path, text, why := _reason(error))
            if error.errno in _FINAL and path.startswith(_INTERRUPTS):
                self.refused[path] = why
                self._drop(path)
            return
        self._texts[path] = text
        self._seen[path] = self._present(path) or text
        changes.written.append(path)

    def _restore(self, path: str, original: str, changes: KnobChanges) -> None:
        try:
            present = self._files.read(path)
            if present is None:
                self._drop(path)  # removed with its device or CPU
                return
            seen = self._seen.get(path)
            is_original = is_same(path, present, original)
            if not is_original:
                self._files.write(path, original)
        except UnreadableHostFile as error:
            changes.fail(path, original, error.why.lower())
            return
        except OSError as error:
            changes.fail(path, original, _reason(error))
            return
        if not is_original and seen is not None and not is_same(path, present, seen):
            changes.drifted.append(path)
        changes.restored.append(path)
        self._drop(path)

    def _drop(self, path: str) -> None:
        for table in (self._originals, self._texts, self._seen):
            table.pop(path, None)

    def _drifts(self, desired: Mapping[str, str]) -> Iterator[KnobDrift]:
        for path, text in desired.items():
            if path in self.refused:
                continue
            found = self._present(path)
            seen = self._seen.get(path, text) if path in self._texts else text
            if found is None or not (
                is_same(path, found, text) or is_same(path, found, seen)
            ):
                yield KnobDrift(path, text, found)


def _reason(error: OSError) -> str:
    return os.strerror(error.errno or 0).lower()


def in_order(
    targets: Mapping[str, str], present: Callable[[str], str | None]
) -> Iterator[tuple[str, str]]:
    """Yield paths and texts so that no minimum is ever above its maximum.

    A governor is written before its policy's preference: with the governor performance
    the kernel accepts no other preference. The files of a pair are written at the
    position of the first.
    """
    done: set[str] = set()
    for path in targets:
        governor = _governor(path)
        if governor in targets and governor not in done:
            done.add(governor)
            yield governor, targets[governor]
        if path in done:
            continue
        pair = _pair(path)
        if pair is None or not all(one in targets for one in pair):
            done.add(path)
            yield path, targets[path]
            continue
        bottom, top = pair
        # To raise both, the maximum must be written first; to lower them, the minimum.
        is_up = _number(targets[top]) > _number(present(top))
        for one in (top, bottom) if is_up else (bottom, top):
            yield one, targets[one]
        done |= {bottom, top}


def _governor(path: str) -> str:
    folder, _, name = path.rpartition("/")
    return f"{folder}/{_GOVERNOR}" if name == _PREFERENCE else ""


def _pair(path: str) -> tuple[str, str] | None:
    folder, _, name = path.rpartition("/")
    if name in _PAIRS:
        return path, f"{folder}/{_PAIRS[name]}"
    if name in _MAXIMA:
        return f"{folder}/{_MAXIMA[name]}", path
    return None


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() else 0
