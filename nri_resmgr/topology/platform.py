"""What the platform offers beside CPUs and memory: devices, resctrl, uncore."""

from __future__ import annotations

import enum

import msgspec

from nri_resmgr.values import CpuSet, KiloHertz


class DeviceKind(enum.StrEnum):
    """The class of a device."""

    PCI = "pci"
    BLOCK = "block"
    NET = "net"


class Device(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True
):
    """A device of hardware, virtual ones are not listed.

    Attributes:
        kind: Its class.
        name: The kernel's name, ``0000:3b:00.0``, ``nvme0n1`` or ``eth0``.
        path: Its real path in sysfs.
        node: The node it is attached to; None where the kernel does not know.
        cpus: The online CPUs near it; all of them where nobody knows.
    """

    kind: DeviceKind
    name: str
    path: str
    node: int | None
    cpus: CpuSet


class Uncore(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True
):
    """One uncore frequency domain and the hardware's limits for it.

    Attributes:
        name: The kernel's folder, the key for writing.
        package: Its package.
        die: Its die; None where the domain is not a die.
        domain: Its number in the package; None on machines without domains.
        min: Lowest frequency at boot.
        max: Highest frequency at boot.
    """

    name: str
    package: int
    die: int | None
    domain: int | None
    min: KiloHertz | None
    max: KiloHertz | None


class RdtResource(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True
):
    """One resource that resctrl can divide.

    Attributes:
        name: resctrl's word, such as ``L3``, ``L2CODE`` or ``MB``.
        closids: Classes that the hardware knows for it, the root's included.
        mask: All bits of a cache mask; 0 for bandwidth.
        min_bits: Fewest bits in a mask; 0 for bandwidth.
        sparse: Whether masks may have holes.
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


class Rdt(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What resctrl offers.

    Attributes:
        mount: Where it is mounted.
        options: Its mount options, such as ``cdp`` or ``mba_MBps``.
        resources: What can be divided, by name.
        rmids: Groups that can be monitored at once; 0 without monitoring.
        features: Events that can be monitored.
    """

    mount: str
    options: tuple[str, ...] = ()
    resources: tuple[RdtResource, ...] = ()
    rmids: int = 0
    features: tuple[str, ...] = ()


class CgroupLayout(enum.StrEnum):
    """How cgroups are mounted; hybrid is version 1 with an empty version 2."""

    V1 = "v1"
    HYBRID = "hybrid"
    V2 = "v2"
