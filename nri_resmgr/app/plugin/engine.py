"""The policy in force and its state, which change together or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import msgspec

from nri_resmgr.app.policies.build import build_policy
from nri_resmgr.config import PolicyConfig
from nri_resmgr.host.tree import Tree
from nri_resmgr.policy.decision import Decision, Resources
from nri_resmgr.policy.events import ContainerSpec, Event, Pin, Synchronized
from nri_resmgr.policy.ledger import Entry, KnowsContainers
from nri_resmgr.policy.views import ViewedPolicy
from nri_resmgr.topology import Machine

RestoreCheckpoint: TypeAlias = Callable[[ViewedPolicy[Any]], KnowsContainers | None]


class Engine:
    """Decides, and keeps what was decided.

    There is no lock: nothing awaits between reading and replacing the state, so
    the event loop already makes each decision atomic.

    Args:
        machine: What the CPUs and the memory are taken from.
        config: What the policy is told.
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
        self.policy: ViewedPolicy[Any] = build_policy(config, machine, tree)
        self.state: KnowsContainers = self.policy.start()
        self._former: RestoreCheckpoint | None = None
        self._pins: Mapping[str, Pin] = {}
        self._pinned: KnowsContainers | None = None  # the state that they are of

    def remember(self, former: RestoreCheckpoint) -> None:
        """Have the state of an earlier process at hand for `recall`.

        Args:
            former: Gives it for a policy; None where it is another one's.
        """
        self._former = former

    def recall(self) -> None:
        """Begin where an earlier process ended: it is about to be told what runs.

        What is in force by then decides whether its state is of any use.
        """
        if self._former is not None:
            state = self._former(self.policy)  # may refuse, now and the next time
            self._former = None
            self.state = self.state if state is None else state

    def decide(
        self, event: Event, judge: Callable[[Decision[Any]], None] | None = None
    ) -> Decision[Any]:
        """Answer an event; the state is what the answer says from then on.

        Args:
            event: What happened.
            judge: Raises where the answer must not count.

        Raises:
            PolicyError: The node cannot grant the request; nothing has changed.
        """
        decision = self.policy.decide(self.state, event)
        if judge is not None:
            judge(decision)
        self.state = decision.state
        return decision

    def rebuild(self, config: PolicyConfig, machine: Machine) -> Decision[Any]:
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
        """Return a container as it was when we last heard of it."""
        return self.state.ledger.entries.get(container)

    def wanted(self, container: str) -> Pin | None:
        """Return what should hold for a container that is here.

        Not what the runtime was told: that has values besides that are others' to
        change, such as weights that the kubelet sets.
        """
        if self._pinned is not self.state:
            self._pins, self._pinned = self.policy.pins(self.state), self.state
        return self._pins.get(container)

    def publishes(self, container: str) -> bool:
        """Say whether the policy lets a container know what it has."""
        return self.policy.publishes(self.state, container)

    def resources_of(self, container: str) -> Resources | None:
        """Say what a container has, if the policy lets it know."""
        return self.policy.resources_of(self.state, container)

    def _present(self, machine: Machine) -> Iterator[ContainerSpec]:
        for entry in self.state.ledger.entries.values():
            hints = entry.spec.hints
            if hints and machine is not self.machine:
                from nri_resmgr.topology.hints import complete_hints  # seldom

                hints = complete_hints(hints, machine)
            yield msgspec.structs.replace(
                entry.spec, present=entry.last_sent, hints=hints
            )
