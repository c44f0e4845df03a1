"""A node of a policy alone: steps become events of the policy, without a runtime."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import attrs
import msgspec

from nri_resmgr.app.annotations import read_preferences
from nri_resmgr.app.annotations.unobeyed import unobeyed
from nri_resmgr.app.configuration.build import build_policy
from nri_resmgr.app.requests.static_pools import read_pool_request
from nri_resmgr.policies import parse_config
from nri_resmgr.policy.decision import Decision
from nri_resmgr.policy.events import (
    ColdStartEnded,
    ContainerSpec,
    Created,
    Event,
    PodCreated,
    PodStopped,
    Rebalance,
    Removed,
    RequestOrigin,
    Started,
    Stopped,
    Synchronized,
    Updated,
)
from nri_resmgr.policy.ledger import KnowsContainers
from nri_resmgr.policy.losses import check_losses
from nri_resmgr.policy.overhead_name import OVERHEAD_NAME
from nri_resmgr.policy.views import ViewedPolicy
from nri_resmgr.scenario.rows import ContainerRow
from nri_resmgr.scenario.steps import (
    AnnouncePod,
    Create,
    EndColdStart,
    Hotplug,
    Reconfigure,
    Remove,
    Restart,
    StartContainer,
    Step,
    Stop,
    StopPod,
    Update,
)
from nri_resmgr.topology import Machine
from nri_resmgr.topology.hints import complete_hints
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import Bytes, MilliCpus, QosClass, ResmgrError


@attrs.define(eq=False, repr=False)
class DirectNode:
    """A node on which a scenario is played.

    Attributes:
        machine: The present machine.
        document: The configuration in force.
        policy: The policy in force.
        state: The policy's state.
        warnings: Warnings about annotations in the last step.
    """

    machine: Machine
    document: str
    policy: ViewedPolicy[KnowsContainers]
    state: KnowsContainers
    warnings: list[str] = attrs.field(factory=list)
    _rows: dict[str, ContainerRow] = attrs.field(factory=dict)

    @classmethod
    def of(cls, machine: str, document: str) -> Self:
        """Set up a synthetic machine and a policy.

        Raises:
            InputError: A text has a mistake, or they do not fit together.
        """
        model = parse_spec(machine)
        policy = build_policy(parse_config(document), model)
        return cls(model, document, policy, policy.start())

    def play(self, step: Step) -> Decision[KnowsContainers]:
        """Play one step.

        Raises:
            ResmgrError: The step is refused, and nothing has changed.
            TypeError: The step needs a runtime.
        """
        self.warnings.clear()
        before = self.policy, self.machine, self.document, self.state
        try:
            if isinstance(step, Restart) and not step.restores:
                event: Event = self._present_containers()
                self.state = self.policy.start()
            else:
                event = self._event(step)  # which may replace the policy
            decision = self.policy.decide(self.state, event)
            if isinstance(step, Reconfigure):
                self._check_losses(before[0], before[3], decision.state)
        except ResmgrError:
            self.policy, self.machine, self.document, self.state = before
            raise
        self.state = decision.state
        return decision

    def _check_losses(
        self,
        former: ViewedPolicy[KnowsContainers],
        before: KnowsContainers,
        after: KnowsContainers,
    ) -> None:
        if not parse_config(self.document).allow_loss:
            check_losses(former, before, self.policy, after, self.machine.online)

    def _event(self, step: Step) -> Event:
        match step:
            case Create(name, row):
                self._rows[name] = row
                return Created(self._new(name, row))
            case Update(name, row):
                self._rows[name] = row.over(self._rows.get(name, ContainerRow()))
                return Updated(self._spec(name, self._rows[name]))
            case AnnouncePod(pod, rows, overhead):
                specs = self._specs(
                    {
                        key: msgspec.structs.replace(row, pod=pod)
                        for key, row in rows.items()
                    }
                )
                return PodCreated(
                    pod,
                    tuple(msgspec.structs.replace(one, id="") for one in specs),
                    frozenset(rows),
                    self._overhead(pod, overhead),
                )
            case Restart(_, rows) if rows is not None:
                return Synchronized(self._specs(rows))
            case Restart() | Reconfigure() | Hotplug():
                return self._resynchronize(step)
        return _plain_event(step)

    def _resynchronize(self, step: Restart | Reconfigure | Hotplug) -> Event:
        event = self._present_containers()
        if isinstance(step, Hotplug):
            self.machine = parse_spec(step.machine)
        if not isinstance(step, Restart):
            self.document = step.document or self.document
            self.policy = build_policy(parse_config(self.document), self.machine)
        if isinstance(step, Reconfigure) and step.switches:
            self.state = self.policy.start()
        return event

    def _specs(self, rows: Mapping[str, ContainerRow]) -> tuple[ContainerSpec, ...]:
        return tuple(self._spec(name, row) for name, row in rows.items())

    def _overhead(self, pod: str, row: ContainerRow | None) -> ContainerSpec | None:
        if row is None:
            return None
        row = msgspec.structs.replace(row, pod=pod, name=OVERHEAD_NAME)
        return msgspec.structs.replace(
            self._spec("", row),
            qos=QosClass.BURSTABLE,
            limit=row.effective_limit,
            source=RequestOrigin.OVERHEAD,
        )

    def _spec(self, name: str, row: ContainerRow) -> ContainerSpec:
        return spec_of_row(name, row, self.machine, self.warnings)

    def _new(self, name: str, row: ContainerRow) -> ContainerSpec:
        spec, policy = self._spec(name, row), self.policy
        for one in unobeyed(spec.preferences, policy.obeys):
            self.warnings.append(one.sentence(policy.kind))
            if one.refuses and policy.refuses_strict:
                raise one.refusal(spec.title or spec.id, policy.kind)
        return spec

    def _present_containers(self) -> Synchronized:
        entries = self.state.ledger.entries.values()
        specs = (
            msgspec.structs.replace(one.spec, present=one.last_sent) for one in entries
        )
        return Synchronized(tuple(specs))


def _plain_event(step: Step) -> Event:
    match step:
        case Stop(name):
            return Stopped(name)
        case Remove(name):
            return Removed(name)
        case StopPod(pod):
            return PodStopped(pod)
        case StartContainer(name):
            return Started(name)
        case EndColdStart(name):
            return ColdStartEnded(name)
        case Rebalance():
            return step
    raise TypeError(f"{type(step).__name__} needs a runtime")


def spec_of_row(
    name: str, row: ContainerRow, machine: Machine, warnings: list[str]
) -> ContainerSpec:
    """Return the spec of a container.

    Args:
        name: Its id, and its name in the pod unless the row has one.
        row: The container in the scenario, with its QoS class.
        machine: The machine of the node.
        warnings: Warnings about ignored annotations are appended.

    Raises:
        BadAnnotation: An annotation that must not be ignored is invalid.
    """
    pod, namespace = row.pod or f"pod-of-{name}", row.namespace or "default"
    called = row.name or name
    read = read_preferences(row.annotations or {}, called, pod=f"{namespace}/{pod}")
    warnings.extend(f"{one.key}: {one.why}" for one in read.problems)
    return ContainerSpec(
        id=name,
        pod=pod,
        title=f"{namespace}/{pod}/{called}",
        slot=row.slot or "",
        namespace=namespace,
        qos=row.qos or QosClass.BEST_EFFORT,
        request=row.request or MilliCpus(0),
        limit=row.limit,
        created=row.created or 0,
        present=row.pinned,
        memory_request=row.memory or Bytes(0),
        memory_limit=row.effective_memory_limit,
        hugepages=row.hugepages or (),
        name=called,
        pod_name=pod,
        pod_uid=f"uid-of-{pod}",
        labels=row.labels or {},
        tags=row.tags or {},
        pod_labels=row.pod_labels or {},
        pod_tags=row.pod_tags or {},
        preferences=read.preferences,
        hints=complete_hints(row.hints or (), machine),
        started=row.started or 0,
        pool_request=read_pool_request(row.environment, row.args or ()),
    )
