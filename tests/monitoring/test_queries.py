"""Every query is run by a real Prometheus that scrapes running daemons and an agent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
import pytest

from nri_resmgr.agent.api import Access
from tests.agent.conftest import access, authority, server
from tests.agent.fake_api_server import FakeApiServer
from tests.monitoring.nodes import demo_node, full_node
from tests.monitoring.programs import prometheus
from tests.monitoring.queries import Query, all_queries
from tests.monitoring.rules import ALERTS
from tests.monitoring.server import Prometheus, prometheus_server
from tests.real_host.patience import patience

pytestmark = [pytest.mark.process, pytest.mark.slow]

__all__ = ["access", "authority", "server"]

# Values of the variable `node`; the page of one node takes no expression.
NODES: Final = ("demo", "node-a")
OPERANDS: Final = tuple(
    msgspec.structs.replace(query, text=text)
    for query in all_queries()
    for text in query.operands()
)
# What is wrong with the node that has every feature; see `full_node`.
TROUBLES: Final = (
    "NriResmgrContainersRefused",
    "NriResmgrContainersDrifted",
    "NriResmgrKubeletManager",
    "NriResmgrConfigurationLeftOut",
    "NriResmgrAgentWatchFailing",
    "NriResmgrAgentWritesFailing",
)
# They fire at once here, also when a scrape or a request takes long for once.
OF_A_BUSY_MACHINE: Final = {"NriResmgrDown", "NriResmgrRequestsSlow"}
# Labels without a value here, which Prometheus drops: there are no monitoring groups.
EMPTY: Final = {"group"}
_STEP: Final = 0.5  # seconds between two tries


@pytest.fixture
async def monitoring(
    server: FakeApiServer,
    access: Access,
    tmp_path: Path,
) -> AsyncIterator[Prometheus]:
    prometheus()  # skips before anything is started
    folders = {name: tmp_path / name for name in ("demo", "full", "prometheus")}
    for folder in folders.values():
        folder.mkdir()
    async with (
        demo_node(folders["demo"]) as demo,
        full_node(folders["full"], server, access) as (daemon, agent),
        prometheus_server(folders["prometheus"], (demo, daemon, agent)) as found,
    ):
        yield found


async def answer(source: Prometheus, query: Query) -> list[dict[str, str]]:
    """Return the labels of the series that a query has on any node."""
    found = [await source.series(query.concrete(node).text) for node in NODES]
    return [labels for series in found for labels in series]


async def answers(
    source: Prometheus, queries: tuple[Query, ...]
) -> Mapping[Query, list[dict[str, str]]]:
    """Return the answers to queries, and wait until there is one to each.

    Counters need two samples, and some begin later than others.
    """
    found: dict[Query, list[dict[str, str]]] = {one: [] for one in queries}
    with suppress(TimeoutError):
        async with asyncio.timeout(patience(120)):
            while missing := [one for one, series in found.items() if not series]:
                for one in missing:
                    found[one] = await answer(source, one)
                await asyncio.sleep(_STEP)
    return found


async def test_each_query_has_an_answer(monitoring: Prometheus) -> None:
    found = await answers(monitoring, OPERANDS)

    assert [one for one, series in found.items() if not series] == []
    for query, series in found.items():
        unknown = query.legend_labels().difference(*series)
        assert unknown <= EMPTY, query


async def test_prometheus_has_no_remark_about_a_query(monitoring: Prometheus) -> None:
    """Such as of a rate of what is no counter, which it makes where it has values."""
    await answers(monitoring, OPERANDS)
    texts = {one.concrete(node).text for one in all_queries() for node in NODES}
    whole = {text: await monitoring.query(text) for text in sorted(texts)}

    assert [one for one in whole.values() if one["status"] != "success"] == []
    assert [
        (text, remark)
        for text, one in whole.items()
        for remark in (*one.get("warnings", ()), *one.get("infos", ()))
    ] == []


async def test_alerts_are_of_the_troubled_node_only(monitoring: Prometheus) -> None:
    firing = tuple(
        Query(name, f'ALERTS{{alertname="{name}", alertstate="firing"}}')
        for name in TROUBLES
    )
    found = await answers(monitoring, firing)
    rules = await monitoring.rules()

    assert {
        one.where: {s["node"] for s in series} for one, series in found.items()
    } == {name: {"node-a"} for name in TROUBLES}
    assert {one["name"] for one in rules} == set(ALERTS)
    assert [one["lastError"] for one in rules if one["health"] != "ok"] == []
    healthy = await monitoring.series('ALERTS{node="demo"}')
    assert {one["alertname"] for one in healthy} <= OF_A_BUSY_MACHINE
