"""The state of a daemon and its node as sentences with titles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from nri_resmgr.cli.amounts import count_cpus, duration_text, size_text
from nri_resmgr.cli.render_agent import cluster_lines
from nri_resmgr.cli.render_host import class_lines, host_lines
from nri_resmgr.cli.state_texts import pending_text, session_text
from nri_resmgr.values.counts import count_text
from nri_resmgr.values.documents import JsonObject

CPU_KINDS: Final = ("exclusive", "shared", "reserved", "isolated", "idle")

PROBLEM: Final = "high"
"""The style of what an operator has to look at."""


class Fact(msgspec.Struct, frozen=True):
    """A sentence of the summary; an empty title continues the fact above."""

    title: str
    text: str
    style: str = ""


def headline(state: JsonObject) -> str:
    """Describe the daemon."""
    daemon = state["daemon"]
    version = f" {daemon['version']}" if daemon["version"] else ""
    dry = "; dry run: nothing is changed" if daemon["dryRun"] else ""
    since = duration_text(daemon["uptimeSeconds"])
    return f"nri-resmgr{version} as {daemon['plugin']}, up {since}{dry}"


def summary(state: JsonObject) -> Iterator[Fact]:
    """Describe the daemon's parts, and the node."""
    session = state["session"]
    number = f", session {session['number']}" if session["number"] > 1 else ""
    runtime = f"{session_text(state)} since {session['since']}{number}"
    yield Fact("runtime", runtime, "" if state["runtime"]["name"] else PROBLEM)
    yield Fact("policy", state["policy"])
    yield from _configuration(state["configuration"])
    yield from _facts("cluster", cluster_lines(state["cluster"]))
    for one in state["observability"]:
        yield Fact(one["name"], f"{one['value']}, by {one['source']}")
    for manager in state["kubelet"]:
        yield Fact("kubelet", manager["why"], PROBLEM)
    for one in state["kubeletServices"]:
        yield Fact("kubelet", _kubelet_service(one))
    if state["containers"]:
        yield Fact("requests", _sources(state["containers"]))
    yield from _facts("claims", _claims(state["cpuClaims"]))
    if found := state["verification"]:
        yield Fact("verified", _verified(found))
    yield from _facts("updates", _updates(state))
    if (checkpoint := state["checkpoint"]) and checkpoint["isFailing"]:
        why = "not written: a restart has to infer placements"
        yield Fact("state", why, PROBLEM)
    for part in state["parts"]:
        yield Fact("failing" if part["why"] else "hanging", _part(part), PROBLEM)
    if host := state["host"]:
        yield from _facts("host", host_lines(host))
    yield from exclusivity_facts(state["exclusivity"])
    yield from (Fact(*line) for line in class_lines(state["classes"]))
    cpus = state["cpus"]
    counts = ", ".join(f"{count_cpus(cpus[word])} {word}" for word in CPU_KINDS)
    yield Fact("CPUs", f"{count_cpus(cpus['online'])} online: {counts}")
    for node in state["nodes"]:
        yield Fact(f"node {node['id']}", _node(node))


def _kubelet_service(one: JsonObject) -> str:
    if one["problem"]:
        return f"{one['service']} not in use: {one['problem']}"
    return f"{one['service']} in use: {one['details']}"


def _sources(containers: list[JsonObject]) -> str:
    """Count containers by the source of their requests, exact ones first."""
    counts = Counter((one["accuracy"], one["source"]) for one in containers)
    found = sorted(counts.items(), key=lambda item: (item[0][0] != "exact", -item[1]))
    parts = (f"{count} by {source} ({how})" for (how, source), count in found)
    return ", ".join(parts)


def _claims(found: JsonObject) -> Iterator[str]:
    if found["conflict"]:
        yield f"their CPUs are not taken: {found['conflict']}"
    for one in found["claims"]:
        users = ", ".join(one["containers"]) or "no container at present"
        yield f"{one['name']} of {one['driver']}: CPUs {one['cpus']}; {users}"
    if count := len(found["waiting"]):
        what = count_text(count, "container waits", "containers wait")
        yield f"{what} for the kubelet's answer, and are not pinned"


