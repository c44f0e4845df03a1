"""The findings of ``simulate``, and differences of two, as tables or as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Final

from nri_resmgr.cli.amounts import size_text
from nri_resmgr.cli.tables import format_changes, format_table
from nri_resmgr.policy.views import PoolUse
from nri_resmgr.scenario.compare import REFUSED, changes_between
from nri_resmgr.scenario.findings import Findings, PlacedContainer
from nri_resmgr.scenario.node import RefusedRequest
from nri_resmgr.scenario.steps import LeftOut
from nri_resmgr.values import format_cpus
from nri_resmgr.values.counts import count_text
from nri_resmgr.values.documents import JsonObject, to_plain
from nri_resmgr.values.printable import printable, printable_json

# Increased when a key of the JSON form is removed or changes its meaning.
FORMAT: Final = 1

_PLACEMENTS: Final = (
    *("container", "qos", "asks", "memory", "CPUs", "exclusive", "nodes", "pool"),
    "rule",
)
_POOLS: Final = ("pool", "kind", "CPUs", "granted", "free", "largest", "memory")
_MOST_NAMES: Final = 5
_CHANGES: Final = ("container", "what", "before", "after")


def show_findings(
    found: Findings, output: str, left_out: Sequence[LeftOut] = ()
) -> str:
    """Format findings, and what was left out of the workload, as tables or as JSON."""
    if output == "json":
        document = {**_findings_document(found), "left_out": to_plain(left_out)}
        return printable_json(json.dumps(document, indent=2))
    return "\n\n".join((*_sections(found), *_left_out(left_out)))


def show_changes(
    first: Findings, second: Findings, output: str, left_out: Sequence[LeftOut] = ()
) -> tuple[str, bool]:
    """Format the differences; return also whether there are any."""
    changes = changes_between(first, second)
    if output == "json":
        plain, left = to_plain(changes), to_plain(left_out)
        document = {"format": FORMAT, "changes": plain, "left_out": left}
        return printable_json(json.dumps(document, indent=2)), bool(changes)
    rows = ((one.title, one.what, one.before, one.after) for one in changes)
    table = format_changes(_CHANGES, rows, REFUSED) if changes else "no difference"
    return "\n\n".join((table, *_left_out(left_out))), bool(changes)


def _findings_document(found: Findings) -> JsonObject:
    """Return findings as dictionaries, lists, texts and numbers.

    CPUs and nodes are in the kernel's list format, CPU amounts in thousandths, memory
    in bytes; ``largest`` is the most whole CPUs for one more container.
    """
    return {
        "format": FORMAT,
        "kind": found.kind,
        "containers": [to_plain(one) for one in found.placements],
        "refusals": [to_plain(one) for one in found.refusals],
        # `to_plain` leaves empty labels out; scripts expect the key.
        "pools": [
            {**to_plain(one), "labels": dict(one.labels), "largest": _largest_of(one)}
            for one in found.pools
        ],
        "largest": to_plain(found.largest),
        "stranded": str(found.stranded),
        "spread": {
            "exclusive": to_plain(found.spread),
            "shared": to_plain(found.shared_spread),
        },
    }


def _largest_of(pool: PoolUse) -> int:
    """Return the most whole CPUs that a pool could grant to one more container."""
    grantable = pool.shared | pool.isolated
    return min(pool.free // 1000, len(pool.cpus)) if grantable else 0


def _sections(found: Findings) -> Iterator[str]:
    yield f"{found.kind} on {count_text(len(found.machine.online), 'CPU')}"
    if found.placements:
        yield format_table(_PLACEMENTS, map(_placement, found.placements))
    if found.refusals:
        refused = (f"  {_sentence(one)}" for one in found.refusals)
        yield "\n".join(("refused", *refused))
    if found.pools:  # else no amounts are accounted for
        yield format_table(_POOLS, (_pool(one) for one in found.pools))
        yield "\n".join(_headroom(found))
    if scattered := tuple(_scattered(found)):
        yield "\n".join(scattered)


def _left_out(objects: Sequence[LeftOut]) -> Iterator[str]:
    if objects:
        rows = (printable(f"  {one}: {one.why}") for one in objects)
        yield "\n".join(("left out", *rows))


def _placement(one: PlacedContainer) -> Sequence[str]:
    return (
        one.title,
        one.qos.value,
        format_cpus(one.request),
        size_text(one.memory or None),
        str(one.cpus) or "any",
        str(one.exclusive) or "-",
        str(one.mems) or "any",
        one.pool,
        one.rule,
    )


def _sentence(one: RefusedRequest) -> str:
    about = "" if one.why.startswith(one.title) else f"{one.title}: "
    return printable(f"{about}{one.why}")


def _pool(one: PoolUse) -> Sequence[str]:
    memory = "-"
    if one.memory:
        granted, whole = size_text(one.memory_granted), size_text(one.memory)
        memory = f"{granted} of {whole}"
    return (
        one.name,
        one.kind,
        str(one.cpus),
        f"{format_cpus(one.granted)} of {format_cpus(one.capacity)}",
        format_cpus(one.free),
        str(_largest_of(one)),
        memory,
    )


def _headroom(found: Findings) -> Iterator[str]:
    largest = found.largest
    yield (
        "one more container could be granted "
        f"{count_text(largest.anywhere, 'whole CPU')}; "
        f"in one socket {largest.in_socket}, in one NUMA node {largest.in_node}, "
        f"behind one L3 cache {largest.in_l3}"
    )
    if found.stranded:
        yield f"free CPUs that share a core with an exclusive CPU: {found.stranded}"


def _scattered(found: Findings) -> Iterator[str]:
    parts = {"sockets": "sockets", "nodes": "NUMA nodes", "l3": "L3 caches"}
    for kind, spread in (("exclusive", found.spread), ("shared", found.shared_spread)):
        for key, part in parts.items():
            if titles := getattr(spread, key):
                names = printable(", ".join(titles[:_MOST_NAMES]))
                more = len(titles) - _MOST_NAMES
                rest = f" and {more} more" if more > 0 else ""
                yield f"{kind} CPUs in several {part}: {len(titles)} ({names}{rest})"
