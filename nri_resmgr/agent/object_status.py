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
from nri_resmgr.agent.conditions import Condition, render_conditions
from nri_resmgr.agent.verdict import Outcome, Verdict
from nri_resmgr.values.documents import JsonObject

_TIME: Final = "timestamp"

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
    accepted = verdict.outcome in (Outcome.ACCEPTED, Outcome.TRIED)
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
    config: ConfigObject, node: str, entry: JsonObject | None, own_name: str
) -> JsonObject:
    """Return the merge patch that sets the node's entry, or removes it for None."""
    status: JsonObject = {"nodes": {node: entry}}
    if config.name == own_name and entry is not None:
        # One writer only, so the object as a whole has a status, for `kubectl wait`.
        accepted = entry["status"] == "Success"
        reason = "Accepted" if accepted else "Rejected"
        why = entry["errors"] or "in force on the node"
        ready = Condition("Ready", accepted, reason, why)
        stalled = Condition("Stalled", not accepted, reason, why)
        conditions = render_conditions(
            (ready, stalled), (), config.generation, entry["timestamp"]
        )
        status |= {"observedGeneration": config.generation, "conditions": conditions}
    return {"status": status}
