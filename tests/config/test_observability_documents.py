"""`log` and `instrumentation` of documents: what they mean, and what has no effect."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nri_resmgr.config import BadSetting
from nri_resmgr.config.log_sources import SOURCES, components_of
from nri_resmgr.config.observability import InstrumentationUse, LogUse
from nri_resmgr.policies import parse_config

PACKAGE = Path(__file__).parents[2] / "nri_resmgr"
KINDS = ("TopologyAwarePolicy", "BalloonsPolicy", "StaticPolicy", "NonePolicy")
LOG = "$.spec.log"
USE = "$.spec.instrumentation"


def document(spec: str, kind: str = "TopologyAwarePolicy") -> str:
    return f"apiVersion: config.nri/v1alpha1\nkind: {kind}\nspec: {spec}\n"


@pytest.mark.parametrize("kind", KINDS)
def test_documents_of_all_kinds_have_both_sections(kind: str) -> None:
    spec = "{log: {source: true}, instrumentation: {httpEndpoint: ':8891'}}"

    found = parse_config(document(spec, kind))

    assert found.log == LogUse(source=True)
    assert found.instrumentation == InstrumentationUse(endpoint="[::]:8891")
    assert found.ineffective == ()


def test_a_document_without_them_leaves_all_to_flags() -> None:
    found = parse_config(document("{}"))

    assert (found.log, found.instrumentation) == (None, None)


@pytest.mark.parametrize(
    ("items", "rules"),
    [
        pytest.param("['*']", (("*", True),), id="everything"),
        pytest.param("[all]", (("*", True),), id="everything, by its other name"),
        pytest.param("['irq:off']", (("app.host_settings", False),), id="off"),
        pytest.param(
            "['on:irq,sysfs,off:rdt']",
            (
                ("app.host_settings", True),
                ("host.machine", True),
                ("host.tree", True),
                ("app.classes.rdt", False),
                ("host.resctrl", False),
            ),
            id="a state in front, which is for the following ones as well",
        ),
        pytest.param("['stub.*']", (("stub.*", True),), id="a name of ours"),
        pytest.param("[irq, 'irq:off']", (("app.host_settings", False),), id="last"),
    ],
)
def test_debug_sources_become_components(
    items: str, rules: tuple[tuple[str, bool], ...]
) -> None:
    found = parse_config(document(f"{{log: {{debug: {items}}}}}"))

    assert found.log is not None
    assert found.log.debug == rules
    assert found.ineffective == ()


@pytest.mark.parametrize(
    ("period", "seconds"),
    [("30s", 30.0), ("1m30s", 90.0), ("500ms", 0.5), ("0", 0.0), ("9999h", 86400.0)],
)
def test_periods_are_read_as_go_does(period: str, seconds: float) -> None:
    spec = f"{{instrumentation: {{reportPeriod: {period!r}}}}}"

    found = parse_config(document(spec)).instrumentation

    assert (found or InstrumentationUse()) == InstrumentationUse(period=seconds)


@pytest.mark.parametrize(
    ("endpoint", "expected"),
    [
        pytest.param(":8891", "[::]:8891", id="every address, as in Go"),
        pytest.param("localhost:8891", "127.0.0.1:8891", id="a name that all have"),
        pytest.param("10.0.0.7:80", "10.0.0.7:80", id="IPv4"),
        pytest.param("[fd00::7]:80", "[fd00::7]:80", id="IPv6"),
    ],
)
def test_endpoints(endpoint: str, expected: str) -> None:
    spec = f"{{instrumentation: {{httpEndpoint: {endpoint!r}}}}}"

    found = parse_config(document(spec)).instrumentation

    assert found == InstrumentationUse(endpoint=expected)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        pytest.param(
            "{tracingCollector: otlp-http, samplingRatePerMillion: 1000}",
            InstrumentationUse(sends_traces=True, sampling="0.001"),
            id="the collector of OpenTelemetry's variables",
        ),
        pytest.param(
            "{tracingCollector: 'otlp-http://c:4318', samplingRatePerMillion: 1000000}",
            InstrumentationUse(
                sends_traces=True, collector="http://c:4318", sampling="1"
            ),
            id="one with an address",
        ),
        pytest.param(
            "{tracingCollector: 'https://c/x', samplingRatePerMillion: 1}",
            InstrumentationUse(
                sends_traces=True, collector="https://c/x", sampling="1e-06"
            ),
            id="a URL",
        ),
        pytest.param(
            "{tracingCollector: 'otlp-grpc://c:4317', samplingRatePerMillion: 1000000}",
            InstrumentationUse(
                sends_traces=True,
                collector="http://c:4317",
                traces_by_grpc=True,
                sampling="1",
            ),
            id="gRPC with an address",
        ),
        *(
            pytest.param(
                f"{{tracingCollector: {scheme}, samplingRatePerMillion: 1000000}}",
                InstrumentationUse(
                    sends_traces=True, traces_by_grpc=by_grpc, sampling="1"
                ),
                id=f"the scheme {scheme} alone",
            )
            for scheme, by_grpc in {
                "otlp-grpc": True,
                "grpc": True,
                "http": False,
            }.items()
        ),
        pytest.param(
            "{metricsExporter: otlp-grpc, logExporter: otlp-grpc}",
            InstrumentationUse(
                sends_metrics=True,
                metrics_by_grpc=True,
                log_period=1.0,
                log_by_grpc=True,
            ),
            id="metrics and the log over gRPC",
        ),
        pytest.param(
            "{tracingCollector: otlp-http}",
            InstrumentationUse(),
            id="nothing is sampled by default",
        ),
        pytest.param(
            "{prometheusExport: true}",
            InstrumentationUse(serves_metrics=True),
            id="metrics",
        ),
        pytest.param(
            "{metricsExporter: prometheus}",
            InstrumentationUse(serves_metrics=True),
            id="metrics, in the newer way",
        ),
        pytest.param(
            "{metricsExporter: otlp-http, reportPeriod: 1m}",
            InstrumentationUse(sends_metrics=True, period=60.0),
            id="metrics to a collector",
        ),
        pytest.param(
            "{logExporter: otlp-http}",
            InstrumentationUse(log_period=1.0),
            id="the log to a collector",
        ),
        pytest.param(
            "{logExporter: otlp-http, logExportPeriod: 1500ms}",
            InstrumentationUse(log_period=1.5),
            id="the log in another period",
        ),
        pytest.param(
            "{metrics: {enabled: [], polled: [rdt]}}",
            InstrumentationUse(enabled=(), polled=("rdt",)),
            id="no metric, which is not the same as all of them",
        ),
    ],
)
def test_instrumentation(keys: str, expected: InstrumentationUse) -> None:
    found = parse_config(document(f"{{instrumentation: {keys}}}"))

    assert (found.instrumentation or InstrumentationUse()) == expected
    assert found.ineffective == ()


def test_settings_without_effect_are_listed() -> None:
    spec = """
  log:
    debug: [policy, e2e-test]
    klog: {v: 4, logtostderr: "true", skip_headers: true, one_output: false}
  instrumentation:
    tracingCollector: jaeger://collector:14268
    samplingRatePerMillion: 5
    logExportPeriod: 5s
