"""Which names and indices a runtime lets register."""

from __future__ import annotations

import re
from typing import Final

from nri_proto import NriLevel
from nri_proto.levels import DEDICATED_CALLS
from nri_resmgr.testing.errors import IdentityRejected

# Source: nri, pkg/api/plugin.go; the name rule came with level 0.12.
_INDEX: Final = re.compile(r"[0-9][0-9]")
_NAME: Final = re.compile(r"[A-Za-z0-9_.+-]+")


def check_identity(index: str, name: str, level: NriLevel) -> None:
    """Check what an external plugin registers as.

    Raises:
        IdentityRejected: The runtime refuses it.
    """
    is_strict = level >= DEDICATED_CALLS
    if not (_NAME.fullmatch(name) if is_strict else name):
        raise IdentityRejected(name, f"invalid plugin name: {name!r}")
    if _INDEX.fullmatch(index) is None:
        raise IdentityRejected(name, f"invalid plugin index: {index!r}")
