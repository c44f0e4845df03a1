"""The configuration of the static-plus policy."""

from __future__ import annotations

from typing import ClassVar

from nri_resmgr.config.policy_config import (
    AGENT,
    CONTROL,
    MEMORY_KEYS,
    PUBLISH,
    read_agent_use,
    read_control,
    read_memory_use,
    read_publish_use,
)
from nri_resmgr.config.static_policy import COMMON_FIELDS, CommonStaticConfig
from nri_resmgr.config.table import Table, read_fields


class StaticPlusPolicyConfig(CommonStaticConfig, frozen=True):
    """A ``StaticPlusPolicy`` document; the defaults are CRI-RM's."""

    kind: ClassVar[str] = "StaticPlusPolicy"

    pin_memory: bool = False


def read_static_plus_policy(top: Table) -> StaticPlusPolicyConfig:
    """Read the ``spec`` of a document of this kind."""
    spec = top.table("spec", *COMMON_FIELDS, CONTROL, AGENT, *MEMORY_KEYS, PUBLISH)
    return StaticPlusPolicyConfig(
        **read_fields(spec, COMMON_FIELDS, StaticPlusPolicyConfig()),
        **read_control(spec),
        **read_memory_use(spec),
        **read_agent_use(spec),
        **read_publish_use(spec),
    )
