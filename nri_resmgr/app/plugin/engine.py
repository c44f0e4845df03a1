"""The policy in force and its state, which only change together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from nri_resmgr.app.configuration.build import build_policy
from nri_resmgr.app.observers.observer import PolicyDecision
from nri_resmgr.app.plugin.late_hints import follow_hints
from nri_resmgr.config import BadSetting, PolicyConfig
from nri_resmgr.host.tree import Tree
from nri_resmgr.kubelet.sockets import WhyNoDevices
from nri_resmgr.policies import find_kind
from nri_resmgr.policy.claims import ClaimsLost, PreparedClaim, lost_claims
from nri_resmgr.policy.events import (
    ContainerSpec,
    Created,
    Event,
    Pin,
    Synchronized,
    Updated,
)
from nri_resmgr.policy.ledger import Entry, KnowsContainers
from nri_resmgr.policy.losses import check_losses
from nri_resmgr.policy.views import ViewedPolicy
from nri_resmgr.topology import Machine
from nri_resmgr.topology.hints import complete_hints
from nri_resmgr.values import PolicyError

RestoreCheckpoint: TypeAlias = Callable[
    [ViewedPolicy[KnowsContainers]], KnowsContainers | None
]
"""Returns the state of an earlier process for a policy; None for another policy's."""


@dataclass(eq=False)
class EventRefused(PolicyError):
    """One of several containers cannot get the resources that it should."""

    container: str
    error: PolicyError

    def __str__(self) -> str:
        return str(self.error)


