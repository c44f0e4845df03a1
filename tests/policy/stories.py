"""Reads stories: what happens on a node, step by step, and what must come of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import attrs
import yaml

from nri_resmgr.app.build import build_policy
from nri_resmgr.config import API_VERSION, parse_config
from nri_resmgr.policy.decision import Decision
from nri_resmgr.policy.events import (
    ContainerSpec,
    Created,
    Event,
    Pin,
    PodStopped,
    Removed,
    Stopped,
    Synchronized,
    Updated,
)
from nri_resmgr.policy.static import StaticPolicy, StaticState
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import (
    CpuSet,
    MilliCpus,
    NodeSet,
    PolicyError,
    QosClass,
    parse_cpus,
)

CASES: Final = Path(__file__).parent / "cases"

_QOS: Final = {
    "guaranteed": QosClass.GUARANTEED,
    "burstable": QosClass.BURSTABLE,
    "best-effort": QosClass.BEST_EFFORT,
}


def stories() -> list[Path]:
    """Find all stories, by name."""
    return sorted(CASES.glob("*.yaml"))


@attrs.define
class Node:
    """A node that a story happens on."""

    policy: StaticPolicy
    state: StaticState

    @classmethod
    def of(cls, story: Mapping[str, Any]) -> Node:
        """Set up the machine and the policy of a story."""
        document = {
            "apiVersion": API_VERSION,
            "kind": "StaticPolicy",
            "spec": story.get("spec"),
        }
        config = parse_config(yaml.safe_dump(document))
        policy = build_policy(config, parse_spec(story["machine"]))
        return cls(policy, policy.start())

    def play(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """Let one step happen; return what came of it as the step would write it."""
        try:
            decision = self.policy.decide(self.state, event_of(step))
        except PolicyError as refusal:
            return {"refused": str(refusal)}
        self.state = decision.state
        return outcome_of(step, decision)


def event_of(step: Mapping[str, Any]) -> Event:
    """Read what happens in a step."""
    match step:
        case {"create": str(name)}:
            return Created(_spec(name, step))
        case {"update": str(name)}:
            return Updated(_spec(name, step))
        case {"stop": str(name)}:
            return Stopped(name)
        case {"remove": str(name)}:
            return Removed(name)
        case {"stop-pod": str(pod)}:
            return PodStopped(pod)
        case {"restart": dict(rows)}:
            return Synchronized(tuple(_spec(key, row) for key, row in rows.items()))
    raise ValueError(f"nothing happens in {step}")


def expectation_of(step: Mapping[str, Any]) -> dict[str, Any]:
    """Read what a step expects; no update is expected where none is written."""
    wanted = ("gets", "rule", "rules", "updates", "refused")
    found = {key: step[key] for key in wanted if key in step}
    return found if "refused" in found else {"updates": {}} | found


def outcome_of(step: Mapping[str, Any], decision: Decision[Any]) -> dict[str, Any]:
    """Write a decision as a step expects it; rules only where it asks for them."""
    found: dict[str, Any] = {
        "updates": {one.container: _text(one.pin) for one in decision.updates}
    }
    if "create" in step or "update" in step:
        found["gets"] = _text(decision.pin)
    if "rule" in step:
        (reason,) = decision.reasons
        found["rule"] = reason.rule.value
    if "rules" in step:
        found["rules"] = {one.container: one.rule.value for one in decision.reasons}
    return found


def _spec(name: str, row: Mapping[str, Any]) -> ContainerSpec:
    (qos,) = _QOS.keys() & row.keys()
    pod = row.get("pod", f"pod-of-{name}")
    return ContainerSpec(
        id=name,
        pod=pod,
        title=f"{row.get('namespace', 'default')}/{pod}/{name}",
        slot=row.get("slot", ""),
        namespace=row.get("namespace", "default"),
        qos=_QOS[qos],
        request=parse_cpus(str(row[qos] or 0)),
        limit=MilliCpus(int(row["limit"])) if "limit" in row else None,
        created=row.get("created", 0),
        present=_pin(row.get("present", "")),
    )


def _pin(text: str) -> Pin:
    cpus, _, mems = text.partition(" on ")
    return Pin(CpuSet.parse(cpus), NodeSet.parse(mems))


def _text(pin: Pin) -> str:
    return f"{pin.cpus} on {pin.mems}" if pin.mems else str(pin.cpus)
