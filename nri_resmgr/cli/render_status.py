"""The state of a daemon and its node as tables and sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nri_resmgr.cli.amounts import (
    count_cpus,
    count_text,
    cpus_text,
    duration_text,
    size_text,
)
from nri_resmgr.cli.tables import format_table
from nri_resmgr.values.documents import JsonObject

CPU_KINDS: Final = ("exclusive", "shared", "reserved", "isolated", "idle")

_RDT: Final = ("RDT class", "wanted", "found", "threads", "containers")
_BLOCKIO: Final = ("block I/O class", "files", "problems", "containers")
_MEMORY: Final = ("memory class", "kind", "settings", "containers")


def render_status(state: JsonObject) -> str:
    """Write the summary, the pools and the containers."""
    parts = ["\n".join(_summary(state)), _pools(state["pools"])]
    if state["host"] and state["host"]["classes"]:
        parts.append(cpu_class_table(state["host"]))
    if state["host"] and state["host"]["isolated"]:
        parts.append(isolation_table(state["host"]))
    parts += class_tables(state["classes"])
    if state["containers"]:
        parts.append(_containers(state["containers"]))
    return "\n\n".join(parts)


def session_text(state: JsonObject) -> str:
    """Describe the session with the runtime."""
    runtime, session = state["runtime"], state["session"]
    if not runtime["name"]:
        why = f": {session['lostWhy']}" if session["lostWhy"] else ""
        return f"none{why}"
    nri = f" (NRI {runtime['nri']})" if runtime["nri"] else ""
    return f"{runtime['name']} {runtime['version']}{nri}, {session['state']}"


def in_force_text(found: JsonObject) -> str:
    """Describe the last comparison of a container's cgroup with its decision."""
    differences = (f"{one['kind']} {one['found']}" for one in found["differences"])
    abandoned = " (repairs abandoned)" if found["abandoned"] else ""
    text: str = found["why"] or ", ".join(differences)
    return f"{found['verdict']}{': ' if text else ''}{text}{abandoned}"


def _summary(state: JsonObject) -> Iterator[str]:
    daemon, session = state["daemon"], state["session"]
    version = f" {daemon['version']}" if daemon["version"] else ""
    dry = "; dry run: nothing is changed" if daemon["dryRun"] else ""
    since = duration_text(daemon["uptimeSeconds"])
    yield f"nri-resmgr{version} as {daemon['plugin']}, up {since}{dry}"
    number = f", session {session['number']}" if session["number"] > 1 else ""
    yield _row("runtime", f"{session_text(state)} since {session['since']}{number}")
    yield _row("policy", state["policy"])
    yield from _configuration(state["configuration"])
    for manager in state["kubelet"]:
        yield _row("kubelet", manager["why"])
    if found := state["verification"]:
        yield _row("verified", _verified(found))
    if updates := state["pendingUpdates"]["count"]:
        waited = duration_text(int(state["pendingUpdates"]["oldestSeconds"]))
        pending = count_text(updates, "update", "updates")
        yield _row("runtime", f"{pending} pending, the oldest for {waited}")
    if (checkpoint := state["checkpoint"]) and checkpoint["isFailing"]:
        yield _row("state", "not written: a restart has to infer placements")
    if host := state["host"]:
        for place, line in enumerate(host_lines(host)):
            yield _row("" if place else "host", line)
    yield from (_row(*line) for line in class_lines(state["classes"]))
    cpus = state["cpus"]
    counts = ", ".join(f"{count_cpus(cpus[word])} {word}" for word in CPU_KINDS)
    yield _row("CPUs", f"{count_cpus(cpus['online'])} online: {counts}")
    for node in state["nodes"]:
        yield _row(f"node {node['id']}", _node(node))


def _verified(found: JsonObject) -> str:
    counts = ", ".join(f"{n} {word}" for word, n in found["containers"].items())
    every = f"every {found['intervalSeconds']:g} s"
    if not found["rounds"]:
        return f"not yet; {every}"
    return f"{counts or 'no containers'} at {found['last']}; {every}"


