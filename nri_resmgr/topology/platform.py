"""Devices, resctrl, uncore frequency domains and cgroup layout of a machine."""

from __future__ import annotations

import enum

from nri_resmgr.values import CpuSet, KiloHertz, StoredValue


class DeviceKind(enum.StrEnum):
    """The class of a device."""

    PCI = "pci"
    BLOCK = "block"
    NET = "net"


class Device(StoredValue, frozen=True):
    """A hardware device; virtual devices are not listed.

    Attributes:
        name: The kernel's name, ``0000:3b:00.0``, ``nvme0n1`` or ``eth0``.
        path: Its real path in sysfs.
        node: The node it is attached to; None where the kernel does not know.
        cpus: The online CPUs near it; all of them if the kernel does not know.
    """

    kind: DeviceKind
    name: str
    path: str
    node: int | None
    cpus: CpuSet


class Uncore(StoredValue, frozen=True):
    """One uncore frequency domain and the hardware's limits for it at boot.

    Attributes:
        name: The name of its folder in sysfs, where limits are written.
        die: Its die; None where the domain is not a die.
        domain: Its number in the package; None on machines without domains.
    """

    name: str
    package: int
    die: int | None
    domain: int | None
    min: KiloHertz | None
    max: KiloHertz | None


class RdtResource(StoredValue, frozen=True):
    """One resource that resctrl can partition.

    Attributes:
        name: resctrl's name, such as ``L3``, ``L2CODE`` or ``MB``.
        closids: Number of classes of the hardware, including that of the root group.
        mask: All bits of a cache mask; 0 for bandwidth.
        min_bits: Fewest bits in a mask; 0 for bandwidth.
        min_percent: Lowest bandwidth; 0 for caches.
        step_percent: Step of bandwidth; 0 for caches.
    """

    name: str
    closids: int
    mask: int = 0
    min_bits: int = 0
    sparse: bool = False
    min_percent: int = 0
    step_percent: int = 0


class Rdt(StoredValue, frozen=True):
    """Capabilities of resctrl.

    Attributes:
        mount: Its mount point.
        options: Its mount options, such as ``cdp`` or ``mba_MBps``.
        resources: Resources that can be partitioned, by name.
        rmids: Number of groups that can be monitored at once; 0 without monitoring.
        features: Events that can be monitored.
    """

    mount: str
    options: tuple[str, ...] = ()
    resources: tuple[RdtResource, ...] = ()
    rmids: int = 0
    features: tuple[str, ...] = ()


class CgroupLayout(enum.StrEnum):
    """Layout of cgroups; hybrid is version 1 with an empty version 2."""

    V1 = "v1"
    HYBRID = "hybrid"
    V2 = "v2"
