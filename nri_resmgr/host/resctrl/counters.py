"""How much cache and bandwidth groups use, as the hardware counts it."""

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
    """What one group uses of one cache; None stands for what is not told now.

    A group's numbers include those of its monitoring groups.

    Attributes:
        group: Folder of the class; the root group's is empty.
        monitor: Name of a monitoring group in it; empty for the class itself.
        cache: Id of the L3 cache. With sub-NUMA clusters it stands for all of them.
        occupancy: Bytes in the cache.
        local: Bytes moved so far between it and memory of its own node. Starts anew
            with a new group.
        total: Bytes moved so far.
    """

    group: str
    monitor: str
    cache: int
    occupancy: int | None = None
    local: int | None = None
    total: int | None = None


def counts_of(files: ResctrlFiles, group: str, monitor: str = "") -> Iterator[Count]:
    """Yield what a group, or a monitoring group of it, uses of each cache.

    Caches of which nothing is told now are passed over: freed counters settle for a
    while, and there may be fewer counters than groups.

    Raises:
        UnreadableHostFile: The kernel does not let us see the folder.
    """
    folder = path_in(group, f"mon_groups/{monitor}") if monitor else group
    data = path_in(folder, "mon_data")
    for name in names_in(files, data):
        # Other folders count energy; none of ours.
        if match := _DOMAIN.fullmatch(name):
            at = f"{data}/{name}"
            values = [_number(files, f"{at}/{x}") for x in (OCCUPANCY, LOCAL, TOTAL)]
            if any(value is not None for value in values):
                yield Count(group, monitor, int(match[1]), *values)


def _number(files: ResctrlFiles, path: str) -> int | None:
    """Read a counter; a word in its place, or an error, is no sample.

    Source:
        Linux resctrl.rst, "mon_data": Unavailable, Unassigned, Error.
    """
    try:
        text = files.read(path).strip()
    except OSError:
        return None
    return int(text) if text.isascii() and text.isdigit() else None