class Engine:
    """Decides events and holds the resulting state.

    There is no lock: nothing awaits between reading and replacing the state, so
    the event loop already makes each decision atomic.

    Args:
        machine: The model of the host.
        config: The policy's configuration.
        tree: The host, whose cgroups a configuration may name.
        why_no_devices: Called for configurations that name devices of containers.

    Raises:
        BadSetting: The configuration does not fit the machine.
    """

    def __init__(
        self,
        machine: Machine,
        config: PolicyConfig,
        tree: Tree | None = None,
        why_no_devices: WhyNoDevices = str,
    ) -> None:
        self._tree, self._why_no_devices = tree, why_no_devices
        self.machine = machine
        self.config = config
        self.policy: ViewedPolicy[KnowsContainers] = self._build(config, machine)
        self.state: KnowsContainers = self.policy.start()
        self._checkpoint: RestoreCheckpoint | None = None
        self._pins: Mapping[str, Pin] = {}
        self._pinned: KnowsContainers | None = None  # the state that has these pins

    def restore_from(self, checkpoint: RestoreCheckpoint) -> None:
        """Use *checkpoint* at the next `restore`."""
        self._checkpoint = checkpoint

    def restore(self) -> None:
        """Begin with the state of an earlier process, if it is the same policy's.

        Called at Synchronize: the configuration of the runtime may switch policies
        before.
        """
        if self._checkpoint is not None:
            # May raise; then the next Synchronize tries again.
            state = self._checkpoint(self.policy)
            self._checkpoint = None
            self.state = self.state if state is None else state

    def decide(self, event: Event) -> PolicyDecision:
        """Decide an event, and replace the state by the decision's.

        Raises:
            PolicyError: The node cannot grant the request; nothing has changed.
        """
        decision = self.propose(event)
        self.state = decision.state
        return decision

    def propose(self, event: Event) -> PolicyDecision:
        """Return what `decide` would decide; nothing changes.

        Raises:
            PolicyError: The node cannot grant the request.
        """
        return self.policy.decide(self.state, event)

    def decide_all(self, events: Sequence[Updated]) -> tuple[PolicyDecision, ...]:
        """Decide several events, and replace the state if all of them are granted.

        Raises:
            EventRefused: The node cannot grant one of them; nothing has changed.
        """
        state, decisions = self.state, []
        for event in events:
            try:
                decision = self.policy.decide(state, event)
            except PolicyError as error:
                raise EventRefused(event.spec.id, error) from error
            state = decision.state
            decisions.append(decision)
        self.state = state
        return tuple(decisions)

    def decide_creation(
        self,
        parts: Sequence[Updated],
        created: Created,
        check: Callable[[PolicyDecision], None] | None,
    ) -> Sequence[PolicyDecision]:
        """Decide a creation and what changes for others of its pod; all or nothing.

        Args:
            parts: The others, whose parts of the pod's resources change.
            created: The creation.
            check: Raises where its decision must not take effect.

        Returns:
            A decision for each of *parts*, and that of the creation.

        Raises:
            PolicyError: The node cannot grant one of them; nothing has changed.
        """
        state, decisions = self.state, list[PolicyDecision]()
        events: tuple[Event, ...] = (*parts, created)
        for event in events:
            decisions.append(self.policy.decide(state, event))
            state = decisions[-1].state
        if check is not None:
            check(decisions[-1])
        self.state = state
        return decisions

    def follow_hints(self, spec: ContainerSpec) -> PolicyDecision:
        """Decide on a running container whose hints have become known.

        Raises:
            PolicyError: See `nri_resmgr.app.plugin.late_hints.follow_hints`.
        """
        decision = follow_hints(self.policy, self.state, spec)
        self.state = decision.state
        return decision

    def rebuild(
        self,
        config: PolicyConfig,
        machine: Machine,
        *,
        may_lose: bool,
        more: Sequence[ContainerSpec] = (),
        on_misfit: Callable[[BadSetting], None] | None = None,
    ) -> PolicyDecision:
        """Build a policy, place all containers by it, and put it in force.

        Args:
            config: The configuration.
            machine: The machine.
            may_lose: Whether containers may lose exclusive CPUs by it.
            more: Running containers that are not placed yet.
            on_misfit: As of `build_policy`.

        Raises:
            BadSetting: The configuration does not fit the machine; nothing has
                changed.
            ExclusiveCpusLost: Containers would lose CPUs; likewise.
            PlacesChanged: Containers would lose places that they know; likewise.
            ClaimsLost: Prepared claims would lose CPUs; likewise.
        """
        policy = self._build(config, machine, on_misfit)
        decision = self._decided(policy, config, machine, more, may_lose=may_lose)
        self.policy, self.state = policy, decision.state
        self.config, self.machine = config, machine
        return decision

    def check(self, config: PolicyConfig, machine: Machine) -> None:
        """Check that a policy can be built; nothing changes.

        Raises:
            BadSetting: The configuration does not fit the machine.
        """
        find_kind(config.kind).build(config, machine, self._tree)

    def would_pin(self, config: PolicyConfig, machine: Machine) -> Mapping[str, Pin]:
        """Return the pins that `rebuild` would lead to, by container.

        Raises:
            BadSetting: As `rebuild`.
            ExclusiveCpusLost: Likewise.
            PlacesChanged: Likewise.
        """
        policy, may_lose = self._build(config, machine), config.allow_loss
        decision = self._decided(policy, config, machine, may_lose=may_lose)
        return policy.pins(decision.state)

    def _build(
        self,
        config: PolicyConfig,
        machine: Machine,
        on_misfit: Callable[[BadSetting], None] | None = None,
    ) -> ViewedPolicy[KnowsContainers]:
        return build_policy(
            config, machine, self._tree, self._why_no_devices, on_misfit
        )

    def _decided(
        self,
        policy: ViewedPolicy[KnowsContainers],
        config: PolicyConfig,
        machine: Machine,
        more: Sequence[ContainerSpec] = (),
        *,
        may_lose: bool,
    ) -> PolicyDecision:
        """Place all containers by a policy that is not in force yet."""
        old = self.state if policy.kind == self.policy.kind else policy.start()
        decision = policy.decide(old, Synchronized((*self._present(machine), *more)))
        if config is not self.config and machine == self.machine:
            self._check_claims(policy, decision.state)
        if not may_lose:
            check_losses(
                self.policy, self.state, policy, decision.state, machine.online
            )
        return decision

    def _check_claims(
        self, policy: ViewedPolicy[KnowsContainers], after: KnowsContainers
    ) -> None:
        """Check that claims keep their CPUs, whatever containers may lose."""
        if not self.claims:
            return
        now, devices = policy.claims(after), policy.claim_devices(after)
        lost = lost_claims(self.claims.values(), now, devices, self.machine.online)
        if lost:
            raise ClaimsLost(lost)

    @property
    def claims(self) -> Mapping[str, PreparedClaim]:
        """The prepared claims by UID."""
        return self.policy.claims(self.state)

    def known(self, container: str) -> Entry | None:
        """Return a container as it was at its last event."""
        return self.state.ledger.entries.get(container)

    def in_pod(self, pod: str) -> tuple[ContainerSpec, ...]:
        """Return the containers of a pod as they were at their last events."""
        ledger = self.state.ledger
        return tuple(ledger.spec_of(key) for key in ledger.in_pod(pod))

    def wanted(self, container: str) -> Pin | None:
        """Return the pins that a container should have.

        These are not the pins last sent to the runtime: those include values that
        others may change, such as CPU shares set by the kubelet.
        """
        if self._pinned is not self.state:
            self._pins, self._pinned = self.policy.pins(self.state), self.state
        return self._pins.get(container)

    def _present(self, machine: Machine) -> Iterator[ContainerSpec]:
        for entry in self.state.ledger.entries.values():
            hints = entry.spec.hints
            if hints and machine is not self.machine:
                hints = complete_hints(hints, machine)
            yield msgspec.structs.replace(
                entry.spec, present=entry.last_sent, hints=hints
            )
