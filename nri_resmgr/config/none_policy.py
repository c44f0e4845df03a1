"""The configuration of the policy that pins nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from nri_resmgr.config.policy_config import (
    AGENT,
    CONTROL,
    MEMORY_KEYS,
    PUBLISH,
    SCHEDULING_KEYS,
    PolicyConfig,
    read_agent_use,
    read_control,
    read_memory_use,
    read_publish_use,
    read_scheduling_use,
)
from nri_resmgr.config.table import Table
from nri_resmgr.values import QosClass
from nri_resmgr.values.scheduling import SchedulingClass

_NO_CPUS: Final = "this policy gives no container exclusive CPUs"


class NonePolicyConfig(PolicyConfig, frozen=True):
    """A ``NonePolicy`` document: classes, and nothing about CPUs or memory nodes.

    Attributes:
        scheduling_classes: By name.
        namespace_scheduling: Name of a class, by namespace.
        qos_scheduling: Name of a class, by QoS class.
    """

    kind: ClassVar[str] = "NonePolicy"

    scheduling_classes: Mapping[str, SchedulingClass] = {}
    namespace_scheduling: Mapping[str, str] = {}
    qos_scheduling: Mapping[QosClass, str] = {}


def read_none_policy(top: Table) -> NonePolicyConfig:
    """Read the ``spec`` of a document of this kind."""
    spec = top.table("spec", *SCHEDULING_KEYS, CONTROL, AGENT, *MEMORY_KEYS, PUBLISH)
    return NonePolicyConfig(
        **read_scheduling_use(spec),
        **read_control(spec),
        **read_memory_use(spec),
        **read_agent_use(spec),
        **read_publish_use(spec, no_cpus=_NO_CPUS),
    )
