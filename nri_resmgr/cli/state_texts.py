"""Parts of a daemon's state as texts of a few words, for several commands."""

from __future__ import annotations

from nri_resmgr.cli.amounts import duration_text
from nri_resmgr.values.counts import count_text
from nri_resmgr.values.documents import JsonObject


def session_text(state: JsonObject) -> str:
    """Describe the session with the runtime."""
    runtime, session = state["runtime"], state["session"]
    if not runtime["name"]:
        why = f": {session['endedWhy']}" if session["endedWhy"] else ""
        return f"none{why}"
    nri = f" (NRI {runtime['nri']})" if runtime["nri"] else ""
    return f"{runtime['name']} {runtime['version']}{nri}, {session['state']}"


def pending_text(state: JsonObject, key: str = "pendingUpdates") -> str:
    """Describe what waits; empty if nothing does."""
    what = "update" if key == "pendingUpdates" else "record update"
    if not (count := state[key]["count"]):
        return ""
    waited = duration_text(int(state[key]["oldestSeconds"]))
    return f"{count_text(count, what)} pending, the oldest for {waited}"


def in_force_text(one: JsonObject) -> str:
    """Describe whether a container's values are in force, as far as that is known."""
    if (delivery := one["delivery"]) and delivery["waitingSeconds"]:
        return f"pending for {duration_text(int(delivery['waitingSeconds']))}"
    return verified_text(one["verification"]) if one["verification"] else "-"


def verified_text(found: JsonObject) -> str:
    """Describe the last comparison of a container's cgroup with its decision."""
    differences = (f"{one['kind']} {one['found']}" for one in found["differences"])
    abandoned = " (repairs abandoned)" if found["abandoned"] else ""
    text: str = found["why"] or ", ".join(differences)
    return f"{found['verdict']}{': ' if text else ''}{text}{abandoned}"
