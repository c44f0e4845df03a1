"""Snapshot of resctrl before a plan is applied."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from nri_resmgr.classes.rdt.capabilities import Capabilities
from nri_resmgr.host.resctrl.discovery import whole_of
from nri_resmgr.host.resctrl.files import ResctrlFiles
from nri_resmgr.host.resctrl.groups import ResctrlGroup, survey
from nri_resmgr.host.resctrl.journal import Journal, ResctrlRecord
from nri_resmgr.host.resctrl.report import ResctrlOptions
from nri_resmgr.host.resctrl.schemata import Schemata


class ResctrlSnapshot(msgspec.Struct, frozen=True):
    """The groups before a plan is applied, and what may be changed.

    Attributes:
        record: Journaled changes of these groups.
        closids: Number of possible groups, with the root group; 0 if unknown.
        step: The kernel rounds bandwidths up to multiples of this.
        whole: Schemata with the whole of every resource.
        prefix: All groups with this prefix are ours; empty if only journaled ones are.
    """

    root: str
    groups: Mapping[str, ResctrlGroup]
    record: ResctrlRecord
    closids: int = 0
    step: int = 1
    whole: Schemata = {}
    prefix: str = ""
    adopts: bool = False

    @property
    def ours(self) -> frozenset[str]:
        """Folders of groups that may be removed."""
        named = {
            one for one in self.groups if self.prefix and one.startswith(self.prefix)
        }
        return frozenset(self.record.made | named)


def take_snapshot(
    files: ResctrlFiles, journal: Journal, can: Capabilities, options: ResctrlOptions
) -> ResctrlSnapshot:
    """Read the groups of resctrl and the journal.

    Raises:
        HostError: A file is unreadable or invalid.
    """
    groups = survey(files)
    return ResctrlSnapshot(
        root=files.root,
        groups=groups,
        record=journal.load().within(groups),
        closids=can.closids,
        step=max(can.bandwidth.granularity, 1) if can.bandwidth else 1,
        whole=whole_of(can),
        prefix=options.prefix,
        adopts=options.adopts,
    )
