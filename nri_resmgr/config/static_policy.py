"""The configuration of the static policy."""

from __future__ import annotations

from typing import ClassVar, Final

from nri_resmgr.config.pinned import PINNED_FIELDS, PinnedConfig
from nri_resmgr.config.policy_config import (
    AGENT,
    CONTROL,
    MEMORY_KEYS,
    PLACE_PODS,
    PUBLISH,
    read_agent_use,
    read_control,
    read_exclusivity,
    read_memory_use,
    read_publish_use,
)
from nri_resmgr.config.table import Fields, Table, read_choice, read_fields, read_flag

COMMON_FIELDS: Final[Fields] = {
    **PINNED_FIELDS,
    "preferIsolatedCPUs": ("prefer_isolated_cpus", read_flag),
    "onFailure": ("on_failure", read_choice("refuse", "shared")),
    "exclusivity": ("exclusivity", read_exclusivity),
    **PLACE_PODS,
}
"""Fields of `CommonStaticConfig`."""

_FIELDS: Final[Fields] = {
    **COMMON_FIELDS,
    "relaxedIsolation": ("relaxed_isolation", read_flag),
    "borrowIsolatedCPUs": ("borrow_isolated_cpus", read_flag),
}


class CommonStaticConfig(PinnedConfig, frozen=True):
    """A document of the static or the static-plus policy: their common options.

    Attributes:
        prefer_isolated_cpus: Whether exclusive CPUs are isolated ones where enough
            are free; in the static policy only for containers that request one.
        on_failure: ``refuse`` or ``shared``: what happens to a container whose
            exclusive CPUs cannot be allocated.
        place_pods: ``off``, ``soft`` or ``strict``: whether exclusive CPUs are reserved
            for all containers of a pod when it is created.
    """

    prefer_isolated_cpus: bool = True
    on_failure: str = "refuse"
    place_pods: str = "off"


class StaticPolicyConfig(CommonStaticConfig, frozen=True):
    """A ``StaticPolicy`` document; the defaults are safe on every machine.

    Attributes:
        relaxed_isolation: Whether containers that request several CPUs get isolated
            ones, too.
        borrow_isolated_cpus: Whether isolated CPUs complete grants for which too few
            ordinary ones are free.
    """

    kind: ClassVar[str] = "StaticPolicy"

    relaxed_isolation: bool = False
    borrow_isolated_cpus: bool = False


def read_static_policy(top: Table) -> StaticPolicyConfig:
    """Read the ``spec`` of a document of this kind."""
    spec = top.table("spec", *_FIELDS, CONTROL, AGENT, *MEMORY_KEYS, PUBLISH)
    return StaticPolicyConfig(
        **read_fields(spec, _FIELDS, StaticPolicyConfig()),
        **read_control(spec),
        **read_memory_use(spec),
        **read_agent_use(spec),
        **read_publish_use(spec),
    )
