"""How the replies of several plugins become one: pure, on messages.

Source:
    nri, pkg/adaptation/result.go; its defects that plugins can notice are kept.
"""

from __future__ import annotations

from nri_resmgr.testing.merge.applying import (
    apply_adjustment,
    apply_resources,
    overlay_resources,
)
from nri_resmgr.testing.merge.creation import CreationMerge
from nri_resmgr.testing.merge.owners import Owners
from nri_resmgr.testing.merge.updates import UpdateMerge

__all__ = [
    "CreationMerge",
    "Owners",
    "UpdateMerge",
    "apply_adjustment",
    "apply_resources",
    "overlay_resources",
]
