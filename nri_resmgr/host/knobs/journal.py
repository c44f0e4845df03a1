"""Keeps the original values of changed host files for the next process."""

from __future__ import annotations

from typing import Final

from nri_resmgr.host.boot_journal import BootJournal
from nri_resmgr.host.knobs.files import is_knob
from nri_resmgr.host.state_dir import StateDir

NAME: Final = "host-changes"


class KnobJournal(BootJournal[dict[str, str]]):
    """Original values by path."""

    name = NAME
    title = "nri-resmgr host changes"
    key = "originals"
    kind = dict[str, str]

    def __init__(self, state: StateDir, boot: str) -> None:
        super().__init__(state, boot, {})

    def check(self, originals: dict[str, str]) -> None:
        """See `BootJournal.check`: no path may lead out of sysfs and procfs."""
        if bad := [path for path in originals if not is_knob(path)]:
            raise ValueError(bad)
