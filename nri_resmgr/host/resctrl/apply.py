"""Changes of groups, with the journal always a step ahead."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Iterator
from functools import partial

from nri_resmgr.host.resctrl.errors import GroupRefused
from nri_resmgr.host.resctrl.files import ResctrlFiles
from nri_resmgr.host.resctrl.groups import path_in
from nri_resmgr.host.resctrl.journal import Journal, Record, group_of
from nri_resmgr.host.resctrl.report import Report
from nri_resmgr.host.resctrl.snapshot import Scene
from nri_resmgr.host.resctrl.steps import Steps
from nri_resmgr.host.resctrl.transaction import Transaction, done
from nri_resmgr.host.state_dir import StateUnusable
from nri_resmgr.host.tree import UnreadableHostFile

Failed = list[tuple[str, str]]


def carry_out(
    steps: Steps, scene: Scene, files: ResctrlFiles, journal: Journal
) -> Report:
    """Do all steps, or none.

    Leftovers that go last may stay: no class that is wanted needs them gone.

    Raises:
        GroupRefused: The kernel refused a step. All before are undone, but for those
            that the error names.
        UnreadableHostFile: The kernel does not tell what to undo. Likewise.
        StateUnusable: The journal cannot be written. Nothing was done.
    """
    journal.save(steps.meanwhile)
    changes = Transaction(files, scene.groups)
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
            with contextlib.suppress(StateUnusable):  # it says too much, no harm
                journal.save(scene.record)
        raise
    failed: Failed = []
    stays = {n for n in steps.remove_last if not _removed(files, n, n, failed)}
    _save(journal, _with(steps.afterwards, stays, steps.meanwhile), failed)
    return Report(
        made=steps.make,
        written=tuple(steps.write),
        removed=tuple(sorted({*steps.remove_first, *steps.remove_last} - stays)),
        shared=steps.shared,
        failed=tuple(failed),
    )


def undo_all(files: ResctrlFiles, journal: Journal, record: Record) -> Report:
    """Take away what is ours, and put back what is not; go on where that fails.

    Args:
        files: Where groups are.
        journal: Where to say what is left to be undone.
        record: What there is to undo.
    """
    failed: Failed = []
    monitors = [
        one
        for one in sorted(record.monitors)
        if group_of(one) not in record.made
        and not _removed(files, group_of(one), one, failed)
    ]
    stays = [
        one for one in sorted(record.made) if not _removed(files, one, one, failed)
    ]
    back = {
        name: _wrote(files, name, text, failed)
        for name, text in record.originals.items()
    }
    removed = sorted(record.made.difference(stays))
    originals = {n: text for n, text in record.originals.items() if not back[n]}
    _save(journal, Record(frozenset(stays), frozenset(monitors), originals), failed)
    written = tuple(name for name, is_back in back.items() if is_back)
    return Report(written=written, removed=tuple(removed), failed=tuple(failed))


def _removed(files: ResctrlFiles, name: str, path: str, failed: Failed) -> bool:
    with _telling(failed):
        done(files, name, "remove", path, _unless_gone(files, path))
        return True
    return False


def _wrote(files: ResctrlFiles, name: str, text: str, failed: Failed) -> bool:
    path = path_in(name, "schemata")
    with _telling(failed):
        done(files, name, "write", path, partial(files.write, path, text))
        return True
    return False


def _unless_gone(files: ResctrlFiles, path: str) -> Callable[[], None]:
    def remove() -> None:
        try:
            files.rmdir(path)
        except OSError as error:
            if error.errno != errno.ENOENT:
                raise

    return remove


def _save(journal: Journal, record: Record, failed: Failed) -> None:
    try:
        journal.save(record)
    except StateUnusable as error:
        # What it says now is what it had to say before: more than there is.
        failed.append((error.path, error.why))


def _with(record: Record, stays: set[str], meanwhile: Record) -> Record:
    kept = {one for one in meanwhile.monitors if group_of(one) in stays}
    return Record(record.made | stays, record.monitors | kept, record.originals)


@contextlib.contextmanager
def _telling(failed: Failed) -> Iterator[None]:
    try:
        yield
    except GroupRefused as error:
        failed.append((error.path, error.why))
