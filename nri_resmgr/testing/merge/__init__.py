"""Merges the replies of several plugins as NRI's adaptation does, without I/O.

* `creation`, `updates`: merge the replies to one request.
* `owners`, `resources`, `keyed`: which plugin has set which field, and its merging.
* `releases`: differences of older releases of NRI.
* `applying`: applies the merged reply to the container, as runtimes do.

Source:
    nri, pkg/adaptation/result.go; its defects that plugins can observe are simulated.
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
