"""Host files as somebody wants them, and as they were once nobody does."""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from nri_resmgr.host.knob_files import HostFiles, WritableTree, is_same
from nri_resmgr.host.knob_journal import KnobJournal, boot_of
from nri_resmgr.host.knob_order import in_order
from nri_resmgr.host.knob_report import Drift, KnobReport, Work
from nri_resmgr.host.state_dir import StateDir, StateUnusable
from nri_resmgr.host.tree import UnreadableHostFile

# Of interrupts that the kernel or their driver places: asking again is no use.
_FINAL: Final = frozenset((errno.EIO, errno.EPERM, errno.EACCES, errno.EROFS))
_INTERRUPTS: Final = "/proc/irq/"

_MISSING: Final = "no such file"


class Knobs:
    """Makes host files true to a mapping, and puts back what is not in it any more.

    The original value of a file is in the journal before the file is written for the
    first time. One caller at a time.

    Args:
        files: The host.
        journal: Where originals are kept.

    Raises:
        StateUnusable: The journal cannot be read.

    Attributes:
        refused: Interrupts that cannot be moved, and why; they are not tried again
            as long as they are desired.
    """

    def __init__(self, files: WritableTree, journal: KnobJournal) -> None:
        self._files = files
        self._journal = journal
        self._originals = journal.read()
        self._kept = dict(self._originals)  # as the journal has them
        self._texts: dict[str, str] = {}  # what we wrote last
        self._seen: dict[str, str] = {}  # what the kernel made of it
        self.refused: dict[str, str] = {}

    @property
    def originals(self) -> Mapping[str, str]:
        """The value of every file in our hands before it came there."""
        return dict(self._originals)

    @property
    def seen(self) -> Mapping[str, str]:
        """What the kernel made of the values that were written last."""
        return dict(self._seen)

    def apply(
        self, desired: Mapping[str, str], again: Collection[str] = ()
    ) -> KnobReport:
        """Set files to the values desired, and all others of ours back.

        A value is written only where it is not what we wrote last. The order of the
        mapping is that of writing; a minimum and its maximum are put into the order
        that the kernel takes.

        Args:
            desired: Path on the host to text.
            again: Files that are written even so, as those that drifted.
        """
        work = Work()
        for path in self.refused.keys() - desired.keys():
            del self.refused[path]
        for path in again:
            self._texts.pop(path, None)
        wanted = {p: text for p, text in desired.items() if p not in self.refused}
        self._take(wanted, work)
        # Last in, first out: what needed another file to be set first is gone first.
        left = [path for path in reversed(self._originals) if path not in wanted]
        targets = {path: self._originals[path] for path in left} | {
            path: text for path, text in wanted.items() if self._is_due(path, text)
        }
        for path, text in in_order(targets, self._present):
            if path in wanted:
                self._set(path, text, work)
            else:
                self._restore(path, text, work)
        self._keep()
        return work.report()

    def verify(self, desired: Mapping[str, str]) -> tuple[Drift, ...]:
        """Compare files with what is desired, or with what the kernel made of it."""
        return tuple(self._drifts(desired))

    def restore_all(self) -> KnobReport:
        """Set everything back."""
        return self.apply({})

    def _take(self, wanted: dict[str, str], work: Work) -> None:
        """Note the originals of new files; remove from *wanted* what has none."""
        fresh: dict[str, str] = {}
        for path in [path for path in wanted if path not in self._originals]:
            try:
                original = self._files.read(path)
            except UnreadableHostFile as error:
                work.fail(path, wanted.pop(path), error.why.lower())
                continue
            if original is None:
                work.fail(path, wanted.pop(path), _MISSING)
            else:
                fresh[path] = original
        if not fresh:
            return
        try:
            self._journal.write(self._originals | fresh)
        except StateUnusable as error:
            # What could not be put back after a crash is not changed.
            for path in fresh:
                work.fail(path, wanted.pop(path), f"no journal: {error}")
            return
        self._originals |= fresh
        self._kept = dict(self._originals)

    def _is_due(self, path: str, text: str) -> bool:
        if path in self._texts:
            return self._texts[path] != text
        return True

    def _present(self, path: str) -> str | None:
        try:
            return self._files.read(path)
        except UnreadableHostFile:
            return None

    def _set(self, path: str, text: str, work: Work) -> None:
        present = self._present(path)
        if present is not None and is_same(path, present, text):
            self._texts[path], self._seen[path] = text, present
            return
        self._texts.pop(path, None)
        try:
            self._files.write(path, text)
        except OSError as error:
            self._refuse(path, text, error, work)
            return
        self._texts[path] = text
        self._seen[path] = self._present(path) or text
        work.written.append(path)

    def _refuse(self, path: str, text: str, error: OSError, work: Work) -> None:
        why = _words(error)
        work.fail(path, text, why)
        if error.errno in _FINAL and path.startswith(_INTERRUPTS):
            self.refused[path] = why
            self._drop(path)

    def _restore(self, path: str, original: str, work: Work) -> None:
        try:
            present = self._files.read(path)
            if present is None:
                self._drop(path)  # with the device or the CPU that it was of
                return
            seen = self._seen.get(path)
            is_original = is_same(path, present, original)
            if not is_original:
                self._files.write(path, original)
        except UnreadableHostFile as error:
            work.fail(path, original, error.why.lower())
            return
        except OSError as error:
            work.fail(path, original, _words(error))
            return
        if not is_original and seen is not None and not is_same(path, present, seen):
            work.drifted.append(path)
        work.restored.append(path)
        self._drop(path)

    def _drop(self, path: str) -> None:
        for table in (self._originals, self._texts, self._seen):
            table.pop(path, None)

    def _keep(self) -> None:
        if self._originals == self._kept:
            return
        try:
            self._journal.write(self._originals)
        except StateUnusable:
            # The journal names files that are as they were. That does no harm now;
            # the next call writes it again.
            return
        self._kept = dict(self._originals)

    def _drifts(self, desired: Mapping[str, str]) -> Iterator[Drift]:
        for path, text in desired.items():
            if path in self.refused:
                continue
            found = self._present(path)
            seen = self._seen.get(path, text) if path in self._texts else text
            if found is None or not (
                is_same(path, found, text) or is_same(path, found, seen)
            ):
                yield Drift(path, text, found)


def open_knobs(root: str | os.PathLike[str], state: StateDir) -> Knobs:
    """Make the knobs of a host.

    Args:
        root: Where the host's root is seen, ``/`` or ``/host``.
        state: The directory for the journal, in which nobody else works.

    Raises:
        StateUnusable: The journal cannot be read.
        UnreadableHostFile: The host does not let us know which boot this is.
    """
    files = HostFiles(root)
    return Knobs(files, KnobJournal(state, boot_of(files)))


def _words(error: OSError) -> str:
    return os.strerror(error.errno or 0).lower()
