"""Dashboards are laid out as Grafana wants them, and name metrics that there are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from nri_resmgr.agent import metrics as of_agent
from nri_resmgr.app.metrics.table import METRICS
from nri_resmgr.app.metrics.text import Kind
from tests.deploy.kubectl import rendered
from tests.monitoring.queries import (
    DASHBOARDS,
    Query,
    all_queries,
    queries_of,
    read_dashboard,
)

COLUMNS: Final = 24
# Of each target, by the options `pod-monitor` and by the operator.
OF_TARGETS: Final = {"job", "instance", "node", "namespace", "pod", "container"}
# Those that Prometheus itself makes.
OWN: Final[Mapping[str, frozenset[str]]] = {
    "up": frozenset(OF_TARGETS),
    "ALERTS": frozenset(OF_TARGETS | {"alertname", "alertstate"}),
}


def labels_by_name() -> Mapping[str, frozenset[str]]:
    """Return the labels of each series, as Prometheus stores it.

    Source:
        Prometheus, docs/configuration/configuration.md, "honor_labels".
    """
    found = dict(OWN)
    for one in (*METRICS, *of_agent.METRICS):
        taken = {f"exported_{name}" for name in one.labels if name in OF_TARGETS}
        labels = frozenset(OF_TARGETS | taken | set(one.labels))
        if one.kind is Kind.HISTOGRAM:
            found |= {
                f"{one.name}_bucket": labels | {"le"},
                f"{one.name}_sum": labels,
                f"{one.name}_count": labels,
            }
        else:
            found[one.name] = labels
    return found


LABELS: Final = labels_by_name()


@pytest.mark.parametrize(
    "query",
    [pytest.param(one, id=f"{one.where}-{i}") for i, one in enumerate(all_queries())],
)
def test_a_query_has_metrics_and_labels_that_there_are(query: Query) -> None:
    selectors = query.selectors()

    assert selectors
    assert [one.name for one in selectors if one.name not in LABELS] == []
    for one in selectors:
        assert one.labels <= LABELS[one.name], one
    known = frozenset[str]().union(*(LABELS[one.name] for one in selectors))
    assert query.grouping_labels() | query.legend_labels() <= known


def panels_of(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = read_dashboard(path)["panels"]
    return found


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.name)
def test_panels_lie_side_by_side(path: Path) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in panels_of(path):
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert at["x"] + at["w"] <= COLUMNS, panel["title"]
        assert not cells & taken, panel["title"]
        taken |= cells


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.name)
def test_panels_are_numbered_and_ask_the_chosen_source(path: Path) -> None:
    panels = panels_of(path)
    source = {"type": "prometheus", "uid": "${datasource}"}
    asking = [one for one in panels if one["type"] != "row"]

    assert len({one["id"] for one in panels}) == len(panels)
    assert {one["title"] for one in asking if one["datasource"] != source} == set()
    for panel in asking:
        targets = panel["targets"]
        assert [one["datasource"] for one in targets] == [source] * len(targets)
        assert len({one["refId"] for one in targets}) == len(targets)


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.name)
def test_each_query_is_of_the_chosen_nodes(path: Path) -> None:
    (variable,) = (
        one
        for one in read_dashboard(path)["templating"]["list"]
        if one["type"] == "query"
    )
    matcher = 'node=~"$node"' if variable["multi"] else 'node="$node"'

    without = [
        selector.text
        for query in queries_of(path)
        if "$node" not in query.where
        for selector in query.selectors()
        if matcher not in selector.text
    ]
    assert without == []


def test_the_links_between_dashboards_lead_to_one() -> None:
    texts = [path.read_text(encoding="utf-8") for path in DASHBOARDS]
    uids = [read_dashboard(path)["uid"] for path in DASHBOARDS]

    assert len(set(uids)) == len(uids)
    linked = {
        text.partition("?")[0] for part in texts for text in part.split('"/d/')[1:]
    }
    assert linked == {"nri-resmgr-node"}
    assert linked <= set(uids)


def test_a_misspelt_name_would_be_noticed() -> None:
    query = Query("x", 'rate(nri_resmgr_refusal_total{nod="a"}[5m])')
    (selector,) = query.selectors()

    assert selector.name not in LABELS
    assert selector.labels == {"nod"}


@pytest.mark.process
def test_the_kustomization_has_each_dashboard_for_the_sidecar() -> None:
    maps = rendered(DASHBOARDS[0].parent)
    texts = {name: text for one in maps for name, text in one["data"].items()}

    assert texts == {path.name: path.read_text("utf-8") for path in DASHBOARDS}
    assert [one["metadata"]["labels"] for one in maps] == [
        {"grafana_dashboard": "1"} for _ in maps
    ]
