"""The options that policies with reserved CPUs have in common."""

from __future__ import annotations

from typing import Final

from nri_resmgr.config.cpus import (
    ALWAYS_RESERVED,
    CpuChoice,
    read_cpus,
    read_reserved_namespaces,
)
from nri_resmgr.config.policy_config import PolicyConfig
from nri_resmgr.config.table import Fields, read_flag

PINNED_FIELDS: Final[Fields] = {
    "availableResources": ("available", read_cpus),
    "reservedResources": ("reserved", read_cpus),
    "reserveWholeCores": ("reserve_whole_cores", read_flag),
    "reservedPoolNamespaces": ("reserved_pool_namespaces", read_reserved_namespaces),
    "pinCPU": ("pin_cpu", read_flag),
    "pinMemory": ("pin_memory", read_flag),
    "publishResources": ("publish_resources", read_flag),
}
"""Fields of `PinnedConfig`, and the available CPUs."""


class PinnedConfig(PolicyConfig, frozen=True):
    """A document of a policy that pins containers and reserves CPUs.

    Attributes:
        reserved: CPUs for the node's own containers; None for the lowest one.
        reserve_whole_cores: Whether all threads of their cores are reserved, too.
        reserved_pool_namespaces: Shell patterns of the namespaces whose
            containers run on the reserved CPUs; kube-system is always one.
        pin_cpu: Whether to set CPU sets of containers.
        pin_memory: Whether to set their memory nodes.
        publish_resources: Whether containers get a file with their CPUs.
    """

    reserved: CpuChoice | None = None
    reserve_whole_cores: bool = False
    reserved_pool_namespaces: tuple[str, ...] = (ALWAYS_RESERVED,)
    pin_cpu: bool = True
    pin_memory: bool = True
    publish_resources: bool = True
