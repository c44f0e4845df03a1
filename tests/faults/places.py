"""Places that system calls of a daemon under faults are about."""

from __future__ import annotations

import sysconfig
from pathlib import Path
from typing import Final

from nri_resmgr.host.cgroups.top_tier import TOP_TIER_FILE

ROOT: Final = Path(__file__).parents[2]
PROBES_PORT: Final = 8892  # of liveness and readiness

_LIBRARIES: Final = tuple(
    {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib")}
    | {str(ROOT / "nri_resmgr"), str(ROOT / "nri_proto")}
)


def place_of(path: str, folder: str) -> str:
    """Sort a path, or another object, by what the daemon uses it for."""
    if path.startswith("["):
        name, _, port = path.strip("[]").partition(":")
        return "probes" if port == str(PROBES_PORT) else name
    if found := next((place for part, place in _PARTS if part in path), None):
        return found
    if path.startswith(folder):
        first = path[len(folder) :].lstrip("/")
        places = (place for start, place in _PLACES if first.startswith(start))
        return next(places, "folder")
    if path.startswith(_LIBRARIES) or path.endswith((".py", ".pth")):
        return "import"
    if path.startswith(("anon_inode:", "pipe:", "/dev/")):
        return "internal"
    return "system"


# The library for D-Bus is imported with the first unit that is set.
_PARTS: Final = (
    (f"/{TOP_TIER_FILE}", "top-tier"),
    ("/jeepney", "bus-library"),
    ("/systemd_bus.", "bus-library"),
)

_PLACES: Final = (
    ("state", "state"),
    ("spool", "spool"),
    ("config", "configuration"),
    ("host/sys/fs/cgroup", "cgroups"),
    ("host/sys/fs/resctrl", "resctrl"),
    ("host/proc/stat", "cpu-time"),
    ("host", "host"),
    ("run", "published"),
    ("recording", "recording"),
    ("control.sock", "control"),
    ("nri.sock", "nri"),
    ("log", "log"),
)
