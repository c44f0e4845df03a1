"""Linux resources: what cgroups limit, and the names of resource classes.

None is "absent", which leaves a value alone; 0 is present. In what the kubelet asks
for (pod overhead and resources, UpdateContainer) 0 stands for "not specified".
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from nri_resmgr.stub.model.frozen import EMPTY, Value, as_text_map, as_tuple
from nri_resmgr.values.declared import frozen


@frozen
class LinuxMemory(Value):
    """Memory controls in bytes; at creation runtimes apply `limit` alone."""

    limit: int | None = None
    reservation: int | None = None
    swap: int | None = None
    kernel: int | None = None
    kernel_tcp: int | None = None
    swappiness: int | None = None
    disable_oom_killer: bool | None = None
    use_hierarchy: bool | None = None


@frozen
class LinuxCpu(Value):
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


@frozen
class HugepageLimit(Value):
    """At most `limit` bytes in pages of `page_size`, spelt as in "2MB"."""

    page_size: str = ""
    limit: int = 0


@frozen
class DeviceCgroupRule(Value):
    """Whether a kind of device may be accessed; None as a number means all."""

    allow: bool = False
    type: str = ""
    major: int | None = None
    minor: int | None = None
    access: str = ""


@frozen
class Pids(Value):
    """The most tasks there may be; -1 is unlimited."""

    limit: int = 0


@frozen
class LinuxResources(Value):
    """Resources of a pod or container; a class name "" clears the class."""

    memory: LinuxMemory | None = None
    cpu: LinuxCpu | None = None
    hugepage_limits: tuple[HugepageLimit, ...] = attrs.field(
        default=(), converter=as_tuple
    )
    blockio_class: str | None = None
    rdt_class: str | None = None
    unified: Mapping[str, str] = attrs.field(default=EMPTY, converter=as_text_map)
    devices: tuple[DeviceCgroupRule, ...] = attrs.field(default=(), converter=as_tuple)
    pids: Pids | None = None
