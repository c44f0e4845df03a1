"""The plugin: NRI events in, the policy's decisions out as answers to the runtime."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nri_resmgr.app.classes.container_classes import ClassContext, ContainerClasses
from nri_resmgr.app.classes.hosts import ClassHosts
from nri_resmgr.app.configuration.acceptance import ActiveConfiguration
from nri_resmgr.app.configuration.status import BUILT_IN, Document, DocumentSource
from nri_resmgr.app.observers.dispatch import DecisionObservers
from nri_resmgr.app.observers.observer import DecisionObserver, PolicyDecision
from nri_resmgr.app.observing.decision_log import DecisionLog
from nri_resmgr.app.plugin.catch_up import catch_up
from nri_resmgr.app.plugin.engine import Engine, RestoreCheckpoint
from nri_resmgr.app.plugin.options import DEFAULT_OPTIONS, EventTimers, PluginOptions
from nri_resmgr.app.plugin.specs import SpecReader
from nri_resmgr.app.plugin.timers import Timers
from nri_resmgr.app.plugin.translate import adjustment_of, updates_of
from nri_resmgr.app.published.container_files import ContainerFiles
from nri_resmgr.config import PolicyConfig, TopologyAwareConfig
from nri_resmgr.host.tree import Tree
from nri_resmgr.policy.decision import PinUpdate
from nri_resmgr.policy.events import (
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
from nri_resmgr.stub.runtime_info import Configuration, RuntimeInfo
from nri_resmgr.stub.update import ContainerUpdate
from nri_resmgr.stub.update_sender import UpdateSender
from nri_resmgr.topology import Machine
from nri_resmgr.values import ResmgrError

Updates = tuple[ContainerUpdate, ...]


class ResourcePolicy:
    """Answers the events of a runtime by the decisions of a policy.

    Every handler of an event takes the same steps:

    1. `SpecReader` reads the event into a `ContainerSpec`.
    2. `Engine` decides, and replaces its state by the decision's.
    3. Observers are scheduled: log, metrics, checkpoint and the others run once the
       reply is out.
    4. The pins of the decision become the answer.

    Errors pass through to the stub, which replies with what
    `nri_resmgr.app.plugin.status_codes.status_of` returns. A refused request changes
    nothing. A dry run decides and observes, but its answers are empty.

    Args:
        machine: The model of the host.
        config: The operator's configuration; without one, the text in Configure
            counts, and the built-in default until there is one.
        tree: The host, whose cgroups a configuration may name.
        plugin_options: Options besides the policy's configuration.
        observers: Observers of decisions besides the log.

    Attributes:
        configuration: Accepts or rejects documents.
        updates: Sends updates that no request asked for.
        class_hosts: The known classes of the host.
    """

    configuration: ActiveConfiguration

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
        self._timers: EventTimers | None = None
        self.updates = UpdateSender()
        self._runtime = RuntimeInfo()
        self.class_hosts = ClassHosts(tree)
        self._classes = self._new_classes()
        self._is_configuring = False
        self._files: ContainerFiles | None = None
        all_observers = [DecisionLog(dry_run=plugin_options.dry_run), *observers]
        if plugin_options.run_dir and not plugin_options.dry_run:
            self._files = ContainerFiles(plugin_options.run_dir, self._engine)
            all_observers.append(self._files)
        self._observers = DecisionObservers(all_observers)
        document = Document("", DocumentSource.FILE) if config else BUILT_IN
        self.use_configuration(ActiveConfiguration(document))

    # Events of the runtime, in the order of a session, a pod and a container. The
    # stub calls them by name.

    def configure(self, handed_over: Configuration) -> None:
        """Take the runtime's name and version, and its configuration if that counts."""
        self._runtime = handed_over.runtime
        self._classes = self._new_classes()
        # Synchronize comes next and updates all containers anyway.
        self._is_configuring = True
        try:
            self.configuration.hand_over(handed_over.text)
        finally:
            self._is_configuring = False

    def synchronize(
        self, pods: Sequence[Pod], containers: Sequence[Container]
    ) -> Updates:
        """Place all running containers, as far as possible where they were before."""
        # The answer has the pins of all containers.
        self.updates.pending.drop(self.update_of)
        # After Configure, which may have switched policies; before `catch_up`, which
        # compares with the restored containers.
        self._engine.restore()
        self.configuration.set_placing_kind(self.config.kind)
        present = frozenset(pod.id for pod in pods)
        specs = self._specs.of_all(pods, containers)
        updates = catch_up(specs, present, self._engine.known, self._decide)
        return self._answer(updates)

    def run_pod_sandbox(self, pod: Pod) -> None:
        """Place a new pod as a whole, where its containers are known."""
        try:
            self._decide(PodCreated(pod.id, self._specs.of_expected(pod)))
        except ResmgrError as error:
            self._refuse(error, pod)

    def create_container(self, pod: Pod, container: Container) -> CreateReply | None:
        """Place a new container; the reply has its pins and changed pins of others."""
        try:
            spec = self._specs.of_new(pod, container)
            if classes := self._classes.of(pod, container, spec):
                classes.check()
            created = Created(spec)
            decision = self._engine.decide(
                created, classes.check_placement if classes else None
            )
        except ResmgrError as error:
            self._refuse(error, pod, container)
            return None
        # Before the observers: the files of a mounted folder are written by one.
        mount = self._files.mount_for(container) if self._files else None
        self._notify(created, decision)
        if self._options.dry_run:
            return None
        adjustment = adjustment_of(decision.pin, *((mount,) if mount else ()))
        if classes:
            adjustment = classes.add(adjustment, decision)
        return CreateReply(adjustment, self._answer(decision.updates))

    def start_container(self, pod: Pod, container: Container) -> None:
        """Start timers and classes that count from the start of a container."""
        decision = self._decide(Started(container.id))
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
        """Place a resized container again, or assert its pins over the request's."""
        try:
            spec = self._specs.of_present(pod, container, resources)
            decision = self._decide(Updated(spec))
        except ResmgrError as error:
            self._refuse(error, pod, container)
            return ()
        pins = (PinUpdate(container.id, decision.pin),) if decision.pin else ()
        updates = self._answer(pins + decision.updates)
        if self._options.dry_run:
            return ()
        classes = self._classes.of(pod, container, spec)
        return classes.update(updates, decision) if classes else updates

    def stop_container(self, _pod: Pod, container: Container) -> Updates:
        """Release a container's grant; the shared pool grows in the reply."""
        return self._answer(self._decide(Stopped(container.id)).updates)

    def remove_container(self, _pod: Pod, container: Container) -> None:
        """Release a container whose stop was not reported."""
        self._decide(Removed(container.id))

    def stop_pod_sandbox(self, pod: Pod) -> None:
        """Release everything that a pod still has."""
        self._decide(PodStopped(pod.id))

    def remove_pod_sandbox(self, pod: Pod) -> None:
        """Release a pod whose stop was not reported: its creation may have failed."""
        self._decide(PodStopped(pod.id))
        self._specs.forget(pod.id)

    # State, for observers, metrics and the control socket.

    @property
    def config(self) -> PolicyConfig:
        """The configuration in force."""
        return self._engine.config

    @property
    def policy(self) -> ViewedPolicy[KnowsContainers]:
        """The policy in force."""
        return self._engine.policy

    @property
    def machine(self) -> Machine:
        """The machine in force; differs from the host's where that does not fit."""
        return self._engine.machine

    @property
    def state(self) -> KnowsContainers:
        """The policy's containers and grants; frozen."""
        return self._engine.state

    # Set-up by the daemon, before the runtime connects.

    def use_configuration(self, configuration: ActiveConfiguration) -> None:
        """Have *configuration* accept documents; its own is already in force."""
        self.configuration = configuration
        configuration.bind(self)

    def restore_from(self, checkpoint: RestoreCheckpoint) -> None:
        """Have the state of an earlier process restored at the next Synchronize."""
        self._engine.restore_from(checkpoint)

    def use_update_sender(self, updates: UpdateSender) -> None:
        """Send updates that no request asked for by *updates*."""
        self.updates = updates

    # Changes that no request of the runtime causes.

    def reconfigure(self, config: PolicyConfig) -> None:
        """Put another configuration in force, also while containers run.

        Raises:
            BadSetting: It does not fit the machine; nothing has changed.
        """
        self._rebuild(config, self._machine)

    def change_machine(self, machine: Machine) -> None:
        """Put another machine in force: CPUs or memory came or went.

        Raises:
            BadSetting: The configuration does not fit the machine. The previous one
                stays in force; the next configuration is tried with the new one.
        """
        self._machine = machine
        self._rebuild(self.config, machine)

    def send_pins(self, containers: Iterable[str]) -> None:
        """Send the pins of containers to the runtime, by call or by reply."""
        self.updates.send(self.update_of, containers)

    def pending_pins(self) -> frozenset[str]:
        """Return the containers whose pins the runtime has not taken yet."""
        return self.updates.pending.containers(self.update_of)

    def update_of(self, container: str) -> ContainerUpdate | None:
        """Make an update with the pins that a container should have now."""
        pin = self._engine.wanted(container)
        return updates_of([PinUpdate(container, pin)])[0] if pin else None

    def _rebuild(self, config: PolicyConfig, machine: Machine) -> None:
        decision = self._engine.rebuild(config, machine)
        self._specs.change_machine(machine)
        # The setters hold the policy and the machine.
        self._classes = self._new_classes()
        if not self._is_configuring:
            self._notify(Synchronized(()), decision)
            self._send(decision.updates)
        self._observers.configured(config)

    def _new_classes(self) -> ContainerClasses:
        context = ClassContext(
            self._runtime, self.machine, self.policy, self._tree, self.class_hosts
        )
        return ContainerClasses(self.config, context)

    def _decide(self, event: Event) -> PolicyDecision:
        decision = self._engine.decide(event)
        self._notify(event, decision)
        return decision

    def _notify(self, event: Event, decision: PolicyDecision) -> None:
        # Made late: few policies set timers.
        if decision.timers and self._timers is None:
            self._timers = (self._options.timers or Timers)(self._fire)
        if self._timers is not None:
            self._timers.set(decision.timers)
            self._timers.keep_only(decision.state.ledger.entries)
        self._observers.decided(event, decision)

    def _fire(self, event: Event) -> None:
        self._send(self._decide(event).updates)

    def _refuse(
        self, error: ResmgrError, pod: Pod, container: Container | None = None
    ) -> None:
        self._observers.refused(error, pod, container)
        if not self._options.dry_run:  # a dry run must not fail a creation
            raise error

    def _send(self, updates: Sequence[PinUpdate]) -> None:
        if not self._options.dry_run:
            self.send_pins(update.container for update in updates)

    def _answer(self, updates: Sequence[PinUpdate]) -> Updates:
        return () if self._options.dry_run else updates_of(updates)