"""
    found = parse_config(document(spec))

    assert found.ineffective == (
        f"{LOG}.debug[1]",
        f"{LOG}.klog.v",
        f"{LOG}.klog.logtostderr",
        f"{USE}.tracingCollector",
    )
    assert found.log is not None
    assert not found.log.headers
    assert found.instrumentation == InstrumentationUse(sampling="5e-06")


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        pytest.param(
            "{log: {debug: ['policy:maybe']}}",
            f"{LOG}.debug[0]: expected NAME, NAME:on or NAME:off, not 'policy:maybe'",
            id="a state that is none",
        ),
        pytest.param(
            "{log: {debug: ['a b']}}",
            f"{LOG}.debug[0]: expected the name of a source, not 'a b'",
            id="a name with a blank",
        ),
        pytest.param(
            f"{{log: {{debug: [{', '.join(['policy'] * 17)}]}}}}",
            f"{LOG}.debug: expected at most 16 items, not 17",
            id="too many",
        ),
        pytest.param(
            "{log: {debug: ['"
            + "', '".join(
                ",".join(f"app.p{item}x{n}" for n in range(15)) for item in range(3)
            )
            + "']}}",
            f"{LOG}.debug: expected at most 40 components, not 45",
            id="more components than the log takes",
        ),
        pytest.param(
            "{instrumentation: {httpEndpoint: 'node7:8891'}}",
            f"{USE}.httpEndpoint: expected [ADDRESS]:PORT, such as :8891 for every "
            "address of the host or 127.0.0.1:8891, not 'node7:8891'",
            id="a name of a host",
        ),
        pytest.param(
            "{instrumentation: {httpEndpoint: ':88910'}}",
            f"{USE}.httpEndpoint: expected [ADDRESS]:PORT, such as :8891 for every "
            "address of the host or 127.0.0.1:8891, not ':88910'",
            id="no port",
        ),
    ],
)
def test_a_mistake_is_reported(spec: str, complaint: str) -> None:
    with pytest.raises(BadSetting) as found:
        parse_config(document(spec))

    assert str(found.value) == complaint


@pytest.mark.parametrize("source", sorted(SOURCES))
def test_a_source_stands_for_modules_that_exist(source: str) -> None:
    for name in SOURCES[source]:
        path = PACKAGE.joinpath(*name.split("."))
        assert path.is_dir() or path.with_suffix(".py").is_file(), name


def test_each_package_of_the_daemon_that_logs_is_a_source() -> None:
    logging = {
        path.relative_to(PACKAGE).parts[0]
        for path in PACKAGE.rglob("*.py")
        if "Logger(__name__)" in path.read_text(encoding="utf-8")
    }
    # These are of processes of their own, which no document configures.
    ours = logging - {"agent", "sdk", "webhook"}

    assert {one: components_of(one) for one in ours} == {one: (one,) for one in ours}


def test_the_documented_sources_are_the_known_ones() -> None:
    text = (PACKAGE.parent / "docs" / "insight.md").read_text(encoding="utf-8")
    table = text.partition("### Debug sources")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([^`]+)` \| (.+) \|$", table, re.MULTILINE)

    assert {name: tuple(re.findall("`([^`]+)`", cell)) for name, cell in rows} == dict(
        SOURCES
    )