def _facts(name: str, texts: Iterable[str]) -> Iterator[Fact]:
    for place, text in enumerate(texts):
        yield Fact("" if place else name, text)


def _updates(state: JsonObject) -> Iterator[str]:
    found = state["applyUpdates"]
    if found["by"] == "none":
        return
    if writes := found["writes"]:
        again, failed = writes["rewritten"], writes["failed"]
        counts = [count_text(writes["written"], "write")]
        counts += [f"{again} after other programs' writes"] if again else []
        counts += [f"{failed} failed"] if failed else []
        yield f"by cgroups: {', '.join(counts)}"
        if late := writes["lateStarts"]:
            starts = count_text(late, "start")
            yield f"{starts} did not wait until others had left their CPUs"
    else:
        yield f"by the runtime: {found['why']}" if found["why"] else "by the runtime"
    if writes and found["why"]:
        yield f"at present by the runtime: {found['why']}"
    yield from _left_to_runtime(state["containers"], found)
    for key in ("pendingUpdates", "recordUpdates"):
        if text := pending_text(state, key):
            yield text


def _left_to_runtime(containers: list[JsonObject], found: JsonObject) -> Iterator[str]:
    if not (count := found["byRuntime"]):
        return
    why = next(
        (
            f": {one['namespace']}/{one['pod']}/{one['name']}: {one['delivery']['why']}"
            for one in containers
            if one["delivery"] and one["delivery"]["why"] != found["why"]
        ),
        "",
    )
    yield f"{count_text(count, 'container')} by the runtime{why}"


def exclusivity_facts(found: JsonObject) -> Iterator[Fact]:
    """Describe partitions; nothing where none are configured."""
    if found["configured"] == "cpuset":
        return
    if found["whyNot"]:
        text = f"cpuset instead of {found['configured']}: {found['whyNot']}"
        yield Fact("exclusivity", text, PROBLEM)
        return
    partitions = found["partitions"]
    in_force = sum(one["inForce"] for one in partitions)
    of_all = f"{in_force} of {count_text(len(partitions), 'partition')}"
    yield Fact("exclusivity", f"{found['configured']}, {of_all} in force")
    for one in partitions:
        if not one["inForce"]:
            yield Fact("", f"{one['container']}: {one['why']}", PROBLEM)


def _part(part: JsonObject) -> str:
    hangs = part["hangsSeconds"]
    texts = [f"waits for the host for {duration_text(int(hangs))}"] if hangs else []
    if part["why"]:
        when = f"at {part['nextTry']}" if part["nextTry"] else "now"
        tries = count_text(part["tries"], "failure")
        texts.append(
            f"{part['why']} (since {part['since']}, {tries}, next try {when}); "
            f"meanwhile {part['meanwhile']}"
        )
    return f"{part['name']}: {'; '.join(texts)}"


def _verified(found: JsonObject) -> str:
    counts = ", ".join(f"{n} {word}" for word, n in found["containers"].items())
    every = f"every {found['intervalSeconds']:g} s"
    if not found["rounds"]:
        return f"not yet; {every}"
    return f"{counts or 'no containers'} at {found['last']}; {every}"


def _configuration(found: JsonObject) -> Iterator[Fact]:
    where = f"{found['source']} {found['name']}".strip()
    cached = ", cached" if found["cached"] else ""
    when = f", since {found['accepted']}" if found["accepted"] else ""
    generation = f"generation {found['generation']}"
    yield Fact("configuration", f"{where}{cached}, {generation}{when}")
    if error := found["error"]:
        where = f"{error['source']} {error['name']}".strip()
        why = f"refused at {error['when']} from {where}: {error['why']}"
        yield Fact("", why, PROBLEM)
    if found["ineffective"]:
        yield Fact("", f"no effect: {', '.join(found['ineffective'])}")
    for one in found["leftOut"]:
        yield Fact("", f"left out: {one['path']}: {one['why']}", PROBLEM)


def _node(node: JsonObject) -> str:
    memory = node["memory"]
    size = f"{size_text(memory['capacity'])} {node['kind']}"
    granted = memory["granted"]
    if granted is not None:
        size += f", {size_text(granted)} granted, {size_text(memory['free'])} free"
    return f"CPUs {node['cpus'] or 'none'}; memory {size}"
