"""The table of the parts that the supervisor keeps running."""

from __future__ import annotations

from nri_resmgr.daemon.services import SERVICES
from tests.docs.markdown import code, escaped, table


def parts(_: str) -> str:
    """Write all parts, with what holds while they fail."""
    rows = (
        (code(one.name), escaped(one.meanwhile), "yes" if one.is_essential else "")
        for one in SERVICES
    )
    return table(("part", "while it fails", "essential"), rows)
