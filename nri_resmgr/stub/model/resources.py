"""Linux resources: what cgroups limit, and the names of resource classes.

None is "absent", which leaves a value alone; 0 is present. In what the kubelet asks
for (pod overhead and resources, UpdateContainer) 0 stands for "not specified".
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from nri_resmgr.stub.model.contents import EMPTY


class LinuxMemory(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """Memory controls in bytes; at creation runtimes apply `limit` alone."""

    limit: int | None = None
    reservation: int | None = None
    swap: int | None = None
    kernel: int | None = None
    kernel_tcp: int | None = None
    swappiness: int | None = None
    disable_oom_killer: bool | None = None
    use_hierarchy: bool | None = None


class LinuxCpu(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """CPU controls: `quota` in `period` microseconds, lists as the kernel writes them.

    `cpus` and `mems` have no presence on the wire: "" is "unchanged", never "none".
    """

    shares: int | None = None
    quota: int | None = None
    period: int | None = None
    realtime_runtime: int | None = None
    realtime_period: int | None = None
    cpus: str = ""
    mems: str = ""


class HugepageLimit(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """At most `limit` bytes in pages of `page_size`, spelt as in "2MB"."""

    page_size: str = ""
    limit: int = 0


class DeviceCgroupRule(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """Whether a kind of device may be accessed; None as a number means all."""

    allow: bool = False
    type: str = ""
    major: int | None = None
    minor: int | None = None
    access: str = ""


class Pids(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """The most tasks there may be; -1 is unlimited."""

    limit: int = 0


class LinuxResources(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """Resources of a pod or container; a class name "" clears the class."""

    memory: LinuxMemory | None = None
    cpu: LinuxCpu | None = None
    hugepage_limits: tuple[HugepageLimit, ...] = ()
    blockio_class: str | None = None
    rdt_class: str | None = None
    unified: Mapping[str, str] = EMPTY
    devices: tuple[DeviceCgroupRule, ...] = ()
    pids: Pids | None = None
