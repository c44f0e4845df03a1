"""The status of a node's `NodeResourceManager`: pure, from what the agent knows.

Conditions, in the order in which they are read: ``Ready`` is the sum of the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from nri_resmgr.agent.choice import Ambiguous, Choice, Chosen, ConfigObject, Nothing
from nri_resmgr.agent.conditions import (
    Condition,
    conditions_in,
    render_conditions,
)
from nri_resmgr.agent.daemon_state import JUDGED, DaemonState, JudgedAdjustments
from nri_resmgr.agent.publication import Publication
from nri_resmgr.agent.verdict import Outcome, Verdict
from nri_resmgr.values import CpuSet
from nri_resmgr.values.counts import count_text
from nri_resmgr.values.documents import JsonObject

_DRIFTED: Final = ("drifted", "confined")
"""Verdicts of the verification that are a difference."""


class Facts(msgspec.Struct, frozen=True):
    """Facts that the agent knows of its node.

    Attributes:
        choice: Of the object that configures the node.
        config: The object in the spool: that of the last choice; None before the first.
        verdict: The daemon's verdict on it.
        state: The daemon's state; None while it does not answer.
        why_no_state: Why it does not answer.
        publication: Whether schedulers can read what the node can grant; None where
            that is not asked for.
        adjustments: The daemon's last verdict on adjustments; None before the first.
    """

    choice: Choice
    config: ConfigObject | None
    verdict: Verdict
    state: DaemonState | None
    why_no_state: str = ""
    publication: Publication | None = None
    adjustments: JudgedAdjustments | None = None


def node_status(
    facts: Facts, before: Mapping[str, object], generation: int, now: str
) -> JsonObject:
    """Return the ``status`` of the node's object.

    Args:
        facts: What the agent knows.
        before: The present ``status``, for the times of its conditions.
        generation: ``metadata.generation`` of the object.
        now: RFC 3339.
    """
    former = conditions_in(before)
    return {
        "observedGeneration": generation,
        **_observed(facts.config),
        **_of_daemon(facts),
        "conditions": render_conditions(conditions_of(facts), former, generation, now),
    }


def conditions_of(facts: Facts) -> list[Condition]:
    """Return the conditions of a node, ``Ready`` first."""
    others = [
        _applied(facts),
        _connected(facts.state, facts.why_no_state),
        _kubelet(facts.state, facts.why_no_state),
        _drift(facts.state),
    ]
    others += _adjusted(facts)
    if (found := facts.publication) is not None:
        kind = "TopologyPublished"
        others.append(Condition(kind, found.is_published, found.reason, found.why))
    return [_ready(others), *others]


def _observed(config: ConfigObject | None) -> JsonObject:
    if config is None:
        return {}
    return {
        "observed": {
            "kind": config.kind,
            "namespace": config.namespace,
            "name": config.name,
            "uid": config.uid,
            "generation": config.generation,
        }
    }


def _of_daemon(facts: Facts) -> JsonObject:
    if (state := facts.state) is None:
        return {}
    tries = state.daemon.dry_run or facts.verdict.outcome is Outcome.TRIED
    cpus = state.cpus
    counts: dict[str, CpuSet] = {
        "online": cpus.online,
        "reserved": cpus.reserved,
        "exclusive": cpus.exclusive,
        "shared": cpus.shared,
        "isolated": cpus.isolated,
        "idle": cpus.idle,
    }
    runtime = state.runtime
    texts = {
        "version": state.daemon.version,
        "mode": "DryRun" if tries else "Enforce",
        "policy": state.policy,
        "runtime": f"{runtime.name} {runtime.version}".strip(),
    }
    return {
        **{name: text for name, text in texts.items() if text},
        "cpus": {use: len(found) for use, found in counts.items()},
    }


def _ready(others: list[Condition]) -> Condition:
    # Drift and the kubelet's managers do not keep the daemon from its work.
    for one in others[:2]:
        if one.is_true is not True:
            return Condition("Ready", one.is_true, one.reason, one.message)
    return Condition("Ready", True, "Working", "the daemon works as configured")


def _applied(facts: Facts) -> Condition:
    kind = "ConfigurationApplied"
    match facts.choice:
        case Ambiguous() as several:
            return Condition(kind, False, "SeveralKinds", str(several))
        case Nothing(names) if facts.config is not None:
            why = (
                f"none of {', '.join(names)} exists any more; "
                f"{facts.config} stays in force"
            )
            return Condition(kind, True, "ConfigurationGone", why)
        case Nothing(names):
            why = (
                f"none of {', '.join(names)} exists: the node's own default is in force"
            )
            return Condition(kind, True, "NoConfiguration", why)
        case Chosen():
            return _judged(kind, facts)
        case waiting:
            return Condition(kind, None, "NotRead", waiting.why or "not read yet")


def _judged(kind: str, facts: Facts) -> Condition:
    verdict = facts.verdict
    match verdict.outcome:
        case Outcome.ACCEPTED:
            return Condition(kind, True, "Accepted", f"{facts.config} is in force")
        case Outcome.TRIED:
            return Condition(kind, True, "DryRun", verdict.why)
        case Outcome.REJECTED:
            return Condition(kind, False, "Rejected", verdict.why)
        case Outcome.IGNORED:
            return Condition(kind, False, "Overridden", verdict.why)
        case _:
            why = verdict.why or facts.why_no_state
            return Condition(kind, None, "Pending", why or "not judged yet")


def _adjusted(facts: Facts) -> Iterator[Condition]:
    """Yield the condition of adjustments, where any is for the node."""
    if (judged := facts.adjustments) is None:
        return
    ours = [one.object.name for one in judged.objects if one.verdict in JUDGED]
    if not ours and not judged.errors and not judged.problem:
        return
    kind = "AdjustmentsApplied"
    errors = "; ".join(f"{key}: {why}" for key, why in judged.errors.items())
    if facts.state is None:
        yield Condition(kind, None, "DaemonUnreachable", facts.why_no_state)
    elif judged.problem:
        yield Condition(kind, False, "NotRead", judged.problem)
    elif errors:
        yield Condition(kind, False, "Rejected", errors)
    else:
        yield Condition(kind, True, "Accepted", f"in force: {', '.join(ours)}")


def _connected(state: DaemonState | None, why: str) -> Condition:
    kind = "RuntimeConnected"
    if state is None:
        return Condition(kind, None, "DaemonUnreachable", why)
    session = state.session
    if session.state == "synchronized":
        return Condition(kind, True, "Synchronized", "the runtime is connected")
    return Condition(
        kind,
        False,
        "NotConnected",
        session.ended_why or "no session with the runtime; is NRI enabled there?",
    )


def _kubelet(state: DaemonState | None, why_no_state: str) -> Condition:
    kind = "KubeletCompatible"
    if state is None:
        return Condition(kind, None, "DaemonUnreachable", why_no_state)
    if state.kubelet:
        why = "; ".join(one.why for one in state.kubelet)
        return Condition(kind, False, "StaticManager", why)
    return Condition(kind, True, "NoStaticManager", "the kubelet pins nothing")


def _drift(state: DaemonState | None) -> Condition:
    kind = "Drift"
    if state is None or state.verification is None:
        return Condition(kind, None, "NotVerified", "cgroups are not verified")
    found = state.verification.containers
    if count := sum(found.get(word, 0) for word in _DRIFTED):
        which = count_text(count, "container")
        why = f"cgroups of {which} differ from what was decided"
        return Condition(kind, True, "CgroupsDiffer", why)
    return Condition(kind, False, "AsDecided", "cgroups are as decided")
