"""The plugin: NRI events in, the policy's decisions out as answers to the runtime."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from functools import partial

from nri_resmgr.app.annotations import Refused
from nri_resmgr.app.configuration.acceptance import ActiveConfiguration
from nri_resmgr.app.configuration.status import BUILT_IN, Document, DocumentSource
from nri_resmgr.app.observers.after_reply import after_reply
from nri_resmgr.app.observers.observer import DecisionObserver
from nri_resmgr.app.plugin.catch_up import catch_up, would_move
from nri_resmgr.app.plugin.changes.adjusting import note_adjusted, note_reported
from nri_resmgr.app.plugin.changes.claimed_cpus import take_claimed
from nri_resmgr.app.plugin.changes.kubelet_answers import follow_answer
from nri_resmgr.app.plugin.changes.reconfiguration import reconfigure, would_reconfigure
from nri_resmgr.app.plugin.container_files import ContainerFiles
from nri_resmgr.app.plugin.foreign_pins import ForeignPins
from nri_resmgr.app.plugin.node_policy import NodePolicy
from nri_resmgr.app.plugin.options import DEFAULT_OPTIONS, PluginOptions
from nri_resmgr.app.plugin.present_pins import with_present_pins
from nri_resmgr.app.plugin.translate import adjustment_of
from nri_resmgr.app.plugin.unobeyed_report import UnobeyedReport
from nri_resmgr.app.running.updates import pin_in, updates_of
from nri_resmgr.config import PolicyConfig, TopologyAwareConfig
from nri_resmgr.host.resource_files import ResourceFiles
from nri_resmgr.host.tree import Tree
from nri_resmgr.policy.decision import PinUpdate
from nri_resmgr.policy.events import (
    Created,
    PodStopped,
    Removed,
    Started,
    Stopped,
    Synchronized,
    Updated,
)
from nri_resmgr.stub.model import Container, LinuxResources, Pod
from nri_resmgr.stub.replies import CreateReply
from nri_resmgr.stub.runtime_info import Configuration
from nri_resmgr.stub.update import ContainerUpdate
from nri_resmgr.topology import Machine
from nri_resmgr.values import ResmgrError

Updates = tuple[ContainerUpdate, ...]


class ResourcePolicy(NodePolicy):
    """Answers the events of a runtime by the decisions of a policy.

    Every handler of an event takes the same steps:

    1. `SpecReader` reads the event into a `ContainerSpec`.
    2. `Engine` decides, and replaces its state by the decision's.
    3. Observers are scheduled: log, metrics, checkpoint and the others run once the
       reply is out.
    4. The pins of the decision become the answer.

    `NodePolicy` has these parts. Changes that no request causes use them as well: see
    `nri_resmgr.app.plugin.changes`.

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
        foreign_pins: Pins that the kubelet requests.
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
        super().__init__(
            machine,
            config or TopologyAwareConfig(),
            tree=tree,
            plugin_options=plugin_options,
            observers=observers,
        )
        document = plugin_options.document
        if document is None:
            document = Document("", DocumentSource.FILE) if config else BUILT_IN
        self.configuration = ActiveConfiguration(
            document,
            self,
            partial(reconfigure, self),
            partial(would_reconfigure, self),
            plugin_options.rules,
        )
        if plugin_options.pod_resources is not None:
            plugin_options.pod_resources.on_change = partial(follow_answer, self)
        self.foreign_pins = ForeignPins()
        self._files: ContainerFiles | None = None
        if plugin_options.run_dir and not plugin_options.dry_run:
            files = ResourceFiles(plugin_options.run_dir)
            path = plugin_options.resource_path
            self._files = ContainerFiles(files, self.engine, path)
            self.observers.add(self._files)
        self._unobeyed = UnobeyedReport(self, observers)
        self.observers.add(self._unobeyed)

    # Events of the runtime, in the order of a session, a pod and a container. The
    # stub calls them by name.

    def configure(self, handed_over: Configuration) -> None:
        """Take the runtime's name and version, and its configuration if that counts."""
        self.change_runtime(handed_over.runtime)
        self.is_configuring = True
        try:
            self.configuration.hand_over(handed_over.text)
        finally:
            self.is_configuring = False

    def synchronize(
        self, pods: Sequence[Pod], containers: Sequence[Container]
    ) -> Updates:
        """Place all running containers, as far as possible where they were before."""
        # After Configure, which may have switched policies; before `catch_up`, which
        # compares with the restored containers.
        self.engine.restore()
        note_adjusted(self)
        self.configuration.set_placing_kind(self.config.kind)
        present = frozenset(pod.id for pod in pods)
        self.vm_pods.begin_again(pods)
        containers = self.claims.synchronize(pods, containers, self.host_machine.online)
        take_claimed(self, sends=False)
        reported = self.specs.of_all(pods, containers)
        note_reported(self)
        specs = with_present_pins(
            reported, self.engine.known, self.delivery.in_force(), self.machine
        )
        updates = catch_up(
            Synchronized(tuple(specs), present),
            self.engine.known,
            partial(would_move, self.engine.policy, self.engine.state),
            self.decide,
            self.specs.overheads,
        )
        if self.options.dry_run:
            return ()
        recorded = {spec.id: spec.present for spec in reported}
        return updates_of(self.delivery.synchronize(updates, recorded))

    def run_pod_sandbox(self, pod: Pod) -> None:
        """Place a new pod as a whole, where its containers are known."""
        self.claims.sandbox(pod)
        try:
            event = self.specs.of_new_pod(pod, in_vm=self.vm_pods.is_vm(pod))
            self.vm_pods.add(pod)
            self.decide_and_send(event)
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
            update = self.specs.of_updated_pod(pod, overhead, resources)
            decisions = self.engine.decide_all(update.parts)
        except ResmgrError as error:
            self._refuse(error, pod)
            return
        self.specs.accept(update)
        for event, decision in zip(update.parts, decisions, strict=True):
            self.notify_and_send(event, decision)
        if update.overhead is not None:
            self.decide_and_send(update.overhead)

    def create_container(self, pod: Pod, container: Container) -> CreateReply | None:
        """Place a new container; the reply has its pins.

        One that has CPUs of another driver's claim is left alone.
        """
        if self.claims.new(pod, container, self.host_machine.online):
            return self._left_alone()
        try:
            mistakes = Refused.ALL if self.policy.refuses_strict else Refused.FOR_DAEMON
            spec = self.specs.of_new(pod, container, mistakes)
            self.foreign_pins.note_new(container, spec)
            self._unobeyed.check(spec)
            spec, others = self.specs.in_budget(pod, spec)
            if classes := self.classes.of(pod, container, spec):
                classes.check()
            created, parts = Created(spec), tuple(map(Updated, others))
            *decided, decision = self.engine.decide_creation(
                parts, created, classes.check_placement if classes else None
            )
        except ResmgrError as error:
            self._refuse(error, pod, container)
            return None
        mount = self._files.mount_for(container) if self._files else None
        if mount and self._files:
            after_reply(self._files.fill, container.id)
        for part, its_decision in zip(parts, decided, strict=True):
            self.notify_and_send(part, its_decision)
        self.notify(created, decision)
        if self.options.dry_run:
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
        decision = self.decide(Started(container.id))
        known = self.engine.known(container.id)
        if known is None or self.options.dry_run:
            return None
        try:
            if classes := self.classes.of(pod, container, known.spec):
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
            spec = self.specs.of_present(pod, container, resources)
            self.foreign_pins.note_update(container, spec, pin_in(resources))
            spec, _ = self.specs.in_budget(pod, spec)
            decision = self.decide(Updated(spec))
        except ResmgrError as error:
            self._refuse(error, pod, container)
            return ()
        if self.options.dry_run:
            return ()
        pins = (PinUpdate(container.id, decision.pin),) if decision.pin else ()
        self.delivery.answered(container.id, decision.pin)
        updates = updates_of(pins) + self._answer(decision.updates)
        classes = self.classes.of(pod, container, spec)
        return classes.update(updates, decision) if classes else updates

    def stop_container(self, _pod: Pod, container: Container) -> Updates:
        """Release a container's grant, which others may get."""
        if self.claims.leaves(container.id):
            return ()
        return self._answer(self.decide(Stopped(container.id)).updates)

    def remove_container(self, _pod: Pod, container: Container) -> None:
        """Release a container whose stop was not reported."""
        was_left = self.claims.leaves(container.id)
        self.claims.removed(container.id)
        if was_left:
            return
        self.decide_and_send(Removed(container.id))

    def stop_pod_sandbox(self, pod: Pod) -> None:
        """Release everything that a pod still has."""
        self.vm_pods.forget(pod.id)
        self.decide_and_send(PodStopped(pod.id))

    def remove_pod_sandbox(self, pod: Pod) -> None:
        """Release a pod whose stop was not reported: its creation may have failed."""
        self.vm_pods.forget(pod.id)
        self.decide_and_send(PodStopped(pod.id))
        self.specs.forget(pod.id)
        self.claims.sandbox_gone(pod)
        take_claimed(self)

    def _left_alone(self) -> CreateReply | None:
        """Answer the creation of a container that has CPUs of a claim."""
        updates = take_claimed(self, sends=False)
        return (
            None if self.options.dry_run else CreateReply(None, self._answer(updates))
        )

    def _refuse(
        self, error: ResmgrError, pod: Pod, container: Container | None = None
    ) -> None:
        self.observers.refused(error, pod, container)
        error.is_logged = True
        if not self.options.dry_run:  # a dry run must not fail a creation
            raise error

    def _answer(self, updates: Sequence[PinUpdate]) -> Updates:
        return () if self.options.dry_run else updates_of(self.delivery.apply(updates))
