"""The plugin: NRI events in, the policy's decisions out as answers to the runtime."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec

from nri_resmgr.app.adjustments.adjustment import Adjustment
from nri_resmgr.app.adjustments.judgement import (
    Judgement,
    judge,
    refused_adjustment,
)
from nri_resmgr.app.adjustments.known_classes import KnownClasses, known_classes
from nri_resmgr.app.adjustments.override import unadjusted, with_adjustment
from nri_resmgr.app.annotations import Refused
from nri_resmgr.app.classes.container_classes import ClassContext, ContainerClasses
from nri_resmgr.app.classes.hosts import ClassHosts
from nri_resmgr.app.classes.setter import SetterOptions
from nri_resmgr.app.configuration.acceptance import ActiveConfiguration
from nri_resmgr.app.configuration.status import (
    BUILT_IN,
    Document,
    DocumentSource,
    WouldChange,
)
from nri_resmgr.app.observers.after_reply import after_reply
from nri_resmgr.app.observers.dispatch import DecisionObservers
from nri_resmgr.app.observers.observer import DecisionObserver, PolicyDecision
from nri_resmgr.app.observing.decision_log import DecisionLog
from nri_resmgr.app.observing.refusal_log import RefusalLog
from nri_resmgr.app.plugin.catch_up import catch_up
from nri_resmgr.app.plugin.claimed_containers import ClaimedContainers
from nri_resmgr.app.plugin.container_files import ContainerFiles
from nri_resmgr.app.plugin.cpu_claims import ClaimTable
from nri_resmgr.app.plugin.engine import Engine, EventRefused, RestoreCheckpoint
from nri_resmgr.app.plugin.foreign_pins import ForeignPins
from nri_resmgr.app.plugin.options import DEFAULT_OPTIONS, EventTimers, PluginOptions
from nri_resmgr.app.plugin.present_pins import with_present_pins
from nri_resmgr.app.plugin.specs import SpecReader
from nri_resmgr.app.plugin.timers import Timers
from nri_resmgr.app.plugin.translate import adjustment_of
from nri_resmgr.app.plugin.unobeyed_report import UnobeyedReport
from nri_resmgr.app.policies.fitting import (
    LeftOut,
    fitted,
    left_out,
    note_left_out,
    put_in_force,
)
from nri_resmgr.app.requests import RequestSource
from nri_resmgr.app.running.delivery import ByRuntime, PinDelivery
from nri_resmgr.app.running.updates import pin_in, updates_of
from nri_resmgr.app.running.vm_pods import VmPods
from nri_resmgr.config import BadSetting, PolicyConfig, TopologyAwareConfig
from nri_resmgr.host.resource_files import ResourceFiles
from nri_resmgr.host.tree import Tree
from nri_resmgr.kubelet.pod_resources import PodName
from nri_resmgr.log import Logger
from nri_resmgr.policy.claims import Claim, ClaimsNotOffered, PreparedClaim
from nri_resmgr.policy.decision import PinUpdate
from nri_resmgr.policy.events import (
    NO_PIN,
    ClaimPrepared,
    ClaimReturned,
    ContainerSpec,
    Created,
    Event,
    Pin,
    PodStopped,
    Rebalance,
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
from nri_resmgr.topology.without_cpus import without_cpus
from nri_resmgr.values import InputError, PolicyError, ResmgrError

log = Logger(__name__)

Updates = tuple[ContainerUpdate, ...]


@dataclass(eq=False)
class DoesNotRebalance(InputError):
    """The policy in force never moves a container."""

    policy: str

    def __str__(self) -> str:
        return f"{self.policy} does not rebalance: its containers stay where they are"


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
        delivery: Delivers changed pins to running containers.
        class_hosts: The known classes of the host.
        foreign_pins: Pins that the kubelet requests.
        vm_pods: The present pods in virtual machines.
        left_out: What of the configuration the machine does not have now.
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
        self._config = config or TopologyAwareConfig()
        self._engine = Engine(
            machine,
            fitted(self._config, machine),
            tree,
            plugin_options.why_no_devices,
        )
        self.left_out: tuple[LeftOut, ...] = ()
        self._note_left_out(left_out(self._config, machine))
        self._tree = tree
        self._specs = SpecReader(
            machine, self._engine.known, self._engine.in_pod, tree, plugin_options
        )
        self._specs.use_claims(lambda: self._engine.claims)
        self.claims = ClaimedContainers(
            plugin_options.pod_resources, plugin_options.cpu_drivers
        )
        if plugin_options.pod_resources is not None:
            plugin_options.pod_resources.on_change = self._pod_resources_changed
        self._timers: EventTimers | None = None
        self.updates = UpdateSender()
        self.delivery: PinDelivery = ByRuntime(self)
        self._runtime = RuntimeInfo()
        self.class_hosts = ClassHosts(tree)
        self._specs.adjustments.use_classes(self._known_classes)
        self.foreign_pins = ForeignPins()
        self.vm_pods = VmPods(plugin_options.vm_handlers)
        self._classes = self._new_classes()
        self._is_configuring = False
        self._files: ContainerFiles | None = None
        dry_run = plugin_options.dry_run
        all_observers = [
            DecisionLog(dry_run=dry_run),
            RefusalLog(dry_run=dry_run),
            *observers,
        ]
        if plugin_options.run_dir and not plugin_options.dry_run:
            files = ResourceFiles(plugin_options.run_dir)
            path = plugin_options.resource_path
            self._files = ContainerFiles(files, self._engine, path)
            all_observers.append(self._files)
        self._unobeyed = UnobeyedReport(self, observers)
        all_observers.append(self._unobeyed)
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
        # After Configure, which may have switched policies; before `catch_up`, which
        # compares with the restored containers.
        self._engine.restore()
        self._note_adjusted()
        self.configuration.set_placing_kind(self.config.kind)
        present = frozenset(pod.id for pod in pods)
        self.vm_pods.begin_again(pods)
        containers = self.claims.synchronize(pods, containers, self._machine.online)
        self._take_claimed(sends=False)
        reported = self._specs.of_all(pods, containers)
        specs = with_present_pins(
            reported, self._engine.known, self.delivery.in_force(), self.machine
        )
        updates = catch_up(
            Synchronized(tuple(specs), present),
            self._engine.known,
            self._engine.propose,
            self._decide,
            self._specs.overheads,
        )
        if self._options.dry_run:
            return ()
        recorded = {spec.id: spec.present for spec in reported}
        return updates_of(self.delivery.synchronize(updates, recorded))

    def run_pod_sandbox(self, pod: Pod) -> None:
        """Place a new pod as a whole, where its containers are known."""
        self.claims.sandbox(pod)
        try:
            event = self._specs.of_new_pod(pod, in_vm=self.vm_pods.is_vm(pod))
            self.vm_pods.add(pod)
            self._decide_and_send(event)
        except ResmgrError as error:
            self._refuse(error, pod)

    def update_pod_sandbox(
        self, pod: Pod, overhead: LinuxResources, resources: LinuxResources
    ) -> None:
        """Follow other sums of a pod: its containers may have other parts of them.

        The kubelet has changed the pod's cgroup by then; if this is refused, it logs
        that, and the parts stay as they were.
        """
        try:
            update = self._specs.of_updated_pod(pod, overhead, resources)
            decisions = self._engine.decide_all(update.parts)
        except ResmgrError as error:
            self._refuse(error, pod)
            return
        self._specs.accept(update)
        for event, decision in zip(update.parts, decisions, strict=True):
            self._note_part(event, decision)
        if update.overhead is not None:
            self._decide_and_send(update.overhead)

    def create_container(self, pod: Pod, container: Container) -> CreateReply | None:
        """Place a new container; the reply has its pins and changed pins of others.

        One that has CPUs of another driver's claim is left alone.
        """
        if self.claims.new(pod, container, self._machine.online):
            return self._left_alone()
        try:
            mistakes = Refused.ALL if self.policy.refuses_strict else Refused.FOR_DAEMON
            spec = self._specs.of_new(pod, container, mistakes)
            self.foreign_pins.note_new(container, spec)
            self._unobeyed.check(spec)
            spec, others = self._specs.in_budget(pod, spec)
            if classes := self._classes.of(pod, container, spec):
                classes.check()
            created, parts = Created(spec), tuple(map(Updated, others))
            *decided, decision = self._engine.decide_creation(
                parts, created, classes.check_placement if classes else None
            )
        except ResmgrError as error:
            self._refuse(error, pod, container)
            return None
        mount = self._files.mount_for(container) if self._files else None
        if mount and self._files:
            after_reply(self._files.fill, container.id)
        for part, its_decision in zip(parts, decided, strict=True):
            self._note_part(part, its_decision)
        self._notify(created, decision)
        if self._options.dry_run:
            return None
        self.delivery.created(spec.id, decision.pin.over(spec.present))
        adjustment = adjustment_of(decision.pin, *((mount,) if mount else ()))
        if classes:
            adjustment = classes.add(adjustment, decision)
        return CreateReply(adjustment, self._answer(decision.updates))

    def start_container(self, pod: Pod, container: Container) -> Awaitable[None] | None:
        """Start timers and classes that count from the start of a container.

        The start waits until no other container uses its CPUs any more.
        """
        if self.claims.leaves(container.id):
            return self.delivery.before_start(container.id)
        decision = self._decide(Started(container.id))
        known = self._engine.known(container.id)
        if known is None or self._options.dry_run:
            return None
        try:
            if classes := self._classes.of(pod, container, known.spec):
                classes.start(decision)
        except ResmgrError as error:
            self._refuse(error, pod, container)
        return self.delivery.before_start(container.id)

    def update_container(
        self, pod: Pod, container: Container, resources: LinuxResources
    ) -> Updates:
        """Place a resized container again, or assert its pins over the request's."""
        if self.claims.leaves(container.id):
            return ()
        try:
            spec = self._specs.of_present(pod, container, resources)
            self.foreign_pins.note_update(container, spec, pin_in(resources))
            spec, _ = self._specs.in_budget(pod, spec)
            decision = self._decide(Updated(spec))
        except ResmgrError as error:
            self._refuse(error, pod, container)
            return ()
        if self._options.dry_run:
            return ()
        pins = (PinUpdate(container.id, decision.pin),) if decision.pin else ()
        self.delivery.answered(container.id, decision.pin)
        updates = updates_of(pins) + self._answer(decision.updates)
        classes = self._classes.of(pod, container, spec)
        return classes.update(updates, decision) if classes else updates

    def stop_container(self, _pod: Pod, container: Container) -> Updates:
        """Release a container's grant; the shared pool grows in the reply."""
        if self.claims.leaves(container.id):
            return ()
        return self._answer(self._decide(Stopped(container.id)).updates)

    def remove_container(self, _pod: Pod, container: Container) -> None:
        """Release a container whose stop was not reported."""
        was_left = self.claims.leaves(container.id)
        self.claims.removed(container.id)
        if was_left:
            return
        self._decide_and_send(Removed(container.id))

    def stop_pod_sandbox(self, pod: Pod) -> None:
        """Release everything that a pod still has."""
        self.vm_pods.forget(pod.id)
        self._decide_and_send(PodStopped(pod.id))

    def remove_pod_sandbox(self, pod: Pod) -> None:
        """Release a pod whose stop was not reported: its creation may have failed."""
        self.vm_pods.forget(pod.id)
        self._decide_and_send(PodStopped(pod.id))
        self._specs.forget(pod.id)
        self.claims.sandbox_gone(pod)
        self._take_claimed()

    # State, for observers, metrics and the control socket.

    @property
    def config(self) -> PolicyConfig:
        """The configuration in force, with what is `left_out` at present."""
        return self._config

    @property
    def policy(self) -> ViewedPolicy[KnowsContainers]:
        """The policy in force."""
        return self._engine.policy

    @property
    def machine(self) -> Machine:
        """The machine in force; differs from the host's where that does not fit."""
        return self._engine.machine

    @property
    def makes_partitions(self) -> bool:
        """True if containers with exclusive CPUs get partitions of the kernel."""
        return self.delivery.makes_partitions

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
        updates.on_taken = self.delivery.taken

    def use_delivery(self, delivery: PinDelivery) -> None:
        """Deliver pins to running containers by *delivery*."""
        self.delivery = delivery
        self.updates.on_taken = delivery.taken

    def finish(self) -> None:
        """Have all decisions observed now: the process is about to end."""
        self._observers.finish()

    # Changes that no request of the runtime causes.

    def reconfigure(self, config: PolicyConfig) -> None:
        """Put another configuration in force, also while containers run.

        Raises:
            BadSetting: It does not fit the machine; nothing has changed.
            ExclusiveCpusLost: It takes exclusive CPUs from containers, and does not say
                that it may; likewise.
            PlacesChanged: The same of places that containers know.
        """
        fits = fitted(config, self._machine)
        usable, may_lose = self._usable(), config.allow_loss
        self._rebuild(config, fits, machine=usable, may_lose=may_lose)
        self._note_left_out(left_out(config, self._machine))
        if self.claims.conflict:
            self._take_claimed()  # it may leave their CPUs alone

    def would_reconfigure(self, config: PolicyConfig) -> tuple[WouldChange, ...]:
        """Return the containers that `reconfigure` would pin otherwise; change none.

        Raises:
            ResmgrError: As `reconfigure`.
        """
        fits = fitted(config, self._machine)
        pins = self._engine.would_pin(fits, self._usable())
        return tuple(
            WouldChange(key, entry.spec.title, now, then)
            for key, entry in self.state.ledger.entries.items()
            if (now := self.wanted(key) or NO_PIN) != (then := pins.get(key, NO_PIN))
        )

    def change_machine(self, machine: Machine) -> None:
        """Put another machine in force: CPUs or memory came or went.

        What the configuration says of CPUs that are not there is left out.

        Raises:
            BadSetting: A policy of another package fits no part of its configuration.
        """
        self._machine = machine
        config, usable = self._config, self._usable()
        # The CPUs are gone already, whoever had them.
        misfits: list[LeftOut] = []
        rebuild = partial(
            self._rebuild,
            config,
            machine=usable,
            may_lose=True,
            on_misfit=lambda one: misfits.append(LeftOut(one.path, one.why)),
        )
        check = partial(self._engine.check, machine=usable)
        found = put_in_force(config, machine, rebuild, check)
        self._note_left_out((*found, *misfits))

    def _note_left_out(self, now: tuple[LeftOut, ...]) -> None:
        note_left_out(self.left_out, now)
        self.left_out = now

    def begin_claims(self, table: ClaimTable) -> None:
        """Begin with the claims that an earlier process knew.

        Before the runtime connects. Their CPUs are taken at once, so that the
        checkpoint fits.
        """
        self.claims.begin(table)
        self._take_claimed(sends=False)

    def _left_alone(self) -> CreateReply | None:
        """Answer the creation of a container that has CPUs of a claim."""
        updates = self._take_claimed(sends=False)
        return (
            None if self._options.dry_run else CreateReply(None, self._answer(updates))
        )

    def _pod_resources_changed(self, pod: PodName, uid: str) -> None:
        """Follow the kubelet's answer about a pod, whose containers may run already."""
        found = self.claims.answered(pod, uid)
        for key in found.to_leave:
            self._leave(key)
        more = [self._specs.of_late(*one) for one in found.to_place]
        self._take_claimed(more)
        for spec in self._specs.with_devices(pod, uid):
            event = Updated(spec)
            try:
                decision = self._engine.follow_hints(spec)
            except PolicyError as error:
                log.warning("hints.not-followed", title=spec.title, why=str(error))
                continue
            self._note_part(event, decision)

    def _leave(self, container: str) -> None:
        """Release a container that has a claim after all, and give it its CPUs back."""
        self._decide_and_send(Removed(container))
        if not self._options.dry_run:
            own = PinUpdate(
                container, Pin(self.claims.table.containers[container].cpus)
            )
            self.updates.send(lambda _: updates_of((own,))[0], (container,))

    def _usable(self) -> Machine:
        """Return the host without the CPUs of claims, as far as these can be taken."""
        claims, cpus = self.claims, self.claims.table.cpus
        return without_cpus(
            self._machine, cpus & claims.taken if claims.conflict else cpus
        )

    def _take_claimed(
        self, more: Sequence[ContainerSpec] = (), *, sends: bool = True
    ) -> tuple[PinUpdate, ...]:
        """Put the CPUs of present claims out of the policy's reach.

        Args:
            more: Running containers to place as well.
            sends: Whether to send changed pins of others.

        Returns:
            The changed pins.
        """
        claims, cpus = self.claims, self.claims.table.cpus
        if cpus == claims.taken and not more:
            claims.conflict = ""
            return ()
        machine, config = self._engine.machine, self._engine.config
        try:
            usable = without_cpus(self._machine, cpus)
            decision = self._engine.rebuild(config, usable, may_lose=True, more=more)
            claims.taken, claims.conflict, machine = cpus, "", usable
        except ResmgrError as error:
            # The configuration needs these CPUs, such as reserved ones.
            if str(error) != claims.conflict:
                log.error("claims.conflict", cpus=str(cpus), why=str(error))
            claims.conflict = str(error)
            if not more:
                return ()
            decision = self._engine.rebuild(config, machine, may_lose=True, more=more)
        self._specs.change_machine(machine)
        # The setters hold the policy and the machine.
        self._classes = self._new_classes()
        self._notify(Synchronized(()), decision)
        self._observers.configured(self.config)
        updates = (
            *(PinUpdate(one.id, self.wanted(one.id) or NO_PIN) for one in more),
            *decision.updates,
        )
        if sends:
            self._send(updates)
        return updates

    def begin_adjusted(self, found: Sequence[Adjustment] | None) -> None:
        """Begin with adjustments, before the runtime connects; None for unknown ones.

        If they conflict once the containers are known, these keep what they had.
        """
        self._specs.adjustments.begin(found)

    @property
    def adjustments(self) -> tuple[Adjustment, ...]:
        """The adjustments in force; none while it is not known which they are."""
        return self._specs.adjustments.present

    def adjust(self, found: Sequence[Adjustment]) -> Judgement:
        """Put adjustments in force as a whole, running containers included.

        Returns:
            What applies to which container; with errors nothing has changed.
        """
        entries = self.state.ledger.entries
        own = [unadjusted(entry.spec) for entry in entries.values()]
        judged = judge(found, own, self._known_classes())
        if judged.errors:
            return judged
        by_name = {one.name: one for one in found}
        applied = judged.applied
        specs = [
            with_adjustment(one, by_name[applied[one.id]]) if one.id in applied else one
            for one in own
        ]
        events = [Updated(one) for one in specs if one != entries[one.id].spec]
        # Those that need less make room for those that need more.
        events.sort(
            key=lambda one: one.spec.request - entries[one.spec.id].spec.request
        )
        try:
            decisions = self._engine.decide_all(events)
        except EventRefused as refused:
            return refused_adjustment(judged, refused.container, str(refused))
        self._specs.adjustments.accept(found)
        for event, decision in zip(events, decisions, strict=True):
            self._notify(event, decision)
            own_pin = (event.spec.id,) if decision.pin else ()
            others = (one.container for one in decision.updates)
            if not self._options.dry_run:
                self.send_pins((*own_pin, *others))
        if events and self.policy.rebalances:
            self.rebalance(Rebalance(self.config.rebalance.at_most))
        return judged

    def use_requests(self, source: RequestSource) -> None:
        """Query *source* for requests before all others from now on."""
        self._specs.use_requests(source)

    def correct_requests(self, pods: Iterable[str]) -> None:
        """Place containers anew whose requests a source knows better by now.

        Those that the node cannot grant keep what they have.

        Args:
            pods: Ids of pod sandboxes.
        """
        known = self.state.ledger.entries
        for pod in pods:
            if (late := self._specs.of_late_pod(pod)) is not None:
                is_vm = pod in self.vm_pods.present
                try:
                    self._decide_and_send(msgspec.structs.replace(late, in_vm=is_vm))
                except PolicyError as error:
                    log.warning("requests.not-granted", pod=pod, why=str(error))
            events = [Updated(one) for one in self._specs.corrected(pod)]
            # As for adjustments.
            events.sort(
                key=lambda one: one.spec.request - known[one.spec.id].spec.request
            )
            for event in events:
                try:
                    decision = self._engine.decide(event)
                except PolicyError as error:
                    spec = event.spec
                    log.warning(
                        "requests.not-granted",
                        container=spec.id,
                        title=spec.title,
                        source=spec.origin,
                        why=str(error),
                    )
                else:
                    self._note_part(event, decision)

    def _known_classes(self) -> KnownClasses:
        return known_classes(self.config, self.class_hosts.rdt_groups)

    def _note_adjusted(self) -> None:
        """Note the limits that an earlier process has set."""
        for entry in self.state.ledger.entries.values():
            if entry.spec.adjusted is not None:
                self.class_hosts.limits.note_adjusted(entry.spec)

    def prepare_claim(self, claim: Claim) -> PreparedClaim:
        """Give a claim CPUs of its own, or return those that it has.

        Raises:
            PolicyError: The node cannot grant them.
        """
        if (known := self._engine.claims.get(claim.uid)) is not None:
            return known
        if self._options.dry_run:
            raise ClaimsNotOffered("a dry run")
        self._decide_and_send(ClaimPrepared(claim))
        return self._engine.claims[claim.uid]

    def return_claim(self, uid: str) -> None:
        """Take the CPUs of a claim back; it may be unknown.

        Raises:
            ClaimInUse: A container still has them.
        """
        if uid in self._engine.claims:
            self._decide_and_send(ClaimReturned(uid))

    def rebalance(self, event: Rebalance) -> PolicyDecision:
        """Move containers to better places; return the decision, which is sent.

        Raises:
            DoesNotRebalance: The policy in force never moves any.
        """
        self._check_rebalances()
        decision = self._decide(event)
        self._send(decision.updates)
        return decision

    def would_rebalance(self, event: Rebalance) -> PolicyDecision:
        """Return what `rebalance` would decide, and change nothing."""
        self._check_rebalances()
        return self.policy.decide(self.state, event)

    def _check_rebalances(self) -> None:
        if not self.policy.rebalances:
            raise DoesNotRebalance(self.config.kind)

    def send_pins(self, containers: Iterable[str]) -> None:
        """Deliver the pins of containers; no request asked for them."""
        self.delivery.send(containers)

    def pending_pins(self) -> frozenset[str]:
        """Return the containers whose pins are not in force yet."""
        return self.delivery.pending()

    def is_by_runtime(self, container: str) -> bool:
        """Return whether a container is updated by the runtime, not by its cgroup."""
        return self.delivery.is_by_runtime(container)

    def wanted(self, container: str) -> Pin | None:
        """Return the pin that a container should have now; None if it has ended."""
        return self._engine.wanted(container)

    def _rebuild(
        self,
        config: PolicyConfig,
        fits: PolicyConfig,
        *,
        machine: Machine,
        may_lose: bool,
        on_misfit: Callable[[BadSetting], None] | None = None,
    ) -> None:
        """Put a configuration in force, by what of it fits the machine."""
        decision = self._engine.rebuild(
            fits, machine, may_lose=may_lose, on_misfit=on_misfit
        )
        self._config = config
        self._specs.change_machine(machine)
        # The setters hold the policy and the machine.
        self._classes = self._new_classes()
        if not self._is_configuring:
            self._notify(Synchronized(()), decision)
            self._send(decision.updates)
            for event in self._specs.overheads.events():
                self._decide_and_send(event)
        self._observers.configured(config)

    def _new_classes(self) -> ContainerClasses:
        options = self._options
        context = ClassContext(
            self._runtime,
            self.machine,
            self.policy,
            self._tree,
            self.class_hosts,
            SetterOptions(options.mpolset, options.run_dir, options.dry_run),
        )
        return ContainerClasses(self.config, context)

    def _decide(self, event: Event) -> PolicyDecision:
        decision = self._engine.decide(event)
        self._notify(event, decision)
        return decision

    def _notify(self, event: Event, decision: PolicyDecision) -> None:
        # Made late: few policies set timers.
        if decision.timers and self._timers is None:
            self._timers = (self._options.timers or Timers)(self._decide_and_send)
        if self._timers is not None:
            self._timers.set(decision.timers)
            self._timers.keep_only(decision.state.ledger.entries)
        self._observers.decided(event, decision)

    def _note_part(self, event: Updated, decision: PolicyDecision) -> None:
        """Give a running container other amounts; no request asked for them."""
        self._notify(event, decision)
        own = (PinUpdate(event.spec.id, decision.pin),) if decision.pin else ()
        self._send((*own, *decision.updates))

    def _decide_and_send(self, event: Event) -> None:
        """Decide on an event that no reply with updates follows."""
        self._send(self._decide(event).updates)

    def _refuse(
        self, error: ResmgrError, pod: Pod, container: Container | None = None
    ) -> None:
        self._observers.refused(error, pod, container)
        error.is_logged = True
        if not self._options.dry_run:  # a dry run must not fail a creation
            raise error

    def _send(self, updates: Sequence[PinUpdate]) -> None:
        if not self._options.dry_run:
            self.send_pins(update.container for update in updates)

    def _answer(self, updates: Sequence[PinUpdate]) -> Updates:
        return () if self._options.dry_run else updates_of(self.delivery.apply(updates))
