"""The state of a daemon and its node, as tables for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from nri_resmgr.cli.amounts import cpus_text, duration_text, how_many, size_text
from nri_resmgr.cli.render_classes import class_lines, class_tables
from nri_resmgr.cli.render_host import class_table, host_lines, isolation_table
from nri_resmgr.cli.tables import format_table

Data = Mapping[str, Any]

CLASSES: Final = ("exclusive", "shared", "reserved", "isolated", "idle")


def render_status(state: Data) -> str:
    """Write the summary, the pools and the containers."""
    parts = ["\n".join(_summary(state)), _pools(state["pools"])]
    if state["host"] and state["host"]["classes"]:
        parts.append(class_table(state["host"]))
    if state["host"] and state["host"]["isolated"]:
        parts.append(isolation_table(state["host"]))
    parts += class_tables(state["classes"])
    if state["containers"]:
        parts.append(_containers(state["containers"]))
    return "\n\n".join(parts)


def session_text(state: Data) -> str:
    """Say how it stands with the runtime."""
    runtime, session = state["runtime"], state["session"]
    if not runtime["name"]:
        why = f": {session['lostWhy']}" if session["lostWhy"] else ""
        return f"none{why}"
    nri = f" (NRI {runtime['nri']})" if runtime["nri"] else ""
    return f"{runtime['name']} {runtime['version']}{nri}, {session['state']}"


def in_force_text(found: Data) -> str:
    """Say what a look at a container's cgroup showed."""
    differences = (f"{one['kind']} {one['found']}" for one in found["differences"])
    abandoned = " (given up)" if found["abandoned"] else ""
    text: str = found["why"] or ", ".join(differences)
    return f"{found['verdict']}{': ' if text else ''}{text}{abandoned}"


def _summary(state: Data) -> Iterator[str]:
    daemon, session = state["daemon"], state["session"]
    version = f" {daemon['version']}" if daemon["version"] else ""
    dry = "; dry run: nothing is adjusted" if daemon["dryRun"] else ""
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
    if (kept := state["checkpoint"]) and kept["isFailing"]:
        yield _row("state", "not written: a restart will look where containers run")
    if host := state["host"]:
        for place, line in enumerate(host_lines(host)):
            yield _row("" if place else "host", line)
    yield from (_row(*line) for line in class_lines(state["classes"]))
    cpus = state["cpus"]
    counts = ", ".join(f"{how_many(cpus[word])} {word}" for word in CLASSES)
    yield _row("CPUs", f"{how_many(cpus['online'])} online: {counts}")
    for node in state["nodes"]:
        yield _row(f"node {node['id']}", _node(node))


def _verified(found: Data) -> str:
    counts = ", ".join(f"{n} {word}" for word, n in found["containers"].items())
    every = f"every {found['intervalSeconds']:g} s"
    if not found["rounds"]:
        return f"not yet; {every}"
    return f"{counts or 'no containers'} at {found['last']}; {every}"


def _configuration(found: Data) -> Iterator[str]:
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
        yield _row("", f"without effect: {', '.join(found['ineffective'])}")


def _node(node: Data) -> str:
    memory = node["memory"]
    size = f"{size_text(memory['capacity'])} {node['kind']}"
    granted = memory["granted"]
    if granted is not None:
        size += f", {size_text(granted)} granted, {size_text(memory['free'])} free"
    return f"CPUs {node['cpus'] or 'none'}; memory {size}"


def _pools(pools: list[Data]) -> str:
    depths: dict[str, int] = {}
    for pool in pools:
        depths[pool["name"]] = depths.get(pool["within"], -1) + 1
    header = ("pool", "kind", "CPUs", "shared", "exclusive", "capacity", "granted")
    return format_table(
        (*header, "free", "memory", "promised", "containers"),
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


def _has_memory(pool: Data) -> bool:
    return bool(pool["memory"]["capacity"])


def _containers(containers: list[Data]) -> str:
    header = ("container", "QoS", "asks", "limit", "memory", "pool", "CPUs", "own")
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
