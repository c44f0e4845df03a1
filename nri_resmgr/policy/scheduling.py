"""The scheduling class of a container, where the document sets them."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.values import QosClass
from nri_resmgr.values.scheduling import SchedulingClass


class SchedulingRules(msgspec.Struct, frozen=True):
    """The scheduling classes of a document, and the containers that get them.

    Attributes:
        classes: By name.
        by_namespace: Name of a class, by namespace.
        by_qos: Name of a class, by QoS class.
    """

    classes: Mapping[str, SchedulingClass] = {}
    by_namespace: Mapping[str, str] = {}
    by_qos: Mapping[QosClass, str] = {}

    def of(self, spec: ContainerSpec) -> SchedulingClass | None:
        """Choose a class, if any: by annotation, by namespace, or by QoS class."""
        # An annotation with an unknown class does not fall back to another one: that
        # would hide the mistake.
        name = (
            spec.preferences.scheduling_class
            or self.by_namespace.get(spec.namespace)
            or self.by_qos.get(spec.qos, "")
        )
        return self.classes.get(name)
