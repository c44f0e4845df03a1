"""Settings of the static-pools policy: the pools with their CPU lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from nri_resmgr.values import CpuSet

SHARED: Final = "shared"
"""The pool of containers that name none; it always exists."""

INFRA: Final = "infra"
"""The pool whose lists are for containers of any socket."""


class CpuList(msgspec.Struct, frozen=True):
    """CPUs that containers get together.

    Attributes:
        text: As in the configuration, and as containers get it in their environment.
        cpus: Those of them that are online; none is not granted.
        socket: The number of their socket; below 0 for several, so that nothing that
            asks for one gets it.
    """

    text: str
    cpus: CpuSet
    socket: int


class StaticPool(msgspec.Struct, frozen=True):
    """CPU lists by name.

    Attributes:
        lists: In the order in which containers get them.
        is_exclusive: Whether each list is for one container.
    """

    name: str
    lists: tuple[CpuList, ...]
    is_exclusive: bool = False

    @property
    def cpus(self) -> CpuSet:
        """The CPUs of all lists."""
        return CpuSet.union(one.cpus for one in self.lists)

    @property
    def text(self) -> str:
        """All lists, as containers get them in their environment."""
        return ",".join(one.text for one in self.lists)


class StaticPoolsSettings(msgspec.Struct, frozen=True):
    """Settings, checked against the machine that they are for.

    Attributes:
        available: The online CPUs of all lists; each is in one list.
        pools: By name, in the order of the configuration. `SHARED` is among them, and
            not exclusive.
        pin_memory: Whether containers get the memory nodes near their CPUs.
        publish_resources: Whether containers get a file with their CPUs.
    """

    available: CpuSet
    pools: Mapping[str, StaticPool]
    pin_memory: bool = False
    publish_resources: bool = True
