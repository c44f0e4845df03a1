"""Pools, containers and what else has CPUs of a node as tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from nri_resmgr.cli.amounts import cpus_text, size_text
from nri_resmgr.cli.look import Look
from nri_resmgr.cli.render_facts import PROBLEM
from nri_resmgr.cli.state_texts import in_force_text
from nri_resmgr.cli.tables import format_table
from nri_resmgr.values.documents import JsonObject

# Verdicts on cgroups that are no problem.
_QUIET: Final = ("as-decided", "pending", "not-running", "not-pinned")


def resource_table(rows: Iterable[JsonObject], look: Look) -> str:
    """Format extended resources that are published."""
    cells = (
        (one["name"], one["by"], f"{one['value']} of {one['capacity']}", one["problem"])
        for one in rows
    )
    header = ("extended resource", "by", "available", "problem")
    return format_table(header, cells, look)


# The columns of pools and containers that fit 80 columns; the wide form has all.
_OF_POOL: Final = ("pool", "CPUs", "shared", "exclusive", "granted", "free", "memory")
_OF_CONTAINER: Final = ("container", "asks", "pool", "CPUs", "exclusive", "nodes")
_IN_FORCE: Final = "in force"


def _columns(
    rows: Sequence[Mapping[str, str]],
    names: Sequence[str],
    look: Look,
    styles: Sequence[str] = (),
) -> str:
    """Format some columns of rows, which have their cells by the column's name."""
    shown = [[row[name] for name in names] for row in rows]
    return format_table(names, shown, look, styles)


def pool_table(pools: list[JsonObject], look: Look, *, is_wide: bool) -> str:
    """Format pools, each after the one that it is part of."""
    # A pool comes after the one that it is part of.
    depths: dict[str, int] = {}
    for pool in pools:
        depths[pool["name"]] = depths.get(pool["within"], -1) + 1
    rows = [_pool(pool, depths[pool["name"]], is_wide=is_wide) for pool in pools]
    return _columns(rows, tuple(rows[0]) if is_wide else _OF_POOL, look)


def _pool(pool: JsonObject, depth: int, *, is_wide: bool) -> Mapping[str, str]:
    amounts = {key: cpus_text(one) for key, one in pool["cpu"].items()}
    if not is_wide:  # in one column
        amounts["granted"] += f" of {amounts['capacity']}"
    has_memory = bool(pool["memory"]["capacity"])
    return {
        "pool": "  " * depth + pool["name"],
        "kind": pool["labels"].get("type", pool["kind"]),
        "CPUs": pool["cpus"] or "-",
        "shared": pool["shared"] or "-",
        "exclusive": pool["exclusive"] or "-",
        **{key: amounts[key] for key in ("capacity", "granted", "free")},
        "nodes": pool["mems"] or "-",
        "memory": size_text(pool["memory"]["granted"]) if has_memory else "-",
        "containers": str(len(pool["containers"])),
    }


def container_table(containers: list[JsonObject], look: Look, *, is_wide: bool) -> str:
    """Format containers, with what each asks for and has."""
    rows = [_container(one) for one in containers]
    names = tuple(rows[0]) if is_wide else (*_OF_CONTAINER, _IN_FORCE)
    if all(row[_IN_FORCE] == "-" for row in rows):  # as where nothing is verified
        names = tuple(name for name in names if name != _IN_FORCE)
    styles = ["" if _is_quiet(one) else PROBLEM for one in containers]
    return _columns(rows, names, look, styles)


def _container(one: JsonObject) -> Mapping[str, str]:
    return {
        "container": f"{one['namespace']}/{one['pod']}/{one['name']}",
        "QoS": one["qos"],
        "asks": cpus_text(one["request"]["cpu"]),
        "limit": cpus_text(one["request"]["cpuLimit"]),
        "memory": size_text(one["request"]["memory"]),
        "pool": one["pool"] or "-",
        "CPUs": one["cpus"] or "any",
        "exclusive": one["exclusive"] or "-",
        "nodes": one["mems"] or "any",
        "request from": f"{one['source']} ({one['accuracy']})",
        _IN_FORCE: in_force_text(one),
    }


def _is_quiet(one: JsonObject) -> bool:
    return not one["verification"] or one["verification"]["verdict"] in _QUIET


def reservation_table(reservations: list[JsonObject], look: Look) -> str:
    """Format what is kept for containers that are not there yet."""
    return format_table(
        ("reserved for", "asks", "memory", "pool", "CPUs", "nodes", "request from"),
        [
            (
                f"{one['namespace']}/{one['pod']}/{one['name']}",
                cpus_text(one["request"]["cpu"]),
                size_text(one["request"]["memory"]),
                one["pool"],
                one["cpus"] or "shared",
                one["mems"] or "any",
                one["source"],
            )
            for one in reservations
        ],
        look,
    )


def prepared_claim_table(
    claims: list[JsonObject], containers: list[JsonObject], look: Look
) -> str:
    """Format claims for CPUs that are prepared."""
    titles = {
        one["id"]: f"{one['namespace']}/{one['pod']}/{one['name']}"
        for one in containers
    }
    return format_table(
        ("prepared claim", "CPUs", "devices", "containers"),
        [
            (
                f"{one['namespace']}/{one['name']}",
                one["cpus"],
                " ".join(f"{part['device']}:{part['cpus']}" for part in one["devices"]),
                " ".join(titles.get(key, key) for key in one["containers"]) or "-",
            )
            for one in claims
        ],
        look,
    )


def sandbox_table(sandboxes: list[JsonObject], look: Look) -> str:
    """Format the pinning of virtual machines."""
    return format_table(
        ("virtual machine", "handler", "CPUs", "nodes", "in force"),
        [
            (
                f"{one['namespace']}/{one['pod']}",
                one["handler"],
                one["decided"]["cpus"] or "any",
                one["decided"]["mems"] or "any",
                _sandbox_in_force(one),
            )
            for one in sandboxes
        ],
        look,
    )


def _sandbox_in_force(one: JsonObject) -> str:
    if one["why"]:
        return f"no: {one['why']}"
    pinned = any(one["decided"].values())
    return "yes" if one["inForce"] else "pending" if pinned else "-"
