"""Settings of the podpools policy: the pools with their CPUs."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

import msgspec

from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.matching import is_among
from nri_resmgr.values import CpuSet

RESERVED: Final = "reserved"
"""The built-in pool of the node's own pods."""

DEFAULT: Final = "default"
"""The built-in pool of pods that name none."""


class FillOrder(enum.StrEnum):
    """The order in which instances of a pool get pods."""

    BALANCED = "Balanced"
    """The one with the fewest pods."""

    PACKED = "Packed"
    """The one with the most pods that has room for one more."""

    FIRST_FREE = "FirstFree"
    """The first one that has room."""


class PoolInstance(msgspec.Struct, frozen=True):
    """One instance of a pool.

    Attributes:
        name: Unique, such as ``web[0]``; that of the pool for built-in ones.
        pool: The name of the pool, as annotations name it.
        max_pods: 0 for any number, below 0 for none.
    """

    name: str
    pool: str
    cpus: CpuSet
    max_pods: int = 0
    fill_order: FillOrder = FillOrder.BALANCED

    def has_room_beside(self, pods: int) -> bool:
        """Return whether one more pod may come beside this number of pods."""
        return self.max_pods == 0 or pods < self.max_pods


class PodpoolsSettings(msgspec.Struct, frozen=True):
    """Settings, checked against the machine that they are for.

    Attributes:
        available: Online CPUs that the policy may use, each in an instance.
        instances: By name, in the order of the configuration. `RESERVED` and `DEFAULT`
            are among them. They share no CPUs, except that `DEFAULT` has those of
            `RESERVED` where nothing else is left.
        reserved_namespaces: Shell patterns of namespaces whose containers run in the
            reserved pool.
        publish_resources: Whether containers get a file with their CPUs.
    """

    available: CpuSet
    instances: Mapping[str, PoolInstance]
    reserved_namespaces: tuple[str, ...] = ("kube-system",)
    pin_cpus: bool = True
    pin_memory: bool = True
    publish_resources: bool = True

    def reserves_for(self, spec: ContainerSpec) -> bool:
        """Return whether a container runs in the reserved pool."""
        if spec.preferences.reserved is not None:
            return spec.preferences.reserved
        return is_among(spec.namespace, self.reserved_namespaces)
