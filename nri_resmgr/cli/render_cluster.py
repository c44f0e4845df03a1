"""The nodes of ``simulate --cluster``, and differences, as tables or documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from nri_resmgr.cli.output import document_text, is_document, own_document
from nri_resmgr.cli.render_findings import (
    findings_document,
    refusal_sentences,
    show_change_rows,
)
from nri_resmgr.cli.render_workload import workload_document, workload_sections
from nri_resmgr.cli.tables import format_table
from nri_resmgr.scenario.cluster_findings import ClusterFindings, NodeFindings
from nri_resmgr.scenario.compare import REFUSED, FindingChange, changes_between
from nri_resmgr.scenario.dealing import DealtPods
from nri_resmgr.scenario.findings import grantable, group_placements
from nri_resmgr.scenario.steps import Scenario
from nri_resmgr.values.counts import count_text
from nri_resmgr.values.documents import JsonObject, to_plain
from nri_resmgr.values.printable import printable

_NODES: Final = (
    *("node", "CPUs", "containers", "replaced", "refused", "could be exclusive"),
    *("largest", "in one node", "stranded"),
)
_DIFFERENCES: Final = ("node", "changed", "refused before", "refused after")
_MOST_NODES: Final = 5

Changes = Mapping[str, Sequence[FindingChange]]


def show_cluster(found: ClusterFindings, output: str, read: Scenario) -> str:
    """Format nodes, new pods, and how the workload was read.

    *output* is ``table``, in which replicas with equal results are one row, ``wide``
    with a row for each, ``json`` or ``yaml``.
    """
    if is_document(output):
        content = {
            "nodes": list(map(_node_document, found.nodes)),
            "new": list(map(_new_document, found.new)),
            **workload_document(read),
        }
        return document_text(own_document("ClusterSimulation", content), output)
    sections = _sections(found, by_replica=output == "wide")
    return "\n\n".join((*sections, *workload_sections(read)))


def show_cluster_changes(
    first: ClusterFindings, second: ClusterFindings, output: str, read: Scenario
) -> tuple[str, bool]:
    """Format the differences of each node; return also whether there are any."""
    pairs = tuple(zip(first.nodes, second.nodes, strict=True))
    changes = {
        one.node.name: changes_between(one.found, two.found) for one, two in pairs
    }
    # A reason with other numbers is no difference.
    granted = [[(one.title, one.granted) for one in run.new] for run in (first, second)]
    deals_differ = granted[0] != granted[1]
    differ = deals_differ or any(changes.values())
    if is_document(output):
        content = {
            "nodes": [
                {"node": name, "changes": to_plain(rows)}
                for name, rows in changes.items()
            ],
            "new": [
                {"before": _new_document(one), "after": _new_document(two)}
                for one, two in zip(first.new, second.new, strict=True)
            ],
            **workload_document(read),
        }
        document = own_document("ClusterSimulationChanges", content)
        return document_text(document, output), differ
    if not differ:
        return "\n\n".join(("no difference", *workload_sections(read))), False
    rows = [_difference(one, two, changes[one.node.name]) for one, two in pairs]
    parts = [format_table(_DIFFERENCES, rows)]
    if deals_differ:
        parts += (
            _new_pods("new pods before", first),
            _new_pods("new pods after", second),
        )
    for name, of_node in changes.items():
        if of_node:
            table = show_change_rows(of_node, by_replica=output == "wide")
            parts.append(f"{printable(name)}\n{table}")
    return "\n\n".join((*parts, *workload_sections(read))), True


def _node_document(one: NodeFindings) -> JsonObject:
    return {
        "node": one.node.name,
        "cpus": str(one.found.machine.online),
        "present": one.node.present,
        "replaced": one.node.replaced,
        "accepted": not one.refused_rollout,
        "could_be_exclusive": str(grantable(one.found.pools)),
        **findings_document(one.found),
    }


def _new_document(one: DealtPods) -> JsonObject:
    return {
        "title": one.title,
        "pods": one.pods,
        "granted": dict(one.granted),
        "refused": one.refused,
        "why": one.why,
    }


def _sections(found: ClusterFindings, *, by_replica: bool) -> Iterator[str]:
    yield format_table(_NODES, map(_row, found.nodes))
    yield _fragmentation(found.nodes)
    if found.new:
        yield _new_pods("new pods", found)
    for one in found.nodes:
        name = printable(one.node.name)
        for about, refusals in (
            (f"refused on {name}", one.refused_rollout),
            (f"refused on {name}, of pods that run there already", one.refused_present),
        ):
            if refusals:
                lines = refusal_sentences(refusals, by_replica=by_replica)
                yield "\n".join((about, *(f"  {line}" for line in lines)))
        if groups := group_placements(one.fallen_back):
            lines = (printable(f"  {group.title}") for group in groups)
            yield "\n".join((f"on shared CPUs of {name}, by onFailure", *lines))


def _row(one: NodeFindings) -> Sequence[str]:
    found = one.found
    return (
        one.node.name,
        str(len(found.machine.online)),
        str(len(found.placements)),
        str(one.node.replaced),
        str(len(found.refusals)),
        str(len(grantable(found.pools))),
        str(found.largest.anywhere),
        str(found.largest.in_node),
        str(len(found.stranded)),
    )


def _fragmentation(nodes: Sequence[NodeFindings]) -> str:
    free = sum(len(grantable(one.found.pools)) for one in nodes)
    whole = sum(len(one.found.machine.online) for one in nodes)
    largest = max(one.found.largest.anywhere for one in nodes)
    in_node = max(one.found.largest.in_node for one in nodes)
    return (
        f"{free} of {count_text(whole, 'CPU')} could be granted exclusively; "
        f"to one container at most {largest}, in one NUMA node {in_node}"
    )


def _new_pods(title: str, found: ClusterFindings) -> str:
    return "\n".join((title, *(f"  {_dealt(one)}" for one in found.new)))


def _dealt(one: DealtPods) -> str:
    granted = one.pods - one.refused
    places = [f"{node} {number}" for node, number in one.granted.items()]
    more = len(places) - _MOST_NODES
    names = ", ".join(places[:_MOST_NODES]) + (f" and {more} more" if more > 0 else "")
    text = f"{one.title}: {granted} of {one.pods} granted"
    if names:
        text = f"{text} ({names})"
    if one.refused:
        text = f"{text}; no node grants another one: {one.why}"
    return printable(text)


def _difference(
    one: NodeFindings, two: NodeFindings, changes: Sequence[FindingChange]
) -> Sequence[str]:
    moved = {change.title for change in changes if change.what != REFUSED}
    places = {place.title for place in (*one.found.placements, *two.found.placements)}
    return (
        one.node.name,
        str(len(moved & places)),
        str(len(one.found.refusals)),
        str(len(two.found.refusals)),
    )
