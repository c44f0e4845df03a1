"""What there is before a plan is carried out."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from nri_resmgr.classes.rdt.capabilities import Capabilities
from nri_resmgr.host.resctrl.discovery import whole_of
from nri_resmgr.host.resctrl.files import ResctrlFiles
from nri_resmgr.host.resctrl.groups import Group, survey
from nri_resmgr.host.resctrl.journal import Journal, Record
from nri_resmgr.host.resctrl.report import Options
from nri_resmgr.host.resctrl.schemata import Schemata


class Scene(msgspec.Struct, frozen=True):
    """What there is before anything is done.

    Attributes:
        root: Where resctrl is mounted, for sentences.
        groups: All groups, by folder.
        record: What the journal says of those.
        closids: How many groups there can be, with the root group; 0 if unknown.
        step: The kernel rounds bandwidths up to multiples of this.
        whole: All that a group can have.
        prefix: What the folders of all our groups begin with; groups that do are ours
            whoever made them. Empty: only those of the journal are.
        adopts: Whether groups of others that have the name of a class are ours to
            change.
    """

    root: str
    groups: Mapping[str, Group]
    record: Record
    closids: int = 0
    step: int = 1
    whole: Schemata = {}
    prefix: str = ""
    adopts: bool = False

    @property
    def ours(self) -> frozenset[str]:
        """Return the groups that are ours to remove."""
        named = {
            one for one in self.groups if self.prefix and one.startswith(self.prefix)
        }
        return frozenset(self.record.made | named)


def look(
    files: ResctrlFiles, journal: Journal, can: Capabilities, options: Options
) -> Scene:
    """Read what there is.

    Raises:
        HostError: A file cannot be read or makes no sense.
    """
    groups = survey(files)
    return Scene(
        root=files.root,
        groups=groups,
        record=journal.load().within(groups),
        closids=can.closids,
        step=max(can.bandwidth.granularity, 1) if can.bandwidth else 1,
        whole=whole_of(can),
        prefix=options.prefix,
        adopts=options.adopts,
    )
