"""Node resource manager for Kubernetes, an NRI plugin of containerd and CRI-O."""

from nri_resmgr.lazy import UNTOUCHED, import_when_touched

import_when_touched(UNTOUCHED)
