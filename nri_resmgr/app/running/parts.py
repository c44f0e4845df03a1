"""Parts of a delivery by cgroups."""

from __future__ import annotations

from typing import Final

import msgspec

from nri_resmgr.app.running.partitions import Partitions
from nri_resmgr.app.running.units import UnitProperties
from nri_resmgr.host.cgroups.cpuset_watch import CpusetWatch


class DeliveryTimes(msgspec.Struct, frozen=True):
    """Intervals at which `ByCgroup` looks again; all in seconds.

    Attributes:
        check_after: After a write until it is compared: an update of the runtime that
            was on its way may have overwritten it.
        retry_after: After a failed write until a container's cgroup is tried again.
    """

    check_after: float = 1.0
    retry_after: float = 60.0


DELIVERY_TIMES: Final = DeliveryTimes()
"""Those of a daemon."""


class DeliveryParts(msgspec.Struct, frozen=True):
    """Parts of the delivery beside the files of containers' cgroups.

    Attributes:
        partitions: Those of the kernel, which may be none on this host.
        units: None where containers have no systemd units with these values.
        watch: Notices what other programs write; None to leave that to verification.
    """

    partitions: Partitions
    units: UnitProperties | None = None
    watch: CpusetWatch | None = None
