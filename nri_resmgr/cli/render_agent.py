"""What a daemon knows of its agent and its cluster, as sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nri_resmgr.cli.amounts import duration_text
from nri_resmgr.values.counts import count_text
from nri_resmgr.values.documents import JsonObject

_SHOWN: Final = 10  # containers that a document would change


def cluster_lines(found: JsonObject | None) -> Iterator[str]:
    """Describe the agent and what it has brought; nothing without a spool folder."""
    if found is None:
        return
    yield _agent(found)
    if problem := found["spool"]["problem"]:
        yield f"spool folder: {problem}"
    if judged := found["configuration"]:
        why = f": {judged['why']}" if judged["why"] else ""
        name = _object(judged["object"]) or "configuration"
        yield f"{name}: {judged['verdict']} at {judged['since']}{why}"
        if change := judged["wouldChange"]:
            yield from _would_change(change)
        if judged["gone"]:
            yield f"no document for this node since {judged['gone']}"
        if judged["problem"]:
            yield f"configuration file: {judged['problem']}"
    if judged := found["adjustments"]:
        yield from _adjustments(judged)


def _would_change(found: JsonObject) -> Iterator[str]:
    count, shown = found["count"], found["containers"][:_SHOWN]
    yield f"  would change {count_text(count, 'container')}"
    for one in shown:
        parts = [
            f"{name} {one['now'][key] or 'any'} to {one['then'][key] or 'any'}"
            for key, name in (("cpus", "CPUs"), ("mems", "memory nodes"))
            if one["now"][key] != one["then"][key]
        ]
        yield f"  {one['title']}: {', '.join(parts) or 'its weight'}"
    if count > len(shown):
        yield f"  and {count - len(shown)} more; status -o json has up to 100"


def _agent(found: JsonObject) -> str:
    silent = duration_text(int(found["agentSilentSeconds"]))
    if (agent := found["agent"]) is None:
        return f"no agent has reported for {silent}"
    name = f"agent {agent['version']} on {agent['node']}"
    if found["agentAbsent"]:
        return f"{name} has not reported for {silent}"
    contact = agent["contactSeconds"]
    known = "never" if contact is None else f"{duration_text(int(contact))} ago"
    problem = f": {agent['problem']}" if agent["problem"] else ""
    return f"{name} reported {silent} ago, API server last answered {known}{problem}"


def _adjustments(judged: JsonObject) -> Iterator[str]:
    count = count_text(len(judged["objects"]), "adjustment")
    yield f"{count}: {judged['verdict']} at {judged['since']}"
    for text in sorted(set(judged["errors"].values())):
        yield f"  {text}"
    if judged["problem"]:
        yield f"adjustments file: {judged['problem']}"


def _object(found: JsonObject) -> str:
    path = f"{found['namespace']}/{found['name']}".strip("/")
    generation = f" generation {found['generation']}" if found["generation"] else ""
    return f"{found['kind']} {path}".strip() + generation
