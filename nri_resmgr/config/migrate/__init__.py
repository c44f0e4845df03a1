"""Converts documents of other resource managers to documents of ours.

`sources` finds out what a text is; `cri_rm`, `cmk_pools`, `kubelet` and `annotations`
convert it.
They copy most values without reading them: the result is validated as a whole, by the
readers of our own documents.
"""

from __future__ import annotations

from nri_resmgr.config.migrate.cmk_pools import convert_cmk
from nri_resmgr.config.migrate.sources import convert_text

__all__ = ["convert_cmk", "convert_text"]
