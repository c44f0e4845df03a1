"""Monitoring groups: made with a word in the journal, and taken away again."""

from __future__ import annotations

from functools import partial

from nri_resmgr.host.resctrl.errors import GroupRefused
from nri_resmgr.host.resctrl.files import ResctrlFiles
from nri_resmgr.host.resctrl.groups import names_in
from nri_resmgr.host.resctrl.journal import Journal, group_of
from nri_resmgr.host.resctrl.transaction import done


def make_monitor(files: ResctrlFiles, journal: Journal, path: str) -> None:
    """Make a monitoring group.

    Raises:
        GroupRefused: The kernel refused.
        StateUnusable: The journal cannot be written; nothing was done.
    """
    record = journal.load()
    journal.save(record.with_monitor(path))
    try:
        done(files, group_of(path), "make", path, partial(files.mkdir, path))
    except GroupRefused:
        journal.save(record)
        raise


def remove_monitor(files: ResctrlFiles, journal: Journal, path: str) -> None:
    """Remove a monitoring group, if it is ours; if it is gone, forget it.

    Raises:
        GroupRefused: The kernel refused.
        StateUnusable: The journal cannot be written; the group is gone.
    """
    record = journal.load()
    if path not in record.monitors:
        return
    if "tasks" in names_in(files, path):
        done(files, group_of(path), "remove", path, partial(files.rmdir, path))
    journal.save(record.without_monitor(path))
