"""A resctrl file system to test with, where there is no hardware for one."""

from __future__ import annotations

from nri_resmgr.testing.resctrl.faults import Faults, Killed
from nri_resmgr.testing.resctrl.filesystem import Command, Resctrl
from nri_resmgr.testing.resctrl.hardware import Hardware, Throttle, Ways

__all__ = ["Command", "Faults", "Hardware", "Killed", "Resctrl", "Throttle", "Ways"]
