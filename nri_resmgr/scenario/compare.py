"""What differs between two outcomes of the same scenario."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from nri_resmgr.scenario.findings import Findings, Placement

REFUSED: Final = "refused"
"""What is different about one that is refused in one outcome only."""


class Change(msgspec.Struct, frozen=True):
    """One thing that is not the same.

    Attributes:
        title: The container, or ``node`` for the whole.
        what: Which of its properties.
        before: In the first outcome; empty for none.
        after: In the second one.
    """

    title: str
    what: str
    before: str
    after: str


def changes_between(first: Findings, second: Findings) -> tuple[Change, ...]:
    """List what differs: containers in order, then refusals, then the whole node."""
    return (
        *_of_placements(first, second),
        *_of_refusals(first, second),
        *_of_node(first, second),
    )


def _of_placements(first: Findings, second: Findings) -> Iterator[Change]:
    before = {one.id: one for one in first.placements}
    after = {one.id: one for one in second.placements}
    for key in before | after:
        one, two = _columns(before.get(key)), _columns(after.get(key))
        title = (before.get(key) or after[key]).title
        for what in one | two:
            if one.get(what, "") != two.get(what, ""):
                yield Change(title, what, one.get(what, ""), two.get(what, ""))


def _columns(found: Placement | None) -> dict[str, str]:
    if found is None:
        return {}
    return {
        "cpus": str(found.cpus) or "any",
        "own": str(found.own),
        "mems": str(found.mems) or "any",
        "pool": found.pool,
    }


def _of_refusals(first: Findings, second: Findings) -> Iterator[Change]:
    before = {(one.step, one.title): one.why for one in first.refusals}
    after = {(one.step, one.title): one.why for one in second.refusals}
    for step, title in before | after:
        one, two = before.get((step, title), ""), after.get((step, title), "")
        if not (one and two):  # other numbers in the sentence change nothing
            yield Change(title, REFUSED, one, two)


def _of_node(first: Findings, second: Findings) -> Iterator[Change]:
    pairs = (
        ("largest", first.largest.anywhere, second.largest.anywhere),
        ("largest in one node", first.largest.in_node, second.largest.in_node),
        ("stranded", first.stranded, second.stranded),
        ("apart", len(first.spread.nodes), len(second.spread.nodes)),
    )
    for what, one, two in pairs:
        if one != two:
            yield Change("node", what, str(one), str(two))
