"""A node in this process: the real plugin, and a runtime that only remembers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from nri_resmgr.app.observers.observer import DecisionObserver
from nri_resmgr.app.plugin.options import PluginOptions
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.config import parse_config
from nri_resmgr.policy.decision import Decision, Reason
from nri_resmgr.policy.events import ColdStartEnded, Event
from nri_resmgr.scenario.clock import Clock
from nri_resmgr.stub import Container, LinuxResources, Pod
from nri_resmgr.topology import Machine
from nri_resmgr.topology.hints import Hint, complete_hints
from nri_resmgr.values import Bytes, ResmgrError


class Refusal(msgspec.Struct, frozen=True):
    """What was refused.

    Attributes:
        step: In which step of a scenario, counted from 0.
        title: ``namespace/pod/container``, ``namespace/pod``, or a word for the rest.
        why: What the runtime was told.
    """

    step: int
    title: str
    why: str


class Book(DecisionObserver):
    """Keeps why containers are where they are, and what was refused.

    Attributes:
        step: What is refused is refused in this one.
    """

    def __init__(self) -> None:
        self.reasons: dict[str, Reason] = {}
        self.refusals: list[Refusal] = []
        self.step = 0

    def decided(self, _event: Event, decision: Decision[Any]) -> None:
        """Note why."""
        self.reasons |= {one.container: one for one in decision.reasons}

    def refused(self, title: str, error: ResmgrError) -> None:
        """Note what the runtime was told."""
        self.refusals.append(Refusal(self.step, title, str(error)))


class InProcessNode:
    """Calls the plugin as a runtime would; what it refuses does not happen.

    Args:
        machine: Of the node.
        document: The text of the configuration.

    Attributes:
        book: What was decided and refused.
        clock: Of the node.
        hints: Where the things sit that containers use, by the containers' ids.
        plugin: The plugin that runs now.

    Raises:
        BadSyntax: The text is no YAML.
        BadSetting: It has a mistake, or does not fit the machine.
    """

    def __init__(self, machine: Machine, document: str) -> None:
        self.book, self.clock = Book(), Clock()
        self.hints: dict[str, tuple[Hint, ...]] = {}
        self._machine = machine
        self._document = document
        self._pods: dict[str, Pod] = {}
        self._containers: dict[str, Container] = {}
        self.plugin = self._begin()

    @property
    def capacity(self) -> Bytes:
        """The memory of the node, for which a kubelet makes OOM scores."""
        return Bytes(sum(node.memory for node in self._machine.nodes))

    @property
    def pods(self) -> Mapping[str, Pod]:
        """Those that are there, by id."""
        return self._pods

    @property
    def containers(self) -> Mapping[str, Container]:
        """Those that are there, by id, as the kubelet asked for them."""
        return self._containers

    def run_pod(self, pod: Pod) -> bool:
        """Run a sandbox; tell whether that went well."""
        if self._tried(lambda: self.plugin.run_pod_sandbox(pod)):
            self._pods[pod.id] = pod
        return pod.id in self._pods

    def create(self, pod: str, container: Container) -> bool:
        """Create a container; tell whether that went well."""
        made = msgspec.structs.replace(
            container, pod_sandbox_id=pod, created_at=self.clock.tick()
        )
        if self._tried(lambda: self.plugin.create_container(self._pods[pod], made)):
            self._containers[made.id] = made
        return made.id in self._containers

    def update(self, key: str, resources: LinuxResources) -> bool:
        """Ask for other resources; tell whether that went well."""
        container = self._containers[key]
        pod, now = self._pods[container.pod_sandbox_id], self._as_it_is(container)
        if self._tried(lambda: self.plugin.update_container(pod, now, resources)):
            self._containers[key] = _with(container, resources)
            return True
        return False

    def start(self, key: str) -> None:
        """Start a container."""
        made = msgspec.structs.replace(
            self._containers[key], started_at=self.clock.tick()
        )
        self._containers[key] = made
        self.plugin.start_container(self._pods[made.pod_sandbox_id], made)

    def stop(self, key: str) -> None:
        """Stop a container and remove it."""
        container = self._containers.pop(key)
        pod = self._pods[container.pod_sandbox_id]
        self.plugin.stop_container(pod, container)
        self.plugin.remove_container(pod, container)

    def stop_pod(self, key: str) -> None:
        """Stop a pod and its containers, and remove all that."""
        for one in tuple(self._containers.values()):
            if one.pod_sandbox_id == key:
                self.stop(one.id)
        pod = self._pods.pop(key)
        self.plugin.stop_pod_sandbox(pod)
        self.plugin.remove_pod_sandbox(pod)

    def reconfigure(self, document: str) -> None:
        """Put another configuration in force; one that is wrong is a refusal."""
        if self._noted(lambda: self.plugin.reconfigure(parse_config(document))):
            self._document = document

    def change_machine(self, machine: Machine) -> None:
        """Have CPUs or memory come or go."""
        if self._noted(lambda: self.plugin.change_machine(machine)):
            self._machine = machine

    def restart(self, *, remembers: bool) -> None:
        """Have the plugin start again, or only register again if it remembers."""
        there = [self._as_it_is(one) for one in self._containers.values()]
        if not remembers:
            self.plugin = self._begin()
        self.plugin.synchronize(tuple(self._pods.values()), there)

    def end_cold_start(self, key: str) -> None:
        """Have the time without DRAM be over for a container."""
        self.clock.ring_now(ColdStartEnded(self._containers[key].id))

    def of(
        self, container: Container, machine: Machine, *_: object, **__: object
    ) -> tuple[Hint, ...]:
        """Find the hints of a container; see `PluginOptions.hints`."""
        return complete_hints(self.hints.get(container.id, ()), machine)

    def _begin(self) -> ResourcePolicy:
        plugin_options = PluginOptions(timers=self.clock.timers, hints=self)
        config, observers = parse_config(self._document), (self.book,)
        return ResourcePolicy(
            self._machine, config, plugin_options=plugin_options, observers=observers
        )

    def _tried(self, call: Callable[[], object]) -> bool:
        try:
            call()
        except ResmgrError:
            return False  # which the plugin has told its witnesses
        return True

    def _noted(self, call: Callable[[], object]) -> bool:
        try:
            call()
        except ResmgrError as error:
            self.book.refused("configuration", error)
            return False
        return True

    def _as_it_is(self, container: Container) -> Container:
        """Return a container as the runtime has it: where the plugin has put it."""
        pin = self.plugin.policy.pins(self.plugin.state).get(container.id)
        cpu = container.resources.cpu
        if not pin or cpu is None:
            return container
        pinned = msgspec.structs.replace(
            cpu, cpus=str(pin.cpus), mems=str(pin.mems), shares=pin.shares or cpu.shares
        )
        return _with(
            container, msgspec.structs.replace(container.resources, cpu=pinned)
        )


def _with(container: Container, resources: LinuxResources) -> Container:
    linux = container.linux and msgspec.structs.replace(
        container.linux, resources=resources
    )
    return msgspec.structs.replace(container, linux=linux)