def _configuration(found: JsonObject) -> Iterator[str]:
    where = f"{found['source']} {found['name']}".strip()
    cached = ", cached" if found["cached"] else ""
    when = f", since {found['accepted']}" if found["accepted"] else ""
    yield _row(
        "configuration", f"{where}{cached}, generation {found['generation']}{when}"
    )
    if error := found["error"]:
        where = f"{error['source']} {error['name']}".strip()
        yield _row("", f"refused at {error['when']} from {where}: {error['why']}")
    if found["ineffective"]:
        yield _row("", f"no effect: {', '.join(found['ineffective'])}")


def _node(node: JsonObject) -> str:
    memory = node["memory"]
    size = f"{size_text(memory['capacity'])} {node['kind']}"
    granted = memory["granted"]
    if granted is not None:
        size += f", {size_text(granted)} granted, {size_text(memory['free'])} free"
    return f"CPUs {node['cpus'] or 'none'}; memory {size}"


def _pools(pools: list[JsonObject]) -> str:
    # A pool comes after the one that it is part of.
    depths: dict[str, int] = {}
    for pool in pools:
        depths[pool["name"]] = depths.get(pool["within"], -1) + 1
    header = ("pool", "kind", "CPUs", "shared", "exclusive", "capacity", "granted")
    return format_table(
        (*header, "free", "nodes", "memory", "containers"),
        [
            (
                "  " * depths[pool["name"]] + pool["name"],
                pool["labels"].get("type", pool["kind"]),
                pool["cpus"] or "-",
                pool["shared"] or "-",
                pool["exclusive"] or "-",
                *(cpus_text(pool["cpu"][key]) for key in ("capacity", "granted")),
                cpus_text(pool["cpu"]["free"]),
                pool["mems"] or "-",
                size_text(pool["memory"]["granted"]) if _has_memory(pool) else "-",
                str(len(pool["containers"])),
            )
            for pool in pools
        ],
    )


def _has_memory(pool: JsonObject) -> bool:
    return bool(pool["memory"]["capacity"])


def _containers(containers: list[JsonObject]) -> str:
    header = (
        "container",
        "QoS",
        "asks",
        "limit",
        "memory",
        "pool",
        "CPUs",
        "exclusive",
    )
    verified = any(one["verification"] for one in containers)
    return format_table(
        (*header, "nodes", "request from", *(("in force",) if verified else ())),
        [
            (
                f"{one['namespace']}/{one['pod']}/{one['name']}",
                one["qos"],
                cpus_text(one["request"]["cpu"]),
                cpus_text(one["request"]["cpuLimit"]),
                size_text(one["request"]["memory"]),
                one["pool"] or "-",
                one["cpus"] or "any",
                one["exclusive"] or "-",
                one["mems"] or "any",
                f"{one['source']} ({one['accuracy']})",
                *((in_force_text(one["verification"]),) if verified else ()),
            )
            for one in containers
        ],
    )


def _row(title: str, text: str) -> str:
    return f"{title:<13}  {text}"


def class_lines(found: JsonObject) -> Iterator[tuple[str, str]]:
    """Describe each kind of class in sentences, each with a title."""
    for kind, title in (("rdt", "RDT"), ("blockio", "block I/O")):
        if (one := found[kind]) is None:
            continue
        counts = [count_text(len(one["classes"]), "class", "classes")]
        if one["dropped"]:
            containers = count_text(one["dropped"], "container", "containers")
            counts.append(f"{containers} created without a class")
        yield title, ", ".join(counts)
        if problem := one.get("problem"):
            yield "", f"not as configured: {problem}"
        for failing in one["failing"]:
            # A problem of the whole kind is shown once.
            if failing["why"] != one.get("problem"):
                yield "", f"{failing['what']}: {failing['why']}"


