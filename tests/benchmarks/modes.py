"""Ways in which running containers get their CPUs, one column of a table each."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Final

import attrs

from tests.real_host.documents import STATIC

# Linux 6.7 added cpuset.cpus.exclusive, by which a container can be a partition.
_FIRST_WITH_PARTITIONS: Final = (6, 7)
_PARTITION: Final = """\
apiVersion: config.nri/v1alpha1
kind: StaticPolicy
spec: {exclusivity: partition}
"""


@attrs.frozen
class Mode:
    """One way.

    Attributes:
        name: Of the column.
        flags: For ``nri-resmgr run``; None for no plugin.
        document: Configuration of the plugin.
    """

    name: str
    flags: tuple[str, ...] | None
    document: str = STATIC


def _has_partitions() -> bool:
    """Return whether the kernel of this machine has them.

    Source:
        Linux, Documentation/admin-guide/cgroup-v2.rst, "Cpuset Interface Files".
    """
    controllers = Path("/sys/fs/cgroup/cgroup.controllers")
    major, minor, *_ = platform.release().split(".")
    return (
        (int(major), int(minor)) >= _FIRST_WITH_PARTITIONS
        and controllers.exists()
        and "cpuset" in controllers.read_text().split()
    )


NO_PLUGIN: Final = Mode("no plugin", None)
_WRITES: Final = ("--apply-updates=cgroup",)
PLUGIN_MODES: Final = (
    Mode("by runtime", ("--apply-updates=runtime",)),
    Mode("by cgroup", _WRITES),
    *([Mode("by partition", _WRITES, _PARTITION)] if _has_partitions() else []),
)
