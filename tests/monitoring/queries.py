"""The queries of dashboards and alerts, as Prometheus gets them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from tests.monitoring.rules import ALERTS, MONITORING

DASHBOARDS: Final = tuple(sorted((MONITORING / "dashboards").glob("*.json")))

# A metric in a query, or a function; with its matchers where it has some.
_NAME: Final = re.compile(
    r"\b(?P<name>(?:nri|process)_\w+|up|ALERTS)\b(?P<matchers>\{[^}]*\})?"
)
_MATCHER: Final = re.compile(r"(\w+)\s*(?:=~|!=|!~|=)")
_GROUPING: Final = re.compile(r"\b(?:by|without) \(([^)]*)\)")
_LEGEND: Final = re.compile(r"\{\{(\w+)\}\}")
# What makes a query empty where all is well.
_CONDITION: Final = re.compile(r" (?:==|>) [\d.]+")
_ALTERNATIVE: Final = re.compile(r" (?:or|and) ")
_NOTHING: Final = " or vector(0)"


class Selector(msgspec.Struct, frozen=True):
    """A metric in a query.

    Attributes:
        text: As in the query, with matchers.
        labels: Those that matchers name.
    """

    name: str
    text: str
    labels: frozenset[str]


class Query(msgspec.Struct, frozen=True):
    """A query of a panel, a variable or an alert.

    Attributes:
        where: The file and the panel, or the alert.
        legend: The panel's text for each series, with labels in double braces.
    """

    where: str
    text: str
    legend: str = ""

    def concrete(self, node: str) -> Query:
        """Return it as Grafana sends it.

        Args:
            node: The chosen value of the variable.
        """
        text = self.text.replace("$node", node).replace("$__rate_interval", "20s")
        return msgspec.structs.replace(self, text=text)

    def operands(self) -> tuple[str, ...]:
        """Return the parts between ``or`` and ``and``, without conditions.

        Each of them has a value also where all is well.
        """
        parts = _ALTERNATIVE.split(self.text.removesuffix(_NOTHING))
        return tuple(_CONDITION.sub("", one) for one in parts)

    def selectors(self) -> tuple[Selector, ...]:
        """Return all metrics in it."""
        return tuple(
            Selector(
                found["name"],
                found[0],
                frozenset(_MATCHER.findall(found["matchers"] or "")),
            )
            for found in _NAME.finditer(self.text)
        )

    def grouping_labels(self) -> frozenset[str]:
        """Return the labels that it groups by."""
        found = (one.split(", ") for one in _GROUPING.findall(self.text))
        return frozenset(label for names in found for label in names)

    def legend_labels(self) -> frozenset[str]:
        """Return the labels of its legend."""
        return frozenset(_LEGEND.findall(self.legend))


def all_queries() -> tuple[Query, ...]:
    """Return the queries of all dashboards and alerts."""
    of_alerts = (Query(name, one["expr"]) for name, one in ALERTS.items())
    return (*of_alerts, *(one for path in DASHBOARDS for one in queries_of(path)))


def queries_of(path: Path) -> Iterator[Query]:
    """Yield the queries of a dashboard's variables and panels."""
    board = read_dashboard(path)
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            text = variable["query"]["query"]
            found = re.fullmatch(r"label_values\((\w+), (\w+)\)", text)
            assert found, text
            label = f"{{{{{found[2]}}}}}"
            yield Query(f"{path.name}: ${variable['name']}", found[1], label)
    for panel in board["panels"]:
        for target in panel.get("targets", ()):
            where = f"{path.name}: {panel['title']}"
            yield Query(where, target["expr"], target["legendFormat"])


def read_dashboard(path: Path) -> Mapping[str, Any]:
    """Read the model of a dashboard."""
    board: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return board
