"""A simulated resctrl file system, for tests without RDT hardware.

* `filesystem.Resctrl`: the file system in memory; records commands, moves threads.
* `hardware`: what the simulated CPU can allocate and count.
* `state`, `lines`, `listing`: groups, schemata files and folders by the kernel's rules.
* `faults`: lets operations fail, or ends the program, at a chosen step.
"""

from __future__ import annotations

from nri_resmgr.testing.resctrl.faults import Faults, Killed
from nri_resmgr.testing.resctrl.filesystem import Operation, Resctrl
from nri_resmgr.testing.resctrl.hardware import Hardware, Throttle, Ways

__all__ = ["Faults", "Hardware", "Killed", "Operation", "Resctrl", "Throttle", "Ways"]
