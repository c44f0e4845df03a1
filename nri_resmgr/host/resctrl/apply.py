"""Applies changes of groups; the journal is always written first."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial

import msgspec

from nri_resmgr.host.resctrl.errors import GroupRefused
from nri_resmgr.host.resctrl.files import ResctrlFiles
from nri_resmgr.host.resctrl.groups import names_in, path_in
from nri_resmgr.host.resctrl.journal import Journal, ResctrlRecord, group_of
from nri_resmgr.host.resctrl.report import ResctrlReport
from nri_resmgr.host.resctrl.snapshot import ResctrlSnapshot
from nri_resmgr.host.resctrl.steps import Steps
from nri_resmgr.host.resctrl.transaction import Transaction, attempt
from nri_resmgr.host.state_dir import StateUnusable
from nri_resmgr.host.tree import UnreadableHostFile

Failed = list[tuple[str, str]]


def apply_steps(
    steps: Steps, snapshot: ResctrlSnapshot, files: ResctrlFiles, journal: Journal
) -> ResctrlReport:
    """Apply all steps, or none.

    Groups that are removed last may remain after a failure: no class needs their
    closids or bits.

    Raises:
        GroupRefused: The kernel rejected a step. All earlier ones are undone, except
            those that the error names.
        UnreadableHostFile: A group to remove cannot be saved. Undone likewise.
        StateUnusable: The journal cannot be written. Nothing was changed.
    """
    journal.save(steps.meanwhile)
    changes = Transaction(files, snapshot.groups)
    try:
        for name in steps.remove_first:
            changes.remove(name)
        for name in steps.make:
            changes.make(name)
        for name, text in steps.write.items():
            changes.write(name, text)
    except (GroupRefused, UnreadableHostFile) as error:
        left = changes.undo()
        if isinstance(error, GroupRefused):
            error.left = left
        if not left:
            with contextlib.suppress(StateUnusable):  # more than needed is harmless
                journal.save(snapshot.record)
        raise
    failed: Failed = []
    stays = {n for n in steps.remove_last if not _remove(files, n, n, failed)}
    _save(journal, _with(steps.afterwards, stays, steps.meanwhile), failed)
    return ResctrlReport(
        made=steps.make,
        written=tuple(steps.write),
        removed=tuple(sorted({*steps.remove_first, *steps.remove_last} - stays)),
        shared=steps.shared,
        failed=tuple(failed),
    )


def undo_all(
    files: ResctrlFiles, journal: Journal, record: ResctrlRecord
) -> ResctrlReport:
    """Remove our groups and restore changed ones; continue after failures."""
    failed: Failed = []
    monitors = [
        one
        for one in sorted(record.monitors)
        if group_of(one) not in record.made
        and not _remove(files, group_of(one), one, failed)
    ]
    stays = [one for one in sorted(record.made) if not _remove(files, one, one, failed)]
    back = {
        name: _write(files, name, text, failed)
        for name, text in record.originals.items()
    }
    removed = sorted(record.made.difference(stays))
    originals = {n: text for n, text in record.originals.items() if not back[n]}
    _save(
        journal, ResctrlRecord(frozenset(stays), frozenset(monitors), originals), failed
    )
    written = tuple(name for name, is_back in back.items() if is_back)
    return ResctrlReport(written=written, removed=tuple(removed), failed=tuple(failed))


def _remove(files: ResctrlFiles, name: str, path: str, failed: Failed) -> bool:
    def remove() -> None:
        with contextlib.suppress(FileNotFoundError):  # it is gone already
            files.rmdir(path)

    with _collecting(failed):
        attempt(files, name, "remove", path, remove)
        return True
    return False


def _write(files: ResctrlFiles, name: str, text: str, failed: Failed) -> bool:
    path = path_in(name, "schemata")
    with _collecting(failed):
        attempt(files, name, "write", path, partial(files.write, path, text))
        return True
    return False


def _save(journal: Journal, record: ResctrlRecord, failed: Failed) -> None:
    try:
        journal.save(record)
    except StateUnusable as error:
        # The journal still has all that has to be undone, and more, which is harmless.
        failed.append((error.path, error.why))


def _with(
    record: ResctrlRecord, stays: set[str], meanwhile: ResctrlRecord
) -> ResctrlRecord:
    kept = {one for one in meanwhile.monitors if group_of(one) in stays}
    return ResctrlRecord(record.made | stays, record.monitors | kept, record.originals)


@contextlib.contextmanager
def _collecting(failed: Failed) -> Iterator[None]:
    try:
        yield
    except GroupRefused as error:
        failed.append((error.path, error.why))


def make_monitor(files: ResctrlFiles, journal: Journal, path: str) -> None:
    """Create a monitoring group.

    Raises:
        GroupRefused: The kernel rejected it.
        StateUnusable: The journal cannot be written; nothing was changed.
    """
    record = journal.load()
    journal.save(msgspec.structs.replace(record, monitors=record.monitors | {path}))
    try:
        attempt(files, group_of(path), "make", path, partial(files.mkdir, path))
    except GroupRefused:
        journal.save(record)
        raise


def remove_monitor(files: ResctrlFiles, journal: Journal, path: str) -> None:
    """Remove a monitoring group if it is ours; one that is gone leaves the journal.

    Raises:
        GroupRefused: The kernel rejected it.
        StateUnusable: The journal cannot be written; the group is removed.
    """
    record = journal.load()
    if path not in record.monitors:
        return
    if "tasks" in names_in(files, path):
        attempt(files, group_of(path), "remove", path, partial(files.rmdir, path))
    journal.save(msgspec.structs.replace(record, monitors=record.monitors - {path}))
