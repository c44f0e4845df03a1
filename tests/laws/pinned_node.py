"""A runtime that applies the pins of a policy, for state machines of small policies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import hypothesis.strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from nri_resmgr.checkpoint.encode import Draft
from nri_resmgr.policy.decision import Decision
from nri_resmgr.policy.events import ContainerSpec, Pin, Stopped, Synchronized
from tests.laws.policy_node import slots_won
from tests.laws.reborn import reborn

IDS: Final = st.sampled_from("abcdefgh")


class PinnedNode(RuleBasedStateMachine):
    """Simulates a runtime that applies the pins that it is sent."""

    policy: Any
    state: Any

    def begin_with(self, policy: Any) -> None:
        """Start on a node where nothing runs."""
        self.policy, self.state, self.draft = policy, policy.start(), Draft()
        self.runtime: dict[str, Pin] = {}
        self.specs: dict[str, ContainerSpec] = {}

    @rule(container=IDS)
    def stop(self, container: str) -> None:
        """A container stops, maybe one that never was."""
        self.forget(container)
        self.take(self.policy.decide(self.state, Stopped(container)))

    @invariant()
    def the_runtime_has_the_pins_of_the_state(self) -> None:
        """The pins that were sent add up to the desired ones."""
        wanted = self.policy.pins(self.state)
        assert wanted.keys() == self.specs.keys()
        assert {k: wanted[k].over(pin) for k, pin in self.runtime.items()} == (
            self.runtime
        )

    def replaced_by(self, spec: ContainerSpec) -> list[str]:
        """Return the containers that a new one replaces, by its id or its slot."""
        return [
            key
            for key, one in self.specs.items()
            if key == spec.id
            or (one.slot and (one.pod, one.slot) == (spec.pod, spec.slot))
        ]

    def synchronize(self, found: Mapping[str, ContainerSpec]) -> None:
        """Replace all containers by those in *found*."""
        self.specs = slots_won(found)
        self.runtime = {key: one.present for key, one in found.items()}
        self.take(self.policy.decide(self.state, Synchronized(tuple(found.values()))))

    def take(self, decision: Decision[Any]) -> None:
        """Apply the updates, and save and restore the state."""
        for update in decision.updates:
            now = self.runtime[update.container]
            self.runtime[update.container] = update.pin.over(now)
        self.state = reborn(self.policy, decision.state, self.draft)

    def forget(self, container: str) -> None:
        """Have the runtime remove a container."""
        self.specs.pop(container, None)
        self.runtime.pop(container, None)
