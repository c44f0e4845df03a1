"""A node's entry in the status of the object that configures it, as in nri-plugins.

Pure. Many nodes may share the object, and each write is sent to all that watch it: with
1,000 entries the API server has spent minutes. So a node writes into an object of its
own always, into a shared one while that has few entries; the node's own
`NodeResourceManager` has the rest.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from nri_resmgr.agent.choice import ConfigObject
from nri_resmgr.agent.conditions import (
    Condition,
    conditions_in,
    render_conditions,
)
from nri_resmgr.agent.verdict import Outcome, Verdict
from nri_resmgr.values.documents import JsonObject

_TIME: Final = "timestamp"

# As in the node's own object.
_REASONS: Final[Mapping[Outcome, str]] = {
    Outcome.ACCEPTED: "Accepted",
    Outcome.TRIED: "DryRun",
    Outcome.REJECTED: "Rejected",
    Outcome.IGNORED: "Overridden",
}

MOST_NODES: Final = 100
"""Entries in a shared object from which on no further node adds its own."""


def entry_of(config: ConfigObject, verdict: Verdict, now: str) -> JsonObject | None:
    """Return the entry of the node; None before there is a verdict.

    Args:
        config: The object.
        verdict: The daemon's verdict on it.
        now: RFC 3339.
    """
    if verdict.outcome is Outcome.PENDING:
        return None
    accepted = _is_accepted(verdict)
    return {
        "status": "Success" if accepted else "Failure",
        "generation": config.generation,
        "errors": None if accepted else verdict.why,  # removed by the patch
        "timestamp": now,
    }


def entries_in(status: object) -> Mapping[str, object]:
    """Return the entries in the status of an object by node."""
    nodes = status.get("nodes") if isinstance(status, Mapping) else None
    return nodes if isinstance(nodes, Mapping) else {}


def is_up_to_date(present: object, entry: Mapping[str, object]) -> bool:
    """Return whether an entry that is present says the same, but for its time."""
    wanted = {key: one for key, one in entry.items() if one is not None}
    found = dict(present) if isinstance(present, Mapping) else {}
    return {**found, _TIME: ""} == {**wanted, _TIME: ""}


def may_write(nodes: Collection[str], node: str) -> bool:
    """Return whether a node may have an entry in a shared object.

    Args:
        nodes: The nodes that have one.
        node: Name of the node.
    """
    return node in nodes or len(nodes) < MOST_NODES


def patch_of(
    node: str, entry: JsonObject | None, own: Mapping[str, object] | None = None
) -> JsonObject:
    """Return the merge patch that sets the node's entry, or removes it for None.

    Args:
        node: Name of the node.
        entry: Its entry.
        own: What `own_status` returns, if the object is that of this node alone.
    """
    return {"status": {"nodes": {node: entry}, **(own or {})}}


def own_status(
    config: ConfigObject, verdict: Verdict, before: object, now: str
) -> JsonObject:
    """Return the status of an object of one node as a whole, for ``kubectl wait``.

    It has one writer only.

    Args:
        config: The object.
        verdict: The daemon's verdict on it, which is not pending.
        before: The present ``status``, for the times of its conditions.
        now: RFC 3339.
    """
    accepted, reason = _is_accepted(verdict), _REASONS[verdict.outcome]
    why = verdict.why or "in force on the node"
    ready = Condition("Ready", accepted, reason, why)
    stalled = Condition("Stalled", not accepted, reason, why)
    former, generation = conditions_in(before), config.generation
    conditions = render_conditions((ready, stalled), former, generation, now)
    return {"observedGeneration": generation, "conditions": conditions}


def _is_accepted(verdict: Verdict) -> bool:
    return verdict.outcome in (Outcome.ACCEPTED, Outcome.TRIED)
