"""Settings of the static-plus policy, and which containers get exclusive CPUs."""

from __future__ import annotations

from typing import ClassVar

from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.rules import Rule
from nri_resmgr.policy.static import StaticSettings
from nri_resmgr.values import ONE_CPU


class StaticPlusSettings(StaticSettings, frozen=True):
    """Settings, checked against the machine that they are for.

    Every container gets the whole CPUs of its request exclusively, whatever its QoS
    class, and from isolated CPUs where enough are free. The reserved CPUs are a pool of
    their own.
    """

    shares_reserved: ClassVar[bool] = False
    mixes: ClassVar[bool] = True

    pin_memory: bool = False

    def count_for(self, spec: ContainerSpec) -> int:
        """Return the number of exclusive CPUs that a container asks for."""
        # A part of a pod's budget is an estimate, and may change with each container.
        return 0 if spec.shares_budget else spec.request // ONE_CPU

    def tries_isolated(self, spec: ContainerSpec) -> bool:
        """Return whether a container gets isolated CPUs where enough are free."""
        asked = spec.preferences.isolated
        return self.prefer_isolated if asked is None else asked

    def sharing_rule(self, spec: ContainerSpec) -> Rule:  # noqa: ARG002 - as in the base
        """Return why a container's request is not one for exclusive CPUs."""
        return Rule.NOT_WHOLE_CPUS
