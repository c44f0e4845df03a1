"""The findings of ``simulate``, and differences of two, as tables or documents."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Final, TypeVar

from nri_resmgr.cli.amounts import size_text
from nri_resmgr.cli.output import document_text, is_document, own_document
from nri_resmgr.cli.render_workload import workload_document, workload_sections
from nri_resmgr.cli.tables import format_changes, format_table
from nri_resmgr.policy.views import PoolUse
from nri_resmgr.scenario.compare import REFUSED, FindingChange, changes_between
from nri_resmgr.scenario.estimates import CPU, MEMORY
from nri_resmgr.scenario.findings import (
    Findings,
    PlacedContainer,
    group_placements,
    group_refusals,
)
from nri_resmgr.scenario.node import RefusedRequest
from nri_resmgr.scenario.replicas import Group, OfStep, grouped
from nri_resmgr.scenario.steps import Scenario
from nri_resmgr.values import format_cpus
from nri_resmgr.values.counts import count_text
from nri_resmgr.values.documents import JsonObject, to_plain
from nri_resmgr.values.printable import printable

_PLACEMENTS: Final = (
    *("container", "qos", "asks", "memory", "CPUs", "exclusive", "nodes", "pool"),
    "rule",
)
_POOLS: Final = ("pool", "kind", "CPUs", "granted", "free", "largest", "memory")
_MOST_NAMES: Final = 5
_CHANGES: Final = ("container", "what", "before", "after")
_NO_WORKLOAD: Final = Scenario("", "", ())

ResultT = TypeVar("ResultT", bound=OfStep)


def show_findings(
    found: Findings, output: str, workload: Scenario = _NO_WORKLOAD
) -> str:
    """Format findings, and how the workload was read, as tables or as a document.

    *output* is ``table``, in which replicas with equal results are one row, ``wide``
    with a row for each, ``json`` or ``yaml``.
    """
    if is_document(output):
        content = {**findings_document(found), **workload_document(workload)}
        return document_text(own_document("Simulation", content), output)
    sections = _sections(found, by_replica=output == "wide")
    return "\n\n".join((*sections, *workload_sections(workload)))


def show_changes(
    first: Findings, second: Findings, output: str, workload: Scenario = _NO_WORKLOAD
) -> tuple[str, bool]:
    """Format the differences; return also whether there are any."""
    changes = changes_between(first, second)
    if is_document(output):
        content = {"changes": to_plain(changes), **workload_document(workload)}
        document = own_document("SimulationChanges", content)
        return document_text(document, output), bool(changes)
    table = "no difference"
    if changes:
        table = show_change_rows(changes, by_replica=output == "wide")
    return "\n\n".join((table, *workload_sections(workload))), bool(changes)


def show_change_rows(changes: Sequence[FindingChange], *, by_replica: bool) -> str:
    """Format differences as a table, and refusals below."""
    groups = _each(changes) if by_replica else grouped(changes, _same_change)
    return format_changes(_CHANGES, map(_change, groups), REFUSED)


def findings_document(found: Findings) -> JsonObject:
    """Return findings as dictionaries, lists, texts and numbers.

    CPUs and nodes are in the kernel's list format, CPU amounts in thousandths, memory
    in bytes; ``largest`` is the most whole CPUs for one more container.
    """
    return {
        "policy": found.kind,
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


def _sections(found: Findings, *, by_replica: bool) -> Iterator[str]:
    yield f"{found.kind} on {count_text(len(found.machine.online), 'CPU')}"
    placed = found.placements
    if placed:
        rows = _each(placed) if by_replica else group_placements(placed)
        yield format_table(_PLACEMENTS, map(_placement, rows))
        yield from _notes(placed)
    if found.refusals:
        sentences = refusal_sentences(found.refusals, by_replica=by_replica)
        yield "\n".join(("refused", *(f"  {one}" for one in sentences)))
    if found.pools:  # else no amounts are accounted for
        yield format_table(_POOLS, (_pool(one) for one in found.pools))
        yield "\n".join(_headroom(found))
    if scattered := tuple(_scattered(found, by_replica=by_replica)):
        yield "\n".join(scattered)


def refusal_sentences(
    refused: Sequence[RefusedRequest], *, by_replica: bool
) -> Iterator[str]:
    """Yield refusals, those of replicas with equal reasons as one."""
    return map(_sentence, _each(refused) if by_replica else group_refusals(refused))


def _each(found: Iterable[ResultT]) -> tuple[Group[ResultT], ...]:
    return tuple(Group(one.title, (one,)) for one in found)


def _same_change(one: FindingChange) -> Hashable:
    # The values may be sentences of refusals.
    before, after = (text.replace(one.title, "") for text in (one.before, one.after))
    return one.what, before, after


def _change(group: Group[FindingChange]) -> Sequence[str]:
    one = group.first
    before, after = (
        text.replace(one.title, group.title) if one.what == REFUSED else text
        for text in (one.before, one.after)
    )
    return group.title, one.what, before, after


def _notes(placed: Sequence[PlacedContainer]) -> Iterator[str]:
    """Yield what the marks in the table mean, and why containers share CPUs."""
    marks = {f"~ {mark.amount}: {mark.why}" for one in placed for mark in one.estimates}
    if marks:
        yield "\n".join(sorted(marks))
    shared = (one for one in placed if one.why_shared)
    if groups := grouped(shared, lambda one: one.why_shared):
        rows = (printable(f"  {one.title}: {one.first.why_shared}") for one in groups)
        yield "\n".join(("Guaranteed, but without exclusive CPUs", *rows))


def _placement(group: Group[PlacedContainer]) -> Sequence[str]:
    one = group.first
    marks = {mark.amount: "~" for mark in one.estimates}
    return (
        group.title,
        one.qos.value,
        marks.get(CPU, "") + format_cpus(one.request),
        marks.get(MEMORY, "") + size_text(one.memory or None),
        str(one.cpus) or "any",
        str(one.exclusive) or "-",
        str(one.mems) or "any",
        one.pool,
        one.rule,
    )


def _sentence(group: Group[RefusedRequest]) -> str:
    one = group.first
    about = "" if one.why.startswith(one.title) else f"{group.title}: "
    return printable(f"{about}{one.why.replace(one.title, group.title)}")


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


def _scattered(found: Findings, *, by_replica: bool) -> Iterator[str]:
    known = {one.title: one for one in found.placements}
    parts = {"sockets": "sockets", "nodes": "NUMA nodes", "l3": "L3 caches"}
    for kind, spread in (("exclusive", found.spread), ("shared", found.shared_spread)):
        for key, part in parts.items():
            if titles := getattr(spread, key):
                these = (known[title] for title in titles)
                groups = _each(these) if by_replica else grouped(these, lambda _: None)
                names = printable(", ".join(one.title for one in groups[:_MOST_NAMES]))
                more = sum(len(one.members) for one in groups[_MOST_NAMES:])
                rest = f" and {more} more" if more > 0 else ""
                yield f"{kind} CPUs in several {part}: {len(titles)} ({names}{rest})"
