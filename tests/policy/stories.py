"""Reads stories: what happens on a node, step by step, and what must come of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import attrs
import yaml

from nri_resmgr.app.build import build_policy
from nri_resmgr.config import API_VERSION, parse_config
from nri_resmgr.policy.decision import Decision, Policy
from nri_resmgr.policy.events import (
    ColdStartEnded,
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
from nri_resmgr.topology import Machine
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import InputError, PolicyError
from tests.policy.story_containers import container_of, merged
from tests.policy.story_outcomes import outcome_of, refusal_of

CASES: Final = Path(__file__).parent / "cases"

# Folders of stories, and the kind of document that their settings are.
KINDS: Final = {
    "balloons": "BalloonsPolicy",
    "static": "StaticPolicy",
    "topology-aware": "TopologyAwarePolicy",
}


def stories(kind: str = "*") -> list[Path]:
    """Find all stories, by name."""
    return sorted(CASES.glob(f"{kind}/*.yaml"))


@attrs.define
class Node:
    """A node that a story happens on."""

    kind: str
    machine: Machine
    policy: Policy[Any]
    state: Any
    rows: dict[str, Mapping[str, Any]] = attrs.field(factory=dict)
    warnings: list[str] = attrs.field(factory=list)

    @classmethod
    def of(cls, path: Path, story: Mapping[str, Any]) -> Node:
        """Set up the machine and the policy of a story."""
        kind, machine = KINDS[path.parent.name], parse_spec(story["machine"])
        policy = policy_of(kind, story.get("spec"), machine)
        return cls(kind, machine, policy, policy.start())

    def play(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """Let one step happen; return what came of it as the step would write it."""
        self.warnings.clear()
        policy, machine, state = self.policy, self.machine, self.state
        try:
            decision = self._decide(step)
        except (PolicyError, InputError) as refusal:
            self.policy, self.machine, self.state = policy, machine, state
            return refusal_of(refusal, step)
        self.state = decision.state
        return outcome_of(step, decision, self.policy, self.warnings)

    def _decide(self, step: Mapping[str, Any]) -> Decision[Any]:
        event: Event
        if "restart" in step and step["restart"] == "forgetting":
            event = self._all_as_told()
            return self.policy.decide(self.policy.start(), event)
        event = self._event(step)  # which may replace the policy
        return self.policy.decide(self.state, event)

    def _event(self, step: Mapping[str, Any]) -> Event:
        match step:
            case {"create": str(name)}:
                self.rows[name] = step
                return Created(self._spec(name, step))
            case {"update": str(name)}:
                self.rows[name] = merged(self.rows.get(name, {}), step)
                return Updated(self._spec(name, self.rows[name]))
            case {"pod": str(pod), "expects": dict(rows)}:
                specs = [self._spec(k, {"pod": pod, **row}) for k, row in rows.items()]
                return PodCreated(pod, tuple(attrs.evolve(one, id="") for one in specs))
            case {"restart": _} | {"reconfigure": _} | {"hotplug": _} | {"switch": _}:
                return self._begin_again(step)
        return _plain_event(step)

    def _begin_again(self, step: Mapping[str, Any]) -> Event:
        match step:
            case {"restart": dict(rows)}:
                return Synchronized(
                    tuple(self._spec(k, row) for k, row in rows.items())
                )
            case {"reconfigure": settings}:
                self.policy = policy_of(self.kind, settings, self.machine)
            case {"hotplug": [str(machine), settings]}:
                self.machine = parse_spec(machine)
                self.policy = policy_of(self.kind, settings, self.machine)
            case {"switch": [str(folder), settings]}:
                event = self._all_as_told()
                self.kind = KINDS[folder]
                self.policy = policy_of(self.kind, settings, self.machine)
                self.state = self.policy.start()
                return event
        return self._all_as_told()

    def _spec(self, name: str, row: Mapping[str, Any]) -> Any:
        return container_of(name, row, self.machine, self.warnings)

    def _all_as_told(self) -> Synchronized:
        entries = self.state.ledger.entries.values()
        specs = (attrs.evolve(one.spec, present=one.told) for one in entries)
        return Synchronized(tuple(specs))


def policy_of(kind: str, settings: object, machine: Machine) -> Policy[Any]:
    """Build the policy that a document of *kind* with these settings asks for."""
    document = {"apiVersion": API_VERSION, "kind": kind, "spec": settings}
    return build_policy(parse_config(yaml.safe_dump(document)), machine)


def _plain_event(step: Mapping[str, Any]) -> Event:
    match step:
        case {"stop": str(name)}:
            return Stopped(name)
        case {"remove": str(name)}:
            return Removed(name)
        case {"stop-pod": str(pod)}:
            return PodStopped(pod)
        case {"start": str(name)}:
            return Started(name)
        case {"cold-start-ends": str(name)}:
            return ColdStartEnded(name)
    raise ValueError(f"nothing happens in {step}")
