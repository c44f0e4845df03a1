"""Knobs of a host whose files are in a folder."""

from __future__ import annotations

from pathlib import Path

from nri_resmgr.host.boot_journal import boot_of
from nri_resmgr.host.knobs.files import WritableHostTree
from nri_resmgr.host.knobs.journal import KnobJournal
from nri_resmgr.host.knobs.knobs import Knobs
from nri_resmgr.host.state_dir import StateDir


def knobs_on_disk(root: Path, state: StateDir) -> Knobs:
    """Begin as a process does that knows of an earlier one by its journal only."""
    files = WritableHostTree(root)
    return Knobs(files, KnobJournal(state, boot_of(files)))
