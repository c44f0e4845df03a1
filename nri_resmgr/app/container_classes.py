"""All kinds of classes that containers are created with."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from nri_resmgr.app.class_setter import ClassSetter, NewContainer
from nri_resmgr.config import PolicyConfig
from nri_resmgr.host.tree import Tree
from nri_resmgr.policy.decision import Decision
from nri_resmgr.stub.adjustment import ContainerAdjustment
from nri_resmgr.stub.runtime_info import RuntimeInfo
from nri_resmgr.stub.update import ContainerUpdate
from nri_resmgr.topology import Machine


class ContainerClasses:
    """Asks the setter of each kind, in order.

    Args:
        config: Which classes there are.
        runtime: To whom adjustments are sent.
        machine: Where the containers are.
        tree: The host; None where there is nothing to look up.
    """

    def __init__(
        self,
        config: PolicyConfig,
        runtime: RuntimeInfo,
        machine: Machine,
        tree: Tree | None,
    ) -> None:
        self._config = config
        self._runtime = runtime
        self._machine = machine
        self._tree = tree

    def check(self, new: NewContainer) -> None:
        """Judge what a container asks for.

        Raises:
            ResmgrError: It asks for what it cannot have.
        """
        for setter in self._setters:
            setter.check(new)

    def judge(self, new: NewContainer, decision: Decision[Any]) -> None:
        """Judge what depends on where a container would be put.

        Raises:
            ResmgrError: There it cannot have what it asks for.
        """
        for setter in self._setters:
            setter.judge(new, decision)

    def add(
        self,
        adjustment: ContainerAdjustment | None,
        new: NewContainer,
        decision: Decision[Any],
    ) -> ContainerAdjustment | None:
        """Add a container's classes to what the runtime is told; None for nothing."""
        told = begun = adjustment or ContainerAdjustment()
        for setter in self._setters:
            told = setter.add(told, new, decision)
        return adjustment if told is begun else told

    def update(
        self, updates: tuple[ContainerUpdate, ...], resized: NewContainer
    ) -> tuple[ContainerUpdate, ...]:
        """Add what follows from the new amounts of one container to all updates."""
        own = ContainerUpdate(resized.container.id)
        told = begun = next(
            (one for one in updates if one.container_id == own.container_id), own
        )
        for setter in self._setters:
            told = setter.update(told, resized)
        if told is begun:
            return updates
        return (told, *(one for one in updates if one is not begun))

    @cached_property
    def _setters(self) -> tuple[ClassSetter, ...]:
        return tuple(self._made())

    def _made(self) -> Iterator[ClassSetter]:
        # Late: until the first container comes there is nothing to set.
        from nri_resmgr.app.scheduling import SchedulingSetter

        yield SchedulingSetter(self._runtime)
