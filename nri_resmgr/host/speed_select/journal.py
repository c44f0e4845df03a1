"""Keeps the original settings of Speed Select for the next process."""

from __future__ import annotations

from typing import Final

from nri_resmgr.host.boot_journal import BootJournal
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.topology.speed_select import Punit

NAME: Final = "speed-select-changes"


class SstJournal(BootJournal[tuple[Punit, ...]]):
    """Original settings of punits."""

    name = NAME
    title = "nri-resmgr Speed Select changes"
    key = "punits"
    kind = tuple[Punit, ...]

    def __init__(self, state: StateDir, boot: str) -> None:
        super().__init__(state, boot, ())

    def check(self, originals: tuple[Punit, ...]) -> None:
        """See `BootJournal.check`: ids of punits are not negative."""
        if any(min(punit.package, punit.id) < 0 for punit in originals):
            raise ValueError(originals)
