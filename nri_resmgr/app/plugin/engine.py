"""The policy in force and its state, which only change together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

import msgspec

from nri_resmgr.app.observers.observer import PolicyDecision
from nri_resmgr.app.policies.build import build_policy
from nri_resmgr.config import PolicyConfig
from nri_resmgr.host.tree import Tree
from nri_resmgr.policy.decision import Resources
from nri_resmgr.policy.events import ContainerSpec, Event, Pin, Synchronized
from nri_resmgr.policy.ledger import Entry, KnowsContainers
from nri_resmgr.policy.views import ViewedPolicy
from nri_resmgr.topology import Machine

RestoreCheckpoint: TypeAlias = Callable[
    [ViewedPolicy[KnowsContainers]], KnowsContainers | None
]
"""Returns the state of an earlier process for a policy; None for another policy's."""


class Engine:
    """Decides events and holds the resulting state.

    There is no lock: nothing awaits between reading and replacing the state, so
    the event loop already makes each decision atomic.

    Args:
        machine: The model of the host.
        config: The policy's configuration.
        tree: The host, whose cgroups a configuration may name.

    Raises:
        BadSetting: The configuration does not fit the machine.
    """

    def __init__(
        self, machine: Machine, config: PolicyConfig, tree: Tree | None = None
    ) -> None:
        self._tree = tree
        self.machine = machine
        self.config = config
        self.policy: ViewedPolicy[KnowsContainers] = build_policy(config, machine, tree)
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

    def decide(
        self, event: Event, check: Callable[[PolicyDecision], None] | None = None
    ) -> PolicyDecision:
        """Decide an event, and replace the state by the decision's.

        Args:
            event: The event.
            check: Raises where the decision must not take effect.

        Raises:
            PolicyError: The node cannot grant the request; nothing has changed.
        """
        decision = self.policy.decide(self.state, event)
        if check is not None:
            check(decision)
        self.state = decision.state
        return decision

    def rebuild(self, config: PolicyConfig, machine: Machine) -> PolicyDecision:
        """Build a policy, place all containers by it, and put it in force.

        Raises:
            BadSetting: The configuration does not fit the machine; nothing has
                changed.
        """
        policy = build_policy(config, machine, self._tree)
        old = self.state if policy.kind == self.policy.kind else policy.start()
        decision = policy.decide(old, Synchronized(tuple(self._present(machine))))
        self.policy, self.state = policy, decision.state
        self.config, self.machine = config, machine
        return decision

    def known(self, container: str) -> Entry | None:
        """Return a container as it was at its last event."""
        return self.state.ledger.entries.get(container)

    def wanted(self, container: str) -> Pin | None:
        """Return the pins that a container should have.

        These are not the pins last sent to the runtime: those include values that
        others may change, such as CPU shares set by the kubelet.
        """
        if self._pinned is not self.state:
            self._pins, self._pinned = self.policy.pins(self.state), self.state
        return self._pins.get(container)

    def publishes(self, container: str) -> bool:
        """Return whether the policy publishes a container's resources to it."""
        return self.policy.publishes(self.state, container)

    def resources_of(self, container: str) -> Resources | None:
        """Return the resources to publish to a container; None for none."""
        return self.policy.resources_of(self.state, container)

    def _present(self, machine: Machine) -> Iterator[ContainerSpec]:
        for entry in self.state.ledger.entries.values():
            hints = entry.spec.hints
            if hints and machine is not self.machine:
                # Hotplug of a node with hints is rare.
                from nri_resmgr.topology.hints import complete_hints

                hints = complete_hints(hints, machine)
            yield msgspec.structs.replace(
                entry.spec, present=entry.last_sent, hints=hints
            )
