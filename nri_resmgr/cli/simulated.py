"""What came of a simulation, as tables for people or JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Final

from nri_resmgr.cli.tables import format_changes, format_table
from nri_resmgr.policy.views import PoolUse
from nri_resmgr.scenario.compare import REFUSED, changes_between
from nri_resmgr.scenario.document import (
    changes_document,
    findings_document,
    largest_of,
)
from nri_resmgr.scenario.findings import Findings, Placement, Spread
from nri_resmgr.scenario.node import Refusal
from nri_resmgr.values import format_cpus

_PLACEMENTS: Final = (
    *("container", "qos", "asks", "memory", "CPUs", "own", "nodes", "pool", "rule"),
)
_POOLS: Final = ("pool", "kind", "CPUs", "granted", "free", "largest", "memory")
_CHANGES: Final = ("container", "what", "before", "after")


def show_findings(found: Findings, output: str) -> str:
    """Write findings as a table, or as JSON."""
    if output == "json":
        return json.dumps(findings_document(found), indent=2)
    return "\n\n".join(_sections(found))


def show_changes(first: Findings, second: Findings, output: str) -> tuple[str, bool]:
    """Write what differs, and tell whether anything does."""
    changes = changes_between(first, second)
    if output == "json":
        return json.dumps(changes_document(changes), indent=2), bool(changes)
    if not changes:
        return "no difference", False
    rows = ((one.title, one.what, one.before, one.after) for one in changes)
    return format_changes(_CHANGES, rows, REFUSED), True


def _sections(found: Findings) -> Iterator[str]:
    yield f"{found.kind} on {len(found.machine.online)} CPUs"
    if found.placements:
        yield format_table(_PLACEMENTS, map(_placement, found.placements))
    if found.refusals:
        refused = (f"  {_sentence(one)}" for one in found.refusals)
        yield "\n".join(("refused", *refused))
    yield format_table(_POOLS, (_pool(one) for one in found.pools))
    yield "\n".join(_left(found))
    if apart := tuple(_apart(found)):
        yield "\n".join(apart)


def _placement(one: Placement) -> Sequence[str]:
    return (
        one.title,
        one.qos.value,
        format_cpus(one.request),
        _short(one.memory) if one.memory else "-",
        str(one.cpus) or "any",
        str(one.own) or "-",
        str(one.mems) or "any",
        one.pool,
        one.rule,
    )


def _sentence(one: Refusal) -> str:
    return one.why if one.why.startswith(one.title) else f"{one.title}: {one.why}"


def _pool(one: PoolUse) -> Sequence[str]:

    memory = "-"
    if one.memory:
        granted, whole = _short(one.memory_granted), _short(one.memory)
        memory = f"{granted} of {whole}"
    return (
        one.name,
        one.kind,
        str(one.cpus),
        f"{format_cpus(one.granted)} of {format_cpus(one.capacity)}",
        format_cpus(one.free),
        str(largest_of(one)),
        memory,
    )


def _left(found: Findings) -> Iterator[str]:
    largest = found.largest
    yield (
        f"one more container could be granted {largest.anywhere} whole CPUs; "
        f"in one socket {largest.in_socket}, in one NUMA node {largest.in_node}, "
        f"behind one L3 cache {largest.in_l3}"
    )
    if found.stranded:
        yield f"stranded beside somebody's own CPU of the same core: {found.stranded}"


def _apart(found: Findings) -> Iterator[str]:
    for who, spread in (("own", found.spread), ("shared", found.shared_spread)):
        for part, titles in _parts(spread):
            names = ", ".join(titles[:_MOST_NAMES])
            more = len(titles) - _MOST_NAMES
            rest = f" and {more} more" if more > 0 else ""
            yield f"{who} CPUs in several {part}: {len(titles)} ({names}{rest})"


_MOST_NAMES: Final = 5


def _parts(spread: Spread) -> Iterator[tuple[str, tuple[str, ...]]]:
    for part, titles in (
        ("sockets", spread.sockets),
        ("NUMA nodes", spread.nodes),
        ("L3 caches", spread.l3),
    ):
        if titles:
            yield part, titles


def _short(amount: int) -> str:
    """Write memory with at most one digit after the point, for people."""
    for suffix, factor in (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20)):
        if amount >= factor:
            return f"{amount / factor:.1f}{suffix}".replace(".0", "", 1)
    return str(amount)
