"""The state of a daemon and its node as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nri_resmgr.cli.look import PLAIN, Look
from nri_resmgr.cli.render_containers import (
    container_table,
    pool_table,
    prepared_claim_table,
    reservation_table,
    resource_table,
    sandbox_table,
)
from nri_resmgr.cli.render_facts import Fact, headline, summary
from nri_resmgr.cli.render_host import class_tables, cpu_class_table, isolation_table
from nri_resmgr.cli.tables import fold_words
from nri_resmgr.values.documents import JsonObject

_TITLE: Final = 13  # columns of the titles of facts
_GAP: Final = "  "
_NARROWEST: Final = 20  # columns of a text


def of_namespace(state: JsonObject, namespace: str) -> JsonObject:
    """Return the state with what belongs to a namespace only.

    What is the node's stays whole: pools, amounts and the summary's counts.
    """
    lists = ("containers", "reservations", "preparedClaims", "sandboxes")
    kept: JsonObject = {
        key: [one for one in state[key] if one["namespace"] == namespace]
        for key in lists
    }
    if state["host"]:
        start = f"{namespace}/"
        isolated = [
            one
            for one in state["host"]["isolated"]
            if one["container"].startswith(start)
        ]
        kept["host"] = state["host"] | {"isolated": isolated}
    return state | kept


def render_status(
    state: JsonObject, look: Look = PLAIN, *, is_wide: bool = False, namespace: str = ""
) -> str:
    """Write the summary, and tables of pools and containers.

    Args:
        state: The answer of the daemon.
        look: Colours, and the width to which lines are folded.
        is_wide: Whether tables have all columns, instead of those that fit 80 columns.
        namespace: The only namespace whose containers are shown; empty for all.
    """
    lines = [look.paint("title", line) for line in _folded(headline(state), look)]
    lines += (line for fact in summary(state) for line in _lines(fact, look))
    parts = ["\n".join(lines)]
    if state["pools"]:
        parts.append(pool_table(state["pools"], look, is_wide=is_wide))
    if state["host"] and state["host"]["classes"]:
        parts.append(cpu_class_table(state["host"], look))
    shown = of_namespace(state, namespace) if namespace else state
    if shown["host"] and shown["host"]["isolated"]:
        parts.append(isolation_table(shown["host"], look))
    parts += class_tables(state["classes"], look)
    if state["extendedResources"]:
        parts.append(resource_table(state["extendedResources"], look))
    if shown["containers"]:
        parts.append(container_table(shown["containers"], look, is_wide=is_wide))
    elif namespace:
        parts.append(f"no containers in namespace {namespace}")
    if shown["reservations"]:
        parts.append(reservation_table(shown["reservations"], look))
    if claims := shown["preparedClaims"]:
        parts.append(prepared_claim_table(claims, state["containers"], look))
    if shown["sandboxes"]:
        parts.append(sandbox_table(shown["sandboxes"], look))
    return "\n\n".join(parts)


def _lines(fact: Fact, look: Look) -> Iterator[str]:
    title = fact.title
    for text in _folded(fact.text, look, _TITLE + len(_GAP)):
        line = f"{title:<{_TITLE}}{_GAP}{text}"
        yield look.paint(fact.style, line) if fact.style else line
        title = ""


def _folded(text: str, look: Look, indent: int = 0) -> list[str]:
    # The least is for the longest words, where a terminal is narrow.
    width = max(look.width - indent, _NARROWEST)
    return fold_words(text, width) if look.width else [text]
