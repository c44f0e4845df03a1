"""The configuration of the static policy."""

from __future__ import annotations

from typing import ClassVar, Final

from nri_resmgr.config.cpus import CpuChoice, read_cpus
from nri_resmgr.config.policy_config import (
    CONTROL,
    MEMORY_KEYS,
    PolicyConfig,
    ineffective_of_memory,
    read_control,
    read_memory_use,
)
from nri_resmgr.config.table import Table

# Always reserved: its containers belong to the node itself.
_ALWAYS_RESERVED: Final = "kube-system"


class StaticPolicyConfig(PolicyConfig, frozen=True):
    """A ``StaticPolicy`` document; the defaults are safe on every machine.

    Attributes:
        available: CPUs that may be used; None for all that are online.
        reserved: CPUs that are never exclusive; None for the lowest one.
        reserved_pool_namespaces: Shell patterns of the namespaces whose
            containers run on the reserved CPUs; kube-system is always one.
        pin_cpu: Whether to set CPU sets of containers.
        pin_memory: Whether to set their memory nodes.
        prefer_isolated_cpus: Whether containers that request one CPU get
            isolated ones.
        on_failure: ``refuse`` or ``shared``: what happens to a container whose
            exclusive CPUs cannot be allocated.
    """

    kind: ClassVar[str] = "StaticPolicy"

    available: CpuChoice | None = None
    reserved: CpuChoice | None = None
    reserved_pool_namespaces: tuple[str, ...] = (_ALWAYS_RESERVED,)
    pin_cpu: bool = True
    pin_memory: bool = True
    prefer_isolated_cpus: bool = True
    on_failure: str = "refuse"


def read_static_policy(top: Table) -> StaticPolicyConfig:
    """Read the ``spec`` of a document of this kind.

    Raises:
        BadSetting: The first error; its ``path`` is its place.
    """
    spec = top.table(
        "spec",
        "availableResources",
        "reservedResources",
        "reservedPoolNamespaces",
        "pinCPU",
        "pinMemory",
        "preferIsolatedCPUs",
        "onFailure",
        CONTROL,
        *MEMORY_KEYS,
    )
    default = StaticPolicyConfig()  # the built-in defaults, in one place only
    namespaces = spec.texts("reservedPoolNamespaces", ())
    return StaticPolicyConfig(
        available=read_cpus(spec.table("availableResources", "cpu")),
        reserved=read_cpus(spec.table("reservedResources", "cpu")),
        reserved_pool_namespaces=tuple(dict.fromkeys((_ALWAYS_RESERVED, *namespaces))),
        pin_cpu=spec.flag("pinCPU", default=default.pin_cpu),
        pin_memory=spec.flag("pinMemory", default=default.pin_memory),
        prefer_isolated_cpus=spec.flag(
            "preferIsolatedCPUs", default=default.prefer_isolated_cpus
        ),
        on_failure=spec.choice("onFailure", ("refuse", "shared"), default.on_failure),
        ineffective=ineffective_of_memory(spec),
        **read_control(spec),
        **read_memory_use(spec),
    )
