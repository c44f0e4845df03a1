"""Paths of sysfs and of devices, as on the host."""

from __future__ import annotations

from typing import Final

from nri_resmgr.topology import CoreKind

CPU_ROOT: Final = "/sys/devices/system/cpu"
NODE_ROOT: Final = "/sys/devices/system/node"
DAX_ROOT: Final = "/sys/bus/dax/devices"
ND_ROOT: Final = "/sys/bus/nd/devices"
SST_DEVICE: Final = "/dev/isst_interface"
TIER_ROOT: Final = "/sys/devices/virtual/memory_tiering"

KIND_LISTS: Final = {
    CoreKind.PERFORMANCE: "/sys/devices/cpu_core/cpus",
    CoreKind.EFFICIENT: "/sys/devices/cpu_atom/cpus",
    CoreKind.OTHER: "/sys/devices/cpu_lowpower/cpus",
}
KUBELET_ROOT: Final = "/var/lib/kubelet"
