"""A node in this process: the real plugin with a runtime that only keeps state."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec

from nri_resmgr.app.observers.observer import DecisionObserver, PolicyDecision, Subject
from nri_resmgr.app.plugin.changes.rebalancing import rebalance
from nri_resmgr.app.plugin.changes.reconfiguration import change_machine, reconfigure
from nri_resmgr.app.plugin.options import PluginOptions
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.config import PolicyConfig
from nri_resmgr.host.tree import Tree
from nri_resmgr.policies import parse_config
from nri_resmgr.policies.chosen_cpus import with_cpus_of_cgroups
from nri_resmgr.policy.decision import Reason
from nri_resmgr.policy.events import ColdStartEnded, Created, Event, Rebalance
from nri_resmgr.scenario.clock import Clock
from nri_resmgr.scenario.not_exclusive import KEEPING
from nri_resmgr.stub import Container, LinuxResources, Pod
from nri_resmgr.topology import Machine
from nri_resmgr.topology.hints import Hint, complete_hints
from nri_resmgr.values import Bytes, ResmgrError


class RefusedRequest(msgspec.Struct, frozen=True):
    """A refused request.

    Attributes:
        step: The step of the scenario, counted from 0.
        title: ``namespace/pod/container``, ``namespace/pod``, or ``configuration``.
    """

    step: int
    title: str
    why: str


class DecisionNotes(DecisionObserver):
    """Collects the reasons of decisions, and refusals.

    Attributes:
        reasons: The reason of the last decision on each container.
        causes: That of the last decision that could have made its CPUs exclusive, or
            shared.
        created_in: The step that created each container.
        refusals: The refused requests, in order.
        step: The present step of the scenario.
    """

    def __init__(self) -> None:
        self.reasons: dict[str, Reason] = {}
        self.causes: dict[str, Reason] = {}
        self.created_in: dict[str, int] = {}
        self.refusals: list[RefusedRequest] = []
        self.step = 0

    def decided(self, event: Event, decision: PolicyDecision) -> None:
        """Note the reasons."""
        if isinstance(event, Created):
            self.created_in[event.spec.id] = self.step
        for one in decision.reasons:
            self.reasons[one.container] = one
            if one.rule not in KEEPING or one.container not in self.causes:
                self.causes[one.container] = one

    def refused(self, subject: Subject, error: ResmgrError) -> None:
        """Note a refusal."""
        self.note_refusal(subject.title, error)

    def note_refusal(self, title: str, error: ResmgrError) -> None:
        """Note a refusal, also one that is not about a pod."""
        self.refusals.append(RefusedRequest(self.step, title, str(error)))


class InProcessNode:
    """Calls the plugin as a runtime does; refused requests have no effect.

    Attributes:
        notes: Reasons of decisions, and refusals.
        hints: Topology hints by container id.
        pods: The present pods, by id.
        containers: The present containers, by id, as the kubelet requested them.

    Raises:
        BadSyntax: The text is not YAML.
        BadSetting: It has a mistake, or does not fit the machine.
    """

    def __init__(
        self, machine: Machine, document: str, tree: Tree | None = None
    ) -> None:
        self.notes, self.clock = DecisionNotes(), Clock()
        self.hints: dict[str, tuple[Hint, ...]] = {}
        self._machine = machine
        self._document = document
        self._tree = tree
        self.pods: dict[str, Pod] = {}
        self.containers: dict[str, Container] = {}
        self.plugin = self._make_plugin()

    @property
    def capacity(self) -> Bytes:
        """The memory of the node, from which a kubelet computes OOM scores."""
        return Bytes(sum(node.memory for node in self._machine.nodes))

    def run_pod(self, pod: Pod) -> bool:
        """Run a sandbox; return whether it runs."""
        if self._succeeds(lambda: self.plugin.run_pod_sandbox(pod)):
            self.pods[pod.id] = pod
        return pod.id in self.pods

    def create(self, pod: str, container: Container) -> bool:
        """Create a container; return whether it was created."""
        made = msgspec.structs.replace(
            container, pod_sandbox_id=pod, created_at=self.clock.tick()
        )
        if self._succeeds(lambda: self.plugin.create_container(self.pods[pod], made)):
            self.containers[made.id] = made
        return made.id in self.containers

    def update(self, key: str, resources: LinuxResources) -> bool:
        """Update a container's resources; return whether they were updated."""
        container = self.containers[key]
        pod, now = self.pods[container.pod_sandbox_id], self._as_pinned(container)
        if self._succeeds(lambda: self.plugin.update_container(pod, now, resources)):
            self.containers[key] = _with(container, resources)
            return True
        return False

    def start(self, key: str) -> None:
        """Start a container."""
        made = msgspec.structs.replace(
            self.containers[key], started_at=self.clock.tick()
        )
        self.containers[key] = made
        self.plugin.start_container(self.pods[made.pod_sandbox_id], made)

    def stop(self, key: str) -> None:
        """Stop a container and remove it."""
        container = self.containers.pop(key)
        pod = self.pods[container.pod_sandbox_id]
        self.plugin.stop_container(pod, container)
        self.plugin.remove_container(pod, container)

    def stop_pod(self, key: str) -> None:
        """Stop and remove a pod and its containers."""
        for one in tuple(self.containers.values()):
            if one.pod_sandbox_id == key:
                self.stop(one.id)
        pod = self.pods.pop(key)
        self.plugin.stop_pod_sandbox(pod)
        self.plugin.remove_pod_sandbox(pod)

    def reconfigure(self, document: str) -> None:
        """Apply another configuration; an invalid one is a refusal."""
        if self._succeeds(
            lambda: reconfigure(self.plugin, self._config_of(document)), "configuration"
        ):
            self._document = document

    def change_machine(self, machine: Machine) -> None:
        """Change the CPUs or memory of the machine."""
        change = partial(change_machine, self.plugin, machine)
        if self._succeeds(change, "configuration"):
            self._machine = machine

    def rebalance(self, event: Rebalance) -> None:
        """Rebalance; a policy that does not is a refusal."""
        self._succeeds(lambda: rebalance(self.plugin, event), "rebalance")

    def restart(self, *, restores: bool) -> None:
        """Start the plugin again, or only synchronize it again with its state."""
        present = [self._as_pinned(one) for one in self.containers.values()]
        if not restores:
            self.plugin = self._make_plugin()
        self.plugin.synchronize(tuple(self.pods.values()), present)

    def end_cold_start(self, key: str) -> None:
        """End the cold start of a container."""
        self.clock.fire_now(ColdStartEnded(self.containers[key].id))

    def of(
        self, container: Container, machine: Machine, *_: object, **__: object
    ) -> tuple[Hint, ...]:
        """Return the hints of a container; see `PluginOptions.hints`."""
        return complete_hints(self.hints.get(container.id, ()), machine)

    def pods_come(self) -> None:
        """Do nothing: hints are given."""

    def _make_plugin(self) -> ResourcePolicy:
        plugin_options = PluginOptions(timers=self.clock.timers, hints=self)
        config, observers = self._config_of(self._document), (self.notes,)
        return ResourcePolicy(
            self._machine, config, plugin_options=plugin_options, observers=observers
        )

    def _config_of(self, document: str) -> PolicyConfig:
        # Resolved here, so that nothing else is read of the host.
        return with_cpus_of_cgroups(parse_config(document), self._tree)

    def _succeeds(self, call: Callable[[], object], title: str = "") -> bool:
        try:
            call()
        except ResmgrError as error:
            if title:  # of a request the plugin itself has notified `DecisionNotes`
                self.notes.note_refusal(title, error)
            return False
        return True

    def _as_pinned(self, container: Container) -> Container:
        """Return a container with the pinning that the plugin gave it."""
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
