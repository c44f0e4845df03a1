"""All kinds of classes that containers are created with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from nri_resmgr.app.classes.hosts import ClassHosts
from nri_resmgr.app.classes.isolation import IsolationSetter
from nri_resmgr.app.classes.memory.setter import MemorySetter
from nri_resmgr.app.classes.scheduling import SchedulingSetter
from nri_resmgr.app.classes.setter import ClassSetter, NewContainer, SetterOptions
from nri_resmgr.app.observers.observer import PolicyDecision
from nri_resmgr.config import PolicyConfig
from nri_resmgr.host.tree import Tree
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.ledger import KnowsContainers
from nri_resmgr.policy.views import ViewedPolicy
from nri_resmgr.stub.adjustment import ContainerAdjustment
from nri_resmgr.stub.model import Container, Pod
from nri_resmgr.stub.runtime_info import RuntimeInfo
from nri_resmgr.stub.update import ContainerUpdate
from nri_resmgr.topology import Machine

if TYPE_CHECKING:  # see `ContainerClasses`
    from nri_resmgr.app.classes.limits.setter import LimitSetter


class ClassContext(msgspec.Struct, frozen=True):
    """The parts that setters are made from, besides the configuration.

    Attributes:
        policy: The policy in force; has the classes of pools and balloon types.
        tree: The host; None without one.
        options: Of the command line.
    """

    runtime: RuntimeInfo
    machine: Machine
    policy: ViewedPolicy[KnowsContainers]
    tree: Tree | None
    hosts: ClassHosts
    options: SetterOptions = SetterOptions()


class ContainerClasses:
    """Chooses the setters that concern a container.

    What the configuration needs is imported and read here, before the runtime connects
    and when another document comes into force: no request waits for it.
    """

    def __init__(self, config: PolicyConfig, context: ClassContext) -> None:
        self._context = context
        self._setters = tuple(_made(config, context))
        self._annotations = frozenset[str]().union(
            *[setter.annotations for setter in self._setters]
        )

    def of(
        self, pod: Pod, container: Container, spec: ContainerSpec
    ) -> ChosenSetters | None:
        """Return the setters of a container; None for none, as for most containers."""
        new = NewContainer(pod, container, spec)
        keys = "\n".join(pod.annotations)  # one search instead of one for each key
        found = {part for part in self._annotations if part in keys}
        chosen = [
            setter
            for setter in self._setters
            if not setter.annotations or not found.isdisjoint(setter.annotations)
        ]
        if spec.adjusted is not None and self._limits.concerns(new):
            chosen.append(self._limits)
        return ChosenSetters(new, chosen) if chosen else None

    @cached_property
    def _limits(self) -> LimitSetter:
        # Late: few nodes have adjustments.
        from nri_resmgr.app.classes.limits.setter import LimitSetter

        return LimitSetter(self._context.hosts.limits)


class ChosenSetters:
    """Calls the setters of one container, in order; see `ClassSetter` for the steps."""

    def __init__(self, new: NewContainer, setters: Sequence[ClassSetter]) -> None:
        self._new = new
        self._setters = setters

    def check(self) -> None:
        """Check what the container asks for.

        Raises:
            ResmgrError: The request cannot be met.
        """
        for setter in self._setters:
            setter.check(self._new)

    def check_placement(self, decision: PolicyDecision) -> None:
        """Check what depends on the container's place.

        Raises:
            ResmgrError: The request cannot be met there.
        """
        for setter in self._setters:
            setter.check_placement(self._new, decision)

    def add(
        self, adjustment: ContainerAdjustment | None, decision: PolicyDecision
    ) -> ContainerAdjustment | None:
        """Add the container's classes to its adjustment; None for nothing to send."""
        result = before = adjustment or ContainerAdjustment()
        for setter in self._setters:
            result = setter.add(result, self._new, decision)
        return adjustment if result is before else result

    def start(self, decision: PolicyDecision) -> None:
        """Write what needs the container's cgroup.

        Raises:
            ResmgrError: It cannot be written.
        """
        for setter in self._setters:
            setter.start(self._new, decision)

    def update(
        self, updates: tuple[ContainerUpdate, ...], decision: PolicyDecision
    ) -> tuple[ContainerUpdate, ...]:
        """Add what follows from the container's new resources to all updates."""
        key = self._new.container.id
        found = (one for one in updates if one.container_id == key)
        result = before = next(found, ContainerUpdate(key))
        for setter in self._setters:
            result = setter.update(result, self._new, decision)
        if result is before:
            return updates
        return (result, *(one for one in updates if one is not before))


def _made(config: PolicyConfig, context: ClassContext) -> Iterator[ClassSetter]:
    runtime, machine, tree = context.runtime, context.machine, context.tree
    # The order counts: of two kinds that set the same file, the first one wins.
    remembered = context.hosts.remembered
    yield MemorySetter(config, runtime, machine, remembered, context.options)
    yield SchedulingSetter(
        runtime,
        config.scheduling_by,
        tree,
        # The configurations of some policies have no such classes.
        has_classes=bool(getattr(config, "scheduling_classes", None)),
    )
    if config.interrupts != ("*",) and (known := context.hosts.interrupts) is not None:
        # Late: few nodes limit which interrupts are placed.
        from nri_resmgr.app.classes.interrupts import InterruptCheck

        yield InterruptCheck(config.interrupts, known)
    governors = context.hosts.governors if config.isolation else None
    yield IsolationSetter(
        context.policy, machine, governors, is_allowed=config.isolation
    )
    if context.policy.sets_environment:
        # Late: few policies set variables of containers.
        from nri_resmgr.app.classes.environment import EnvironmentSetter

        yield EnvironmentSetter(runtime, context.policy)
    if config.rdt is not None and config.rdt.assigns:
        # Late: few nodes use RDT classes.
        from nri_resmgr.app.classes.rdt.setter import RdtSetter

        yield RdtSetter(config.rdt, runtime, context.policy, context.hosts.rdt)
    if config.blockio is not None:
        # Late: few nodes use block I/O classes.
        from nri_resmgr.app.classes.blockio.setter import BlockIoSetter

        writer = context.hosts.blockio_writer
        yield BlockIoSetter(config.blockio, context.policy, writer)
