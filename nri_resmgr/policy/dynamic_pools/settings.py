"""Settings of the dynamic-pools policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from nri_resmgr.policy.cpus import CpuPriority
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.matching import is_among
from nri_resmgr.values import CpuSet

RESERVED: Final = "reserved"
"""The built-in pool of the node's own containers, which is never resized."""

SHARED: Final = "shared"
"""The built-in pool of containers that no other pool is for."""


class DynamicPool(msgspec.Struct, frozen=True):
    """A pool.

    Attributes:
        namespaces: Shell patterns of the namespaces whose containers run in it.
        cpu_class: The class of its CPUs; empty to leave them unchanged.
        priority: The priority of the CPUs that it takes first.
    """

    name: str
    namespaces: tuple[str, ...] = ()
    cpu_class: str = ""
    priority: CpuPriority = CpuPriority.NORMAL


class DynamicPoolsSettings(msgspec.Struct, frozen=True):
    """Settings, checked against the machine that they are for.

    Attributes:
        available: Online CPUs that the policy may use, each in a pool.
        reserved: Those of the reserved pool.
        pools: By name, in the order of the configuration. `RESERVED` and `SHARED` are
            among them.
        reserved_namespaces: Shell patterns of namespaces whose containers run in the
            reserved pool.
        publish_resources: Whether containers get a file with their CPUs.
    """

    available: CpuSet
    reserved: CpuSet
    pools: Mapping[str, DynamicPool]
    reserved_namespaces: tuple[str, ...] = ("kube-system",)
    pin_cpus: bool = True
    pin_memory: bool = True
    publish_resources: bool = True

    @property
    def free(self) -> CpuSet:
        """The CPUs of all pools but the reserved one; its only CPU if none is left."""
        return self.available - self.reserved or self.reserved

    def reserves_for(self, spec: ContainerSpec) -> bool:
        """Return whether a container runs in the reserved pool by default."""
        if spec.preferences.reserved is not None:
            return spec.preferences.reserved
        return is_among(spec.namespace, self.reserved_namespaces)

    def pool_for(self, namespace: str) -> str:
        """Return the pool of a namespace, the first one that matches; or `SHARED`."""
        for pool in self.pools.values():
            if is_among(namespace, pool.namespaces):
                return pool.name
        return SHARED
