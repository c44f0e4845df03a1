"""All kinds of classes that containers are created with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import msgspec

from nri_resmgr.app.classes.hosts import ClassHosts
from nri_resmgr.app.classes.isolation import IsolationSetter
from nri_resmgr.app.classes.memory.setter import MemorySetter
from nri_resmgr.app.classes.scheduling import SchedulingSetter
from nri_resmgr.app.classes.setter import ClassSetter, NewContainer
from nri_resmgr.config import PolicyConfig
from nri_resmgr.host.tree import Tree
from nri_resmgr.policy.decision import Decision
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.views import ViewedPolicy
from nri_resmgr.stub.adjustment import ContainerAdjustment
from nri_resmgr.stub.model import Container, Pod
from nri_resmgr.stub.runtime_info import RuntimeInfo
from nri_resmgr.stub.update import ContainerUpdate
from nri_resmgr.topology import Machine


class ClassContext(msgspec.Struct, frozen=True):
    """What setters may need to know.

    Attributes:
        runtime: To reference adjustments are sent.
        machine: Where the containers are.
        policy: Knows the classes of places.
        tree: The host; None where there is nothing to look up.
        hosts: What is known of classes on the host.
    """

    runtime: RuntimeInfo
    machine: Machine
    policy: ViewedPolicy[Any]
    tree: Tree | None
    hosts: ClassHosts


class ContainerClasses:
    """Chooses the setters that have to do with a container.

    Args:
        config: Which classes there are.
        around: What setters may need to know.
    """

    def __init__(self, config: PolicyConfig, around: ClassContext) -> None:
        self._config = config
        self._around = around
        self._runtime = around.runtime
        self._machine = around.machine
        self._tree = around.tree

    def of(
        self, pod: Pod, container: Container, spec: ContainerSpec
    ) -> ChosenSetters | None:
        """Choose them; None where there are none, which is so for most containers."""
        new = NewContainer(pod, container, spec)
        chosen = [setter for setter in self._setters if setter.concerns(new)]
        return ChosenSetters(new, chosen) if chosen else None

    @cached_property
    def _setters(self) -> tuple[ClassSetter, ...]:
        return tuple(self._made())

    def _made(self) -> Iterator[ClassSetter]:
        yield MemorySetter(self._config, self._runtime, self._machine, self._tree)
        config, around = self._config, self._around
        # Documents of some kinds have none.
        are_there = bool(getattr(config, "scheduling_classes", None))
        by = config.scheduling_by
        yield SchedulingSetter(self._runtime, by, self._tree, are_there=are_there)
        if config.interrupts != ("*",) and self._tree is not None:
            from nri_resmgr.app.classes.interrupts import InterruptCheck

            yield InterruptCheck(config.interrupts, self._tree)
        may = config.isolation
        yield IsolationSetter(around.policy, self._machine, self._tree, may=may)
        if config.rdt is not None:
            from nri_resmgr.app.classes.rdt.setter import RdtSetter

            hosts = around.hosts
            yield RdtSetter(config.rdt, self._runtime, around.policy, hosts.rdt)
        if config.blockio is not None:
            from nri_resmgr.app.classes.blockio.setter import BlockIoSetter

            writer = around.hosts.blockio_writer
            yield BlockIoSetter(config.blockio, around.policy, writer)


class ChosenSetters:
    """Asks the setters of one container, in order.

    Args:
        new: The container.
        setters: Those that have to do with it.
    """

    def __init__(self, new: NewContainer, setters: Sequence[ClassSetter]) -> None:
        self._new = new
        self._setters = setters

    def check(self) -> None:
        """Judge what the container asks for.

        Raises:
            ResmgrError: It asks for what it cannot have.
        """
        for setter in self._setters:
            setter.check(self._new)

    def check_placement(self, decision: Decision[Any]) -> None:
        """Judge what depends on where the container would be put.

        Raises:
            ResmgrError: There it cannot have what it asks for.
        """
        for setter in self._setters:
            setter.check_placement(self._new, decision)

    def add(
        self, adjustment: ContainerAdjustment | None, decision: Decision[Any]
    ) -> ContainerAdjustment | None:
        """Add the container's classes to what the runtime is told; None for nothing."""
        told = begun = adjustment or ContainerAdjustment()
        for setter in self._setters:
            told = setter.add(told, self._new, decision)
        return adjustment if told is begun else told

    def start(self, decision: Decision[Any]) -> None:
        """Do what can be done only now: the container's cgroup is there.

        Raises:
            ResmgrError: It cannot be done.
        """
        for setter in self._setters:
            setter.start(self._new, decision)

    def update(
        self, updates: tuple[ContainerUpdate, ...], decision: Decision[Any]
    ) -> tuple[ContainerUpdate, ...]:
        """Add what follows from the container's new amounts to all updates."""
        own = ContainerUpdate(self._new.container.id)
        told = begun = next(
            (one for one in updates if one.container_id == own.container_id), own
        )
        for setter in self._setters:
            told = setter.update(told, self._new, decision)
        if told is begun:
            return updates
        return (told, *(one for one in updates if one is not begun))
