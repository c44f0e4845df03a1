"""The policy in force on this node: what it decides is observed and delivered."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nri_resmgr.app.adjustments.known_classes import KnownClasses, known_classes
from nri_resmgr.app.classes.container_classes import ClassContext, ContainerClasses
from nri_resmgr.app.classes.hosts import ClassHosts
from nri_resmgr.app.classes.setter import SetterOptions
from nri_resmgr.app.configuration.fitting import (
    LeftOut,
    fitted,
    left_out,
    note_left_out,
)
from nri_resmgr.app.observers.dispatch import DecisionObservers
from nri_resmgr.app.observers.observer import DecisionObserver, PolicyDecision
from nri_resmgr.app.observing.decision_log import DecisionLog
from nri_resmgr.app.observing.refusal_log import RefusalLog
from nri_resmgr.app.plugin.claimed_containers import ClaimedContainers
from nri_resmgr.app.plugin.engine import Engine
from nri_resmgr.app.plugin.options import DEFAULT_OPTIONS, EventTimers, PluginOptions
from nri_resmgr.app.plugin.specs import SpecReader
from nri_resmgr.app.plugin.timers import Timers
from nri_resmgr.app.running.delivery import ByRuntime, PinDelivery
from nri_resmgr.app.running.vm_pods import VmPods
from nri_resmgr.config import BadSetting, PolicyConfig
from nri_resmgr.host.tree import Tree
from nri_resmgr.policy.decision import PinUpdate
from nri_resmgr.policy.events import Event, Pin, Synchronized, Updated
from nri_resmgr.policy.ledger import KnowsContainers
from nri_resmgr.policy.views import ViewedPolicy
from nri_resmgr.stub.runtime_info import RuntimeInfo
from nri_resmgr.stub.update_sender import UpdateSender
from nri_resmgr.topology import Machine


class NodePolicy:
    """Has events decided, and the decisions observed and delivered.

    `ResourcePolicy` adds the handlers of the runtime's requests. The changes that no
    request causes are functions of this object, in `nri_resmgr.app.plugin.changes`.

    Decisions of a dry run are observed, and not delivered.

    Args:
        machine: The model of the host.
        config: The configuration to begin with.
        tree: The host, whose cgroups a configuration may name.
        plugin_options: Options besides the policy's configuration.
        observers: Observers of decisions besides the log.

    Attributes:
        options: Those of the node, whatever the policy.
        config: The configuration in force, with what is `left_out` at present.
        left_out: What of the configuration the machine does not have now.
        host_machine: The model of the host, with the CPUs of claims.
        engine: The policy and its state.
        specs: Reads events into the terms of the policy.
        claims: The containers with claims of other drivers, and these claims.
        runtime: The runtime's name and version.
        class_hosts: The known classes of the host.
        classes: The classes of containers, for their replies.
        vm_pods: The present pods in virtual machines.
        updates: Sends updates that no request asked for.
        delivery: Delivers changed pins to running containers.
        observers: Have each decision once the reply is out.
        is_configuring: True during Configure: Synchronize follows and updates all
            containers anyway.
    """

    def __init__(
        self,
        machine: Machine,
        config: PolicyConfig,
        *,
        tree: Tree | None = None,
        plugin_options: PluginOptions = DEFAULT_OPTIONS,
        observers: Sequence[DecisionObserver] = (),
    ) -> None:
        self.options = plugin_options
        self.host_machine = machine
        self._use(config)
        self.engine = Engine(
            machine, fitted(config, machine), tree, plugin_options.why_no_devices
        )
        self.left_out: tuple[LeftOut, ...] = ()
        self.note_left_out(left_out(config, machine))
        self._tree = tree
        engine = self.engine
        self.specs = SpecReader(
            machine, engine.known, engine.in_pod, tree, plugin_options
        )
        self.specs.use_claims(lambda: engine.claims)
        self.claims = ClaimedContainers(
            plugin_options.pod_resources, plugin_options.cpu_drivers
        )
        self._timers: EventTimers | None = None
        self.updates = UpdateSender()
        self.delivery: PinDelivery = ByRuntime(self)
        self.runtime = RuntimeInfo()
        self.class_hosts = ClassHosts(tree)
        self.specs.adjustments.use_classes(self.known_classes)
        self.vm_pods = VmPods(plugin_options.vm_handlers)
        self.classes = self._new_classes()
        self.is_configuring = False
        dry_run = plugin_options.dry_run
        logs = (DecisionLog(dry_run=dry_run), RefusalLog(dry_run=dry_run))
        self.observers = DecisionObservers((*logs, *observers))

    # What is in force.

    @property
    def policy(self) -> ViewedPolicy[KnowsContainers]:
        """The policy in force."""
        return self.engine.policy

    @property
    def machine(self) -> Machine:
        """The machine in force: the host without the CPUs of claims."""
        return self.engine.machine

    @property
    def state(self) -> KnowsContainers:
        """The policy's containers and grants; frozen."""
        return self.engine.state

    @property
    def makes_partitions(self) -> bool:
        """True if containers with exclusive CPUs get partitions of the kernel."""
        return self.delivery.makes_partitions

    def wanted(self, container: str) -> Pin | None:
        """Return the pin that a container should have now; None if it has ended."""
        return self.engine.wanted(container)

    def known_classes(self) -> KnownClasses:
        """Return the classes that adjustments may name."""
        return known_classes(self.config, self.class_hosts.rdt_groups)

    # Set-up by the daemon, before the runtime connects.

    def use_update_sender(self, updates: UpdateSender) -> None:
        """Send updates that no request asked for by *updates*."""
        self.updates = updates
        updates.on_taken = self.delivery.taken

    def use_delivery(self, delivery: PinDelivery) -> None:
        """Deliver pins to running containers by *delivery*."""
        self.delivery = delivery
        self.updates.on_taken = delivery.taken

    # Decisions, and what follows from them.

    def decide(self, event: Event) -> PolicyDecision:
        """Decide an event, and have the decision observed; deliver nothing.

        Raises:
            PolicyError: The node cannot grant the request; nothing has changed.
        """
        decision = self.engine.decide(event)
        self.notify(event, decision)
        return decision

    def decide_and_send(self, event: Event) -> None:
        """Decide an event that no reply with updates follows.

        Raises:
            PolicyError: As `decide`.
        """
        self.send(self.decide(event).updates)

    def notify(self, event: Event, decision: PolicyDecision) -> None:
        """Have a decision observed, and set its timers."""
        entries = decision.state.ledger.entries
        self.specs.adjustments.decided.note(event, entries.keys())
        # Made late: few policies set timers.
        if decision.timers and self._timers is None:
            self._timers = (self.options.timers or Timers)(self.decide_and_send)
        if self._timers is not None:
            self._timers.set(decision.timers)
            self._timers.keep_only(entries)
        self.observers.decided(event, decision)

    def notify_and_send(self, event: Updated, decision: PolicyDecision) -> None:
        """Have a running container follow other amounts; no request asked for them."""
        self.notify(event, decision)
        own = (PinUpdate(event.spec.id, decision.pin),) if decision.pin else ()
        self.send((*own, *decision.updates))

    def send(self, updates: Sequence[PinUpdate]) -> None:
        """Deliver the pins of containers; no request asked for them."""
        if not self.options.dry_run:
            self.delivery.send(update.container for update in updates)

    # Another policy in force.

    def rebuild(
        self,
        config: PolicyConfig,
        fits: PolicyConfig,
        *,
        machine: Machine,
        may_lose: bool,
        on_misfit: Callable[[BadSetting], None] | None = None,
    ) -> None:
        """Put a configuration in force, by what of it fits the machine.

        Raises:
            ResmgrError: As `Engine.rebuild`; nothing has changed.
        """
        decision = self.engine.rebuild(
            fits, machine, may_lose=may_lose, on_misfit=on_misfit
        )
        self._use(config)
        self.follow_engine()
        if not self.is_configuring:
            self.notify(Synchronized(()), decision)
            self.send(decision.updates)
            for event in self.specs.overheads.events():
                self.decide_and_send(event)
        self.observers.configured(config)

    def _use(self, config: PolicyConfig) -> None:
        self.config = config
        if self.options.pod_resources is not None:
            self.options.pod_resources.switch(asks_all=config.pod_resources)

    def follow_engine(self) -> None:
        """Read specs and set classes for the policy and the machine in force."""
        self.specs.change_machine(self.engine.machine)
        self.classes = self._new_classes()

    def change_runtime(self, runtime: RuntimeInfo) -> None:
        """Set classes as *runtime* can."""
        self.runtime = runtime
        self.classes = self._new_classes()

    def note_left_out(self, now: tuple[LeftOut, ...]) -> None:
        """Note what of the configuration the machine does not have now."""
        note_left_out(self.left_out, now)
        self.left_out = now

    def _new_classes(self) -> ContainerClasses:
        options = self.options
        # The setters hold the policy and the machine.
        context = ClassContext(
            self.runtime,
            self.machine,
            self.policy,
            self._tree,
            self.class_hosts,
            SetterOptions(options.mpolset, options.run_dir, options.dry_run),
        )
        return ContainerClasses(self.config, context)
