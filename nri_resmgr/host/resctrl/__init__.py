"""Maintains RDT classes as groups of the resctrl file system.

* `control`: what callers use: apply a plan, move threads, count, detect drift, restore.
* `snapshot`: reads the groups before a plan is applied.
* `steps`: computes the changes from a snapshot to a plan, without I/O.
* `apply`, `transaction`: make the changes, journaled; undo them all if one fails.
* `journal`: keeps what has to be undone in the state directory, for the next process.
* `groups`, `schemata`, `discovery`, `counters`: read the file system.
* `threads`: moves threads.
* `files`: the operations on a mounted file system; tests have a simulated one.
* `errors`, `report`: what can fail, and what was done.
"""

from __future__ import annotations

from nri_resmgr.host.resctrl.control import RdtControl
from nri_resmgr.host.resctrl.counters import Count
from nri_resmgr.host.resctrl.files import MountedResctrl, ResctrlFiles
from nri_resmgr.host.resctrl.journal import Journal, TextStore
from nri_resmgr.host.resctrl.report import ResctrlDrift, ResctrlOptions, ResctrlReport

__all__ = [
    "Count",
    "Journal",
    "MountedResctrl",
    "RdtControl",
    "ResctrlDrift",
    "ResctrlFiles",
    "ResctrlOptions",
    "ResctrlReport",
    "TextStore",
]
