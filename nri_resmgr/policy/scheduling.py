"""The choice of a container's scheduling class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.values import QosClass
from nri_resmgr.values.scheduling import (
    IoClass,
    SchedulingClass,
    SchedulingFlag,
    SchedulingPolicy,
)

__all__ = [
    "IoClass",
    "SchedulingClass",
    "SchedulingFlag",
    "SchedulingPolicy",
    "SchedulingRules",
    "scheduling_of",
]


class SchedulingRules(Protocol):
    """The scheduling classes in a policy's settings."""

    @property
    def scheduling_classes(self) -> Mapping[str, SchedulingClass]:
        """All classes, by name."""

    @property
    def namespace_scheduling(self) -> Mapping[str, str]:
        """Name of a class, by namespace."""

    @property
    def qos_scheduling(self) -> Mapping[QosClass, str]:
        """Name of a class, by QoS class."""


def scheduling_of(
    spec: ContainerSpec, rules: SchedulingRules
) -> SchedulingClass | None:
    """Choose a container's class: by annotation, by namespace, or by QoS class.

    Returns:
        None if no class is named, or the name is unknown.
    """
    return rules.scheduling_classes.get(_name(spec, rules))


def _name(spec: ContainerSpec, rules: SchedulingRules) -> str:
    # An annotation with an unknown class does not fall back to another one: that would
    # hide the mistake.
    return (
        spec.preferences.scheduling_class
        or rules.namespace_scheduling.get(spec.namespace)
        or rules.qos_scheduling.get(spec.qos, "")
    )
