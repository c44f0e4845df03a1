"""What metrics count, and that Prometheus reads what they write."""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.app.metrics.counters import Metrics
from nri_resmgr.app.metrics.table import METRICS
from nri_resmgr.app.metrics.text import BOUNDS, Histogram, Kind, Metric, Series, render
from nri_resmgr.app.observers.observer import Subject
from nri_resmgr.policy.decision import Decision, PinUpdate, Reason
from nri_resmgr.policy.errors import ExclusiveCpusShort
from nri_resmgr.policy.events import (
    NO_PIN,
    ContainerSpec,
    Created,
    RequestOrigin,
    Stopped,
    Synchronized,
)
from nri_resmgr.policy.rules import Rule
from nri_resmgr.stub.runtime_info import RuntimeInfo
from nri_resmgr.values import NO_CPUS, PolicyError
from nri_resmgr.values.printable import printable

TEXTS: Final = st.text()

NAMES: Final = {metric.name for metric in METRICS}


def parsed(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """What Prometheus' own client makes of it."""
    parser = pytest.importorskip("prometheus_client.parser", reason="an extra of tests")
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in parser.text_string_to_metric_families(text)
        for sample in family.samples
    }


def counted(metrics: Metrics) -> list[str]:
    lines = render(metrics.series()).splitlines()
    return [line for line in lines if not line.startswith("#") and line[-2:] != " 0"]


@given(
    st.dictionaries(st.tuples(TEXTS, TEXTS), st.integers(0) | st.floats(0, 1e300)),
    TEXTS.filter(lambda text: text == text.strip()),
)
def test_prometheus_reads_the_written_values(
    values: dict[tuple[str, str], float], about: str
) -> None:
    metric = Metric("m", Kind.GAUGE, about, ("a", "b"))

    assert parsed(render([Series(metric, values)])) == {
        ("m", (("a", printable(a, "\n")), ("b", printable(b, "\n")))): value
        for (a, b), value in values.items()
    }


@given(st.lists(st.floats(0, 5) | st.sampled_from(BOUNDS)))
def test_a_histogram_counts_all_that_took_no_longer(seconds: list[float]) -> None:
    histogram = Histogram()
    for one in seconds:
        histogram.add(one)
    metric = Metric("m", Kind.HISTOGRAM, "How long.", ("a",))
    found = parsed(render([Series(metric, {("x",): histogram})]))

    names = {**{repr(bound): bound for bound in BOUNDS}, "+Inf": float("inf")}
    assert found.pop(("m_sum", (("a", "x"),))) == pytest.approx(sum(seconds))
    assert found.pop(("m_count", (("a", "x"),))) == len(seconds)
    assert found == {
        ("m_bucket", (("a", "x"), ("le", name))): sum(one <= bound for one in seconds)
        for name, bound in names.items()
    }


def decision(*rules: Rule, updates: int = 0) -> Decision[Any]:
    return Decision(
        state=None,
        reasons=tuple(Reason(rule, "c") for rule in rules),
        updates=(PinUpdate("d", NO_PIN),) * updates,
    )


def test_nothing_is_counted_before_something_happens() -> None:
    assert counted(Metrics()) == []


def test_decisions_are_counted_by_event_rule_and_source() -> None:
    metrics = Metrics()
    own = ContainerSpec("c", source=RequestOrigin.ANNOTATION)
    metrics.decided(Created(own), decision(Rule.WHOLE_CPUS, updates=2))
    metrics.decided(Created(own), decision(Rule.NOT_GUARANTEED))
    metrics.decided(Stopped("c"), decision(Rule.RELEASED, updates=1))
    metrics.decided(Synchronized((own,)), decision(Rule.KEPT, Rule.KEPT))

    assert counted(metrics) == [
        'nri_resmgr_decisions_total{event="created"} 2',
        'nri_resmgr_decisions_total{event="stopped"} 1',
        'nri_resmgr_decisions_total{event="synchronized"} 1',
        'nri_resmgr_rules_total{rule="whole-cpus"} 1',
        'nri_resmgr_rules_total{rule="not-guaranteed"} 1',
        'nri_resmgr_rules_total{rule="released"} 1',
        'nri_resmgr_rules_total{rule="kept"} 2',
        'nri_resmgr_request_sources_total{source="annotation"} 2',
        "nri_resmgr_updates_total 3",
    ]


def test_refusals_are_counted_by_their_kind_and_name_nothing() -> None:
    metrics = Metrics()
    none = (NO_CPUS,) * 5
    metrics.refused(
        Subject("default", "web", "nginx"), ExclusiveCpusShort("web", 3, *none)
    )
    metrics.refused(Subject("default", "db", "pg"), ExclusiveCpusShort("db", 5, *none))
    metrics.refused(Subject("default", "db", "pg"), PolicyError())

    assert counted(metrics) == [
        'nri_resmgr_refusals_total{error="ExclusiveCpusShort"} 2',
        'nri_resmgr_refusals_total{error="PolicyError"} 1',
    ]


def test_answers_are_counted_by_method_and_status() -> None:
    metrics = Metrics()
    for method, code in (
        *(("CreateContainer", 0), ("CreateContainer", 5), ("Synchronize", 0)),
        *(("/made/up", 0), ("MadeUp", 4711)),
    ):
        metrics.called(method)
        metrics.answered(method, 0.003, code)

    assert [line for line in counted(metrics) if "_seconds" not in line] == [
        'nri_resmgr_requests_total{method="CreateContainer",status="ok"} 1',
        'nri_resmgr_requests_total{method="CreateContainer",status="not-found"} 1',
        'nri_resmgr_requests_total{method="Synchronize",status="ok"} 1',
        'nri_resmgr_requests_total{method="other",status="ok"} 1',
        'nri_resmgr_requests_total{method="other",status="other"} 1',
    ]


def test_sessions_and_their_open_requests_are_counted() -> None:
    metrics = Metrics()
    metrics.registered(RuntimeInfo())
    metrics.synchronized()
    metrics.called("CreateContainer")
    open_one = counted(metrics)
    metrics.ended("end of file")

    assert open_one == [
        "nri_resmgr_open_requests 1",
        "nri_resmgr_sessions_total 1",
        "nri_resmgr_connected 1",
        "nri_resmgr_synchronized 1",
    ]
    assert counted(metrics) == [
        "nri_resmgr_sessions_total 1",
        "nri_resmgr_sessions_ended_total 1",
    ]


def test_drift_is_counted_by_kind() -> None:
    metrics = Metrics()
    metrics.drift("cpus")
    metrics.drift("cpus")
    metrics.drift("cpus")

    assert counted(metrics) == ['nri_resmgr_drift_total{kind="cpus"} 3']


def test_names_follow_the_conventions() -> None:
    assert len(NAMES) == len(METRICS)
    for metric in METRICS:
        # Names of nri-plugins are as they are.
        if metric.name.startswith("nri_resmgr_"):
            is_counter = metric.kind is Kind.COUNTER
            assert is_counter == metric.name.endswith("_total"), metric.name
        assert metric.help.endswith("."), metric.name
