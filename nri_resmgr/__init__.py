"""Node resource manager for Kubernetes, an NRI plugin of containerd and CRI-O."""

import gc

from nri_resmgr.lazy import UNTOUCHED, import_when_touched

# This imports asyncio and attrs, and nothing that imports make is garbage: looking
# for some takes 10 million instructions.
_collects = gc.isenabled()
gc.disable()
import_when_touched(UNTOUCHED)
if _collects:
    gc.enable()
