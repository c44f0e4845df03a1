"""Compares the findings of two runs of the same scenario."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from nri_resmgr.scenario.findings import Findings, PlacedContainer

REFUSED: Final = "refused"
"""The property of containers that only one run refused."""

OF_NODE: Final = -1


class FindingChange(msgspec.Struct, frozen=True):
    """A property that differs between two runs.

    Attributes:
        step: The step that created the container, or was refused; `OF_NODE` for the
            node.
        title: The container, or ``node``.
        what: The property.
        before: Its value in the first run; empty for none.
        after: Its value in the second run.
    """

    step: int
    title: str
    what: str
    before: str
    after: str


def changes_between(first: Findings, second: Findings) -> tuple[FindingChange, ...]:
    """Return all differences: of containers in order, of refusals, of the node."""
    return (
        *_of_placements(first, second),
        *_of_refusals(first, second),
        *_of_node(first, second),
    )


def _of_placements(first: Findings, second: Findings) -> Iterator[FindingChange]:
    before = {one.id: one for one in first.placements}
    after = {one.id: one for one in second.placements}
    for key in before | after:
        one, two = _columns(before.get(key)), _columns(after.get(key))
        known = before.get(key) or after[key]
        for what in one | two:
            if one.get(what, "") != two.get(what, ""):
                values = one.get(what, ""), two.get(what, "")
                yield FindingChange(known.step, known.title, what, *values)


def _columns(found: PlacedContainer | None) -> dict[str, str]:
    if found is None:
        return {}
    return {
        "cpus": str(found.cpus) or "any",
        "exclusive": str(found.exclusive),
        "mems": str(found.mems) or "any",
        "pool": found.pool,
    }


def _of_refusals(first: Findings, second: Findings) -> Iterator[FindingChange]:
    before = {(one.step, one.title): one.why for one in first.refusals}
    after = {(one.step, one.title): one.why for one in second.refusals}
    for step, title in before | after:
        one, two = before.get((step, title), ""), after.get((step, title), "")
        if not (one and two):  # a sentence with other numbers is no difference
            yield FindingChange(step, title, REFUSED, one, two)


def _of_node(first: Findings, second: Findings) -> Iterator[FindingChange]:
    pairs = (
        ("largest", first.largest.anywhere, second.largest.anywhere),
        ("largest in one node", first.largest.in_node, second.largest.in_node),
        ("stranded", first.stranded, second.stranded),
        ("in several nodes", len(first.spread.nodes), len(second.spread.nodes)),
    )
    for what, one, two in pairs:
        if one != two:
            yield FindingChange(OF_NODE, "node", what, str(one), str(two))
