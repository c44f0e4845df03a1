"""The plugin: NRI events to the policy, its decisions back to the runtime."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from nri_resmgr.app.classes.container_classes import ClassContext, ContainerClasses
from nri_resmgr.app.classes.hosts import ClassHosts
from nri_resmgr.app.configuration.acceptance import Configuration
from nri_resmgr.app.configuration.status import BUILT_IN, Document, Source
from nri_resmgr.app.observers.dispatch import DecisionObservers
from nri_resmgr.app.observers.observer import DecisionObserver
from nri_resmgr.app.observing.decision_log import Report
from nri_resmgr.app.plugin.catch_up import catch_up
from nri_resmgr.app.plugin.engine import Engine, RestoreCheckpoint
from nri_resmgr.app.plugin.options import DEFAULT_OPTIONS, PluginOptions
from nri_resmgr.app.plugin.specs import SpecReader
from nri_resmgr.app.plugin.timers import Timers
from nri_resmgr.app.plugin.translate import adjustment_of, updates_of
from nri_resmgr.app.published.container_files import ContainerFiles
from nri_resmgr.config import PolicyConfig, TopologyAwareConfig
from nri_resmgr.host.tree import Tree
from nri_resmgr.log import Logger
from nri_resmgr.policy.decision import Decision, PinUpdate
from nri_resmgr.policy.events import (
    ContainerSpec,
    Created,
    Event,
    PodCreated,
    PodStopped,
    Removed,
    Started,
    Stopped,
    Synchronized,
    Updated,
)
from nri_resmgr.policy.ledger import KnowsContainers
from nri_resmgr.policy.views import ViewedPolicy
from nri_resmgr.stub.model import Container, LinuxResources, Pod
from nri_resmgr.stub.replies import CreateReply
from nri_resmgr.stub.runtime_info import Configuration as HandedOver
from nri_resmgr.stub.runtime_info import RuntimeInfo
from nri_resmgr.stub.update import ContainerUpdate
from nri_resmgr.stub.update_sender import UpdateSender
from nri_resmgr.topology import Machine
from nri_resmgr.values import ResmgrError

log = Logger(__name__)

Updates = tuple[ContainerUpdate, ...]


class ResourcePolicy:
    """Swap the state, then answer, then tell the witnesses.

    Errors pass through to the stub, which asks `nri_resmgr.app.plugin.status_codes.status_of`
    what to tell the runtime. A request that is refused leaves nothing behind.

    Args:
        machine: What the CPUs are taken from.
        config: The operator's own; without one, the text in Configure counts, and
            the built-in default until there is one.
        tree: The host, whose cgroups a configuration may name.
        conduct: How to behave besides.
        witnesses: Who is told of decisions, besides the log.

    Attributes:
        configuration: Takes documents.
        updates: Sends updates that no request asked for.
        class_hosts: What is known of classes on the host.
    """

    def __init__(
        self,
        machine: Machine,
        config: PolicyConfig | None = None,
        *,
        tree: Tree | None = None,
        plugin_options: PluginOptions = DEFAULT_OPTIONS,
        observers: Sequence[DecisionObserver] = (),
    ) -> None:
        self._options = plugin_options
        self._machine = machine
        self._engine = Engine(machine, config or TopologyAwareConfig(), tree)
        self._tree = tree
        self._specs = SpecReader(machine, self._engine.known, tree, plugin_options)
        self._timers: Any = None
        self.updates = UpdateSender()
        self._runtime = RuntimeInfo()
        self.class_hosts = ClassHosts(tree)
        self._classes = self._setters()
        self._is_silent = False
        self._files: ContainerFiles | None = None
        told = [Report(dry_run=plugin_options.dry_run), *observers]
        if plugin_options.run_dir and not plugin_options.dry_run:
            self._files = ContainerFiles(plugin_options.run_dir, self._engine)
            told.append(self._files)
        self._observers = DecisionObservers(told)
        self.go_by(Configuration(Document("", Source.FILE) if config else BUILT_IN))

    @property
    def config(self) -> PolicyConfig:
        """The configuration in force."""
        return self._engine.config

    @property
    def policy(self) -> ViewedPolicy[Any]:
        """The policy in force."""
        return self._engine.policy

    @property
    def machine(self) -> Machine:
        """The machine that is in force with it."""
        return self._engine.machine

    @property
    def state(self) -> Any:
        """What the policy knows and has granted; frozen."""
        return self._engine.state

    def go_by(self, configuration: Configuration) -> None:
        """Have it judge documents; its own is the one that is in force."""
        self.configuration = configuration
        configuration.connect(self)

    def remember(self, former: RestoreCheckpoint) -> None:
        """Have the state of an earlier process at hand when it is told what runs."""
        self._engine.remember(former)

    def connect(self, updates: UpdateSender) -> None:
        """Have it send updates that no request asked for; replies carry its others."""
        self.updates = updates

    def send_pins(self, containers: Iterable[str]) -> None:
        """Send the pins of containers to the runtime, by call or by reply."""
        self.updates.send(self.update_of, containers)

    def pending_pins(self) -> frozenset[str]:
        """Return the containers whose pins are yet to be taken by the runtime."""
        return self.updates.pending.containers(self.update_of)

    def update_of(self, container: str) -> ContainerUpdate | None:
        """Compute an update with the pin that should hold for a container now."""
        pin = self._engine.wanted(container)
        return updates_of([PinUpdate(container, pin)])[0] if pin else None

    def configure(self, handed_over: HandedOver) -> None:
        """Take what the runtime tells of itself, and its text if that counts."""
        self._runtime = handed_over.runtime
        self._classes = self._setters()
        # What to tell is found anew when the runtime says what runs.
        self._is_silent = True
        self.configuration.hand_over(handed_over.text)
        self._is_silent = False

    def reconfigure(self, config: PolicyConfig) -> None:
        """Go by another configuration, also while containers run.

        Raises:
            BadSetting: It does not fit the machine; nothing has changed.
        """
        self._rebuild(config, self._machine)

    def change_machine(self, machine: Machine) -> None:
        """Go on with the CPUs and the memory that there are now.

        Raises:
            BadSetting: The configuration does not fit them. What was in force still
                is; the next configuration is tried with them again.
        """
        self._machine = machine
        self._rebuild(self.config, machine)

    def synchronize(
        self, pods: Sequence[Pod], containers: Sequence[Container]
    ) -> Updates:
        """Start from what runs; what was known before only helps to keep it."""
        # The answer has the pins of all containers.
        self.updates.pending.drop(self.update_of)
        self._engine.recall()
        self.configuration.keep_to(self.config.kind)
        there = frozenset(pod.id for pod in pods)
        specs = self._specs.of_all(pods, containers)
        updates = catch_up(specs, there, self._engine.known, self._handle)
        return self._answer(updates)

    def run_pod_sandbox(self, pod: Pod) -> None:
        """Look at a new pod as a whole, where its containers are known."""
        try:
            self._handle(PodCreated(pod.id, self._specs.of_expected(pod)))
        except ResmgrError as error:
            self._refuse(error, pod)

    def create_container(self, pod: Pod, container: Container) -> CreateReply | None:
        """Place a new container; the reply carries its pinning, and the others'."""
        try:
            spec: ContainerSpec = self._specs.of_new(pod, container)
            if classes := self._classes.of(pod, container, spec):
                classes.check()
            created, judge = Created(spec), classes.check_placement if classes else None
            decision = self._engine.decide(created, judge)
        except ResmgrError as error:
            self._refuse(error, pod, container)
            return None
        mount = self._files.mount_for(container) if self._files else None
        self._follow(created, decision)  # which writes what is to be found there
        if self._options.dry_run:
            return None
        adjustment = adjustment_of(decision.pin, *((mount,) if mount else ()))
        if classes:
            adjustment = classes.add(adjustment, decision)
        return CreateReply(adjustment, self._answer(decision.updates))

    def start_container(self, pod: Pod, container: Container) -> None:
        """Begin to count where something ends some time after the start."""
        decision = self._handle(Started(container.id))
        known = self._engine.known(container.id)
        if known is None or self._options.dry_run:
            return
        try:
            if classes := self._classes.of(pod, container, known.spec):
                classes.start(decision)
        except ResmgrError as error:
            self._refuse(error, pod, container)

    def update_container(
        self, pod: Pod, container: Container, resources: LinuxResources
    ) -> Updates:
        """Follow a resize, or assert the pinning against who would change it."""
        try:
            spec = self._specs.of_present(pod, container, resources)
            decision = self._handle(Updated(spec))
        except ResmgrError as error:
            self._refuse(error, pod, container)
            return ()
        own = (PinUpdate(container.id, decision.pin),) if decision.pin else ()
        told = self._answer(own + decision.updates)
        if self._options.dry_run:
            return ()
        classes = self._classes.of(pod, container, spec)
        return classes.update(told, decision) if classes else told

    def stop_container(self, _pod: Pod, container: Container) -> Updates:
        """Take back what a container had; the shared pool grows in the reply."""
        return self._answer(self._handle(Stopped(container.id)).updates)

    def remove_container(self, _pod: Pod, container: Container) -> None:
        """Forget a container whose stop nobody told."""
        self._handle(Removed(container.id))

    def stop_pod_sandbox(self, pod: Pod) -> None:
        """Forget what is left of a pod."""
        self._handle(PodStopped(pod.id))

    def remove_pod_sandbox(self, pod: Pod) -> None:
        """Forget a pod whose stop nobody told: its creation may have failed."""
        self._handle(PodStopped(pod.id))
        self._specs.forget(pod.id)

    def _fire(self, event: Event) -> None:
        self._send(self._handle(event).updates)

    def _rebuild(self, config: PolicyConfig, machine: Machine) -> None:
        decision = self._engine.rebuild(config, machine)
        self._specs.change_machine(machine)
        self._classes = self._setters()
        if not self._is_silent:
            self._follow(Synchronized(()), decision)
            self._send(decision.updates)
        self._observers.configured(config)

    def _setters(self) -> ContainerClasses:
        runtime, machine = self._runtime, self.machine
        hosts = self.class_hosts
        context = ClassContext(runtime, machine, self.policy, self._tree, hosts)
        return ContainerClasses(self.config, context)

    def _handle(self, event: Event) -> Decision[KnowsContainers]:
        decision = self._engine.decide(event)
        self._follow(event, decision)
        return decision

    def _follow(self, event: Event, decision: Decision[KnowsContainers]) -> None:
        if decision.timers and self._timers is None:
            self._timers = (self._options.timers or Timers)(self._fire)
        if self._timers is not None:
            self._timers.set(decision.timers)
            self._timers.keep_only(decision.state.ledger.entries)
        self._observers.decided(event, decision)

    def _refuse(
        self, error: ResmgrError, pod: Pod, container: Container | None = None
    ) -> None:
        self._observers.refused(error, pod, container)
        if not self._options.dry_run:  # which must not fail anybody's creation
            raise error

    def _send(self, updates: Sequence[PinUpdate]) -> None:
        if not self._options.dry_run:
            self.send_pins(update.container for update in updates)

    def _answer(self, updates: Sequence[PinUpdate]) -> Updates:
        return () if self._options.dry_run else updates_of(updates)
