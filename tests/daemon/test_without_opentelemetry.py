"""The daemon where OpenTelemetry, which the extra ``otel`` adds, is not installed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import pytest

from nri_resmgr.cli.workload import Workload
from nri_resmgr.values import QosClass
from tests.cli.command import ROOT, nri_resmgr
from tests.daemon.daemon_process import daemon
from tests.daemon.test_observability import MACHINE, document, reloaded

pytestmark = pytest.mark.process

ENDPOINT: Final = "http://127.0.0.1:4318"


@pytest.fixture
def missing(tmp_path: Path) -> dict[str, str]:
    """Variables of a process that cannot import OpenTelemetry."""
    package = tmp_path / "missing" / "opentelemetry"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        "raise ModuleNotFoundError('not installed', name='opentelemetry')\n"
    )
    return {"PYTHONPATH": os.pathsep.join((str(package.parent), str(ROOT)))}


def test_the_flag_is_refused(missing: dict[str, str]) -> None:
    done = nri_resmgr("run", "--otel-endpoint", ENDPOINT, env=missing)

    assert done.returncode == 2
    assert done.stderr == (
        "nri-resmgr: --otel-endpoint needs OpenTelemetry, which is not installed; "
        "pip install 'nri-resmgr[otel]' adds it\n"
    )


async def test_a_variable_is_logged_and_has_no_effect(
    missing: dict[str, str], tmp_path: Path
) -> None:
    given = {**missing, "OTEL_EXPORTER_OTLP_ENDPOINT": ENDPOINT}
    async with daemon(tmp_path, MACHINE, environment=given) as running:
        line = await running.line("tracing.not-installed")
        await running.place(Workload("own", QosClass.GUARANTEED, 1000))
        await running.line("container.placed")
        events = {one["event"] for one in running.lines()}

    assert (line["level"], line["extra"]) == ("warning", "otel")
    assert "tracing.started" not in events


@pytest.mark.parametrize(
    ("asks", "event"),
    [
        ({"metricsExporter": "otlp-http"}, "metrics.not-installed"),
        (
            {"tracingCollector": ENDPOINT, "samplingRatePerMillion": 1_000_000},
            "tracing.not-installed",
        ),
    ],
)
async def test_a_document_is_accepted_logged_and_has_no_effect(
    asks: dict[str, Any], event: str, missing: dict[str, str], tmp_path: Path
) -> None:
    path = document(tmp_path / "my.yaml")
    flags = ("--config-file", str(path))
    async with daemon(tmp_path, MACHINE, *flags, environment=missing) as running:
        await running.place(Workload("own", QosClass.GUARANTEED, 1000))
        before = {one["event"] for one in running.lines()}
        document(path, instrumentation=asks)
        await reloaded(running, 0)
        line = await running.line(event)
        await running.place(Workload("other", QosClass.GUARANTEED, 1000))
        await running.line("container.placed", 1)
        events = [one["event"] for one in running.lines()]

    assert event not in before
    assert (line["level"], line["extra"]) == ("warning", "otel")
    assert events.count(event) == 1