def class_tables(found: JsonObject) -> Iterator[str]:
    """Format a table for each kind that has classes."""
    rdt, blockio = found["rdt"], found["blockio"]
    if rdt and rdt["classes"]:
        yield format_table(_RDT, [_rdt_row(one) for one in rdt["classes"]])
    if blockio and blockio["classes"]:
        yield format_table(_BLOCKIO, [_blockio_row(one) for one in blockio["classes"]])
    if (memory := found["memory"]) and memory["classes"]:
        yield format_table(_MEMORY, [_memory_row(one) for one in memory["classes"]])


def _rdt_row(one: JsonObject) -> tuple[str, ...]:
    wanted = " ".join(one["wanted"]) or ("-" if one["managed"] else "foreign group")
    found = " ".join(one["found"]) or "-"
    return (one["name"], wanted, found, str(one["threads"]), _count(one))


def _blockio_row(one: JsonObject) -> tuple[str, ...]:
    files = "; ".join(
        f"{file} {line}" for file, lines in one["files"].items() for line in lines
    )
    return (one["name"], files or "-", "; ".join(one["notices"]) or "-", _count(one))


def _memory_row(one: JsonObject) -> tuple[str, ...]:
    return (one["name"], one["kind"], one["settings"], _count(one))


def _count(one: JsonObject) -> str:
    return str(len(one["containers"]))


def host_lines(found: JsonObject) -> Iterator[str]:
    """Describe the settings of the host in sentences."""
    if not found["applied"]:
        yield f"not applied: {found['problem']}"
    if files := found["files"]:
        yield ", ".join(_counts(found))
        for one in files["failing"][:1]:
            more = _more(files["failing"])
            yield f"cannot write {one['value']!r} to {one['path']}: {one['why']}{more}"
        for one in files["drifting"][:1]:
            more = _more(files["drifting"])
            what = f"has {one['found']!r} instead of {one['wanted']!r}{more}"
            yield f"{one['path']} {what}"
    for one in found["speedSelect"]:
        yield f"punit {one['punit']}: {one['wanted']}"


def cpu_class_table(found: JsonObject) -> str:
    """Format CPU classes with the settings of their CPUs, wanted and found."""
    header = ("CPU class", "CPUs", "containers", "setting", "wanted", "found")
    return format_table(
        header, [row for one in found["classes"] for row in _rows_of(one)]
    )


def isolation_table(found: JsonObject) -> str:
    """Format the isolation of containers, with the CPUs that it is about."""
    header = ("isolated container", "exclusive", "what", "setting", "CPUs", "problem")
    rows = []
    for one in found["isolated"]:
        head = (one["container"], one["cpus"])
        for each in one["isolations"]:
            cpus, problem = each["cpus"] or "-", each["problem"] or "-"
            rows.append((*head, each["what"], each["setting"], cpus, problem))
            head = ("", "")
    return format_table(header, rows)


def _rows_of(one: JsonObject) -> Iterator[tuple[str, ...]]:
    head = (one["name"], one["cpus"], str(len(one["containers"])))
    for setting in one["settings"]:
        values = (" ".join(setting[key]) for key in ("wanted", "found"))
        yield (*head, setting["what"], *(value or "-" for value in values))
        head = ("", "", "")
    if not one["settings"]:
        yield (*head, "-", "-", "-")


def _counts(found: JsonObject) -> Iterator[str]:
    files, interrupts = found["files"], found["interrupts"]
    yield f"{files['wanted']} files set"
    counts = {
        "failing": len(files["failing"]),
        "changed by other programs": len(files["drifting"]),
        "abandoned": len(files["abandoned"]),
        "interrupts placed": len(interrupts["placed"]),
        "not placed": len(interrupts["unplaced"]),
        "refused by the kernel": len(interrupts["refused"]),
    }
    yield from (f"{count} {what}" for what, count in counts.items() if count)


def _more(found: list[JsonObject]) -> str:
    return f", and {len(found) - 1} more" if len(found) > 1 else ""
