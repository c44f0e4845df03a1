"""The resctrl file system: RDT classes made, changed, watched, and taken away again."""

from __future__ import annotations

from nri_resmgr.host.resctrl.control import RdtControl
from nri_resmgr.host.resctrl.counters import Count
from nri_resmgr.host.resctrl.files import HostFiles, ResctrlFiles
from nri_resmgr.host.resctrl.journal import Journal, Keeper
from nri_resmgr.host.resctrl.report import Drift, Options, Report
from nri_resmgr.host.resctrl.threads import threads_of

__all__ = [
    "Count",
    "Drift",
    "HostFiles",
    "Journal",
    "Keeper",
    "Options",
    "RdtControl",
    "Report",
    "ResctrlFiles",
    "threads_of",
]
