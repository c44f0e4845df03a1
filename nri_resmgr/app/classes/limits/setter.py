"""Setter of adjusted CPU and memory limits."""

from __future__ import annotations

from nri_resmgr.app.classes.limits.values import (
    LimitHost,
    adjusted_limits,
    with_limits,
)
from nri_resmgr.app.classes.setter import ClassSetter, NewContainer
from nri_resmgr.app.observers.observer import PolicyDecision
from nri_resmgr.stub.adjustment import ContainerAdjustment
from nri_resmgr.stub.update import ContainerUpdate


class LimitSetter(ClassSetter):
    """Puts adjusted limits into adjustments and updates."""

    def __init__(self, host: LimitHost) -> None:
        self._host = host

    def concerns(self, new: NewContainer) -> bool:
        """Return whether an adjustment changes the container's limits."""
        return bool(adjusted_limits(new.spec))

    def add(
        self,
        adjustment: ContainerAdjustment,
        new: NewContainer,
        decision: PolicyDecision,  # noqa: ARG002 - its shares are in the adjustment
    ) -> ContainerAdjustment:
        """Add the limits of a new container."""
        limits = self._host.applied[new.spec.id] = adjusted_limits(new.spec)
        return with_limits(adjustment, limits)

    def update(
        self,
        update: ContainerUpdate,
        new: NewContainer,
        decision: PolicyDecision,  # noqa: ARG002 - its shares are in the update
    ) -> ContainerUpdate:
        """Add the limits of a resized container over those of the request."""
        limits = self._host.applied[new.spec.id] = adjusted_limits(new.spec)
        return with_limits(update, limits)
