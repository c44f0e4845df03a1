"""What puts one kind of class into adjustments; each kind is one of these."""

from __future__ import annotations

from typing import Any

import msgspec

from nri_resmgr.policy.decision import Decision
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.stub.adjustment import ContainerAdjustment
from nri_resmgr.stub.model import Container, Pod
from nri_resmgr.stub.update import ContainerUpdate


class NewContainer(msgspec.Struct, frozen=True):
    """A container that is created, started or resized: as told, and as we read it."""

    pod: Pod
    container: Container
    spec: ContainerSpec


class ClassSetter:
    """Does nothing at each step; override what your kind of class needs."""

    def concerns(self, new: NewContainer) -> bool:  # noqa: ARG002 - for those who override
        """Tell whether any step can do something for a container.

        Asked once for each; no step is called of who says no.
        """
        return True

    def check(self, new: NewContainer) -> None:
        """Judge what a container asks for, before anything is decided for it.

        Raises:
            ResmgrError: It asks for what it cannot have; its creation is refused, and
                nothing has changed.
        """

    def check_placement(self, new: NewContainer, decision: Decision[Any]) -> None:
        """Judge what depends on where a container would be put, before it counts.

        Raises:
            ResmgrError: There it cannot have what it asks for; its creation is
                refused, and nothing has changed.
        """

    def add(
        self,
        adjustment: ContainerAdjustment,
        new: NewContainer,  # noqa: ARG002 - for those who override
        decision: Decision[Any],  # noqa: ARG002 - for those who override
    ) -> ContainerAdjustment:
        """Add the container's class to what the runtime is told. Must not raise."""
        return adjustment

    def start(self, begun: NewContainer, decision: Decision[Any]) -> None:
        """Do what needs the container's cgroup, before its process runs. Be quick.

        Raises:
            ResmgrError: It cannot be done; the container is not started.
        """

    def update(
        self,
        update: ContainerUpdate,
        resized: NewContainer,  # noqa: ARG002 - for those who override
        decision: Decision[Any],  # noqa: ARG002 - for those who override
    ) -> ContainerUpdate:
        """Add what follows from a container's new amounts. Must not raise."""
        return update
