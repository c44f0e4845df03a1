"""The installed version of nri-resmgr."""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path
from typing import Final

# Source: Core metadata specifications, "Version".
_VERSION: Final = re.compile(r"^Version: *(\S+)$", re.MULTILINE)


def version_in(folder: Path) -> str:
    """Return the version in an installer's metadata in *folder*; empty without any."""
    for metadata in folder.glob("nri_resmgr-*.dist-info/METADATA"):
        if found := _VERSION.search(metadata.read_text(encoding="utf-8")):
            return found[1]
    return ""


@cache
def our_version() -> str:
    """Return the installed version; empty in a checkout without installation."""
    # Not importlib.metadata, which imports zipfile and email: 3 MiB and 10 ms. It reads
    # the same files; those of an editable installation are not beside the package.
    folders = (Path(__file__).parents[1], *map(Path, sys.path))
    return next(filter(None, map(version_in, folders)), "")
