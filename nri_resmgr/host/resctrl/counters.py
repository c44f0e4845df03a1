"""Reads the cache occupancy and memory traffic of groups."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from nri_resmgr.host.resctrl.files import ResctrlFiles
from nri_resmgr.host.resctrl.groups import names_in, path_in

OCCUPANCY: Final = "llc_occupancy"
LOCAL: Final = "mbm_local_bytes"
TOTAL: Final = "mbm_total_bytes"

_DOMAIN: Final = re.compile(r"mon_L3_(\d+)", re.ASCII)


class Count(msgspec.Struct, frozen=True):
    """Counters of one group for one cache; None where unavailable now.

    A group's counters include those of its monitoring groups.

    Attributes:
        group: Folder of the class; empty for the root group.
        monitor: Name of a monitoring group in it; empty for the class itself.
        cache: Id of the L3 cache; with sub-NUMA clusters one for all of them.
        occupancy: Bytes in the cache.
        local: Total bytes transferred to and from memory of the cache's node; starts at
            0 with a new group.
        total: Total bytes transferred to and from all memory.
    """

    group: str
    monitor: str
    cache: int
    occupancy: int | None = None
    local: int | None = None
    total: int | None = None


def counts_of(files: ResctrlFiles, group: str, monitor: str = "") -> Iterator[Count]:
    """Yield the counters of a group, or of a monitoring group of it, for each cache.

    Caches without available counters are skipped: freed counters are unavailable for a
    while, and there may be fewer counters than groups.

    Raises:
        UnreadableHostFile: The folder cannot be read.
    """
    folder = path_in(group, f"mon_groups/{monitor}") if monitor else group
    data = path_in(folder, "mon_data")
    for name in names_in(files, data):
        # Other folders count energy.
        if match := _DOMAIN.fullmatch(name):
            at = f"{data}/{name}"
            values = [_number(files, f"{at}/{x}") for x in (OCCUPANCY, LOCAL, TOTAL)]
            if any(value is not None for value in values):
                yield Count(group, monitor, int(match[1]), *values)


def _number(files: ResctrlFiles, path: str) -> int | None:
    """Read a counter; None for a word in its place, or an error.

    Source:
        Linux resctrl.rst, "mon_data": Unavailable, Unassigned, Error.
    """
    try:
        text = files.read(path).strip()
    except OSError:
        return None
    return int(text) if text.isascii() and text.isdigit() else None
