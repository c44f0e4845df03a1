"""The log of the real daemon, as a collector of OpenTelemetry receives it."""

from __future__ import annotations

import asyncio
import socket
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from nri_resmgr.cli.workload import Workload
from nri_resmgr.values import QosClass
from tests.cli.command import ROOT
from tests.daemon.daemon_process import daemon
from tests.daemon.test_observability import (
    MACHINE,
    document,
    free_port,
    reloaded,
    status_of,
)
from tests.daemon.test_tracing import (
    Collector,
    Received,
    collecting,
    collector,
    texts,
)
from tests.waiting import until

pytestmark = pytest.mark.process

__all__ = ["collector"]


def endpoint(url: str, **more: str) -> dict[str, str]:
    return {"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": f"{url}/v1/logs", **more}


def records(collector: Received) -> list[Any]:
    """Return all records by their times: a request has them by component."""
    found = [record for _, record in chain.from_iterable(collector.logs())]
    return sorted(found, key=lambda record: record.time_unix_nano)


def events(collector: Received) -> list[str]:
    return [record.event_name for record in records(collector)]


async def test_a_collector_gets_the_lines_of_the_log(
    tmp_path: Path, collector: Collector
) -> None:
    use = {"logExporter": "otlp-http", "logExportPeriod": "100ms"}
    path = document(tmp_path / "my.yaml", instrumentation=use)
    flags = ("--config-file", str(path))
    given = endpoint(collector.url, NODE_NAME="n7")
    async with daemon(tmp_path, MACHINE, *flags, environment=given) as running:
        await running.line("log.sent")
        await running.place(Workload("own", QosClass.GUARANTEED, 1000))
        await until(lambda: "container.placed" in events(collector), 30)
        lines = running.lines()

    assert {path for path, _ in collector.taken} == {"/v1/logs"}
    # All since the configuration came in force, in their order, but the exporter's own.
    sent = events(collector)
    logged = [one["event"] for one in lines if one["event"] != "log.sent"]
    first = logged.index(sent[0])
    assert sent[: len(logged) - first] == logged[first:]
    assert "log.sent" not in sent
    (line,) = (one for one in lines if one["event"] == "container.placed")
    ((component, record),) = (
        row
        for row in chain.from_iterable(collector.logs())
        if row[1].event_name == "container.placed"
    )
    assert component == "nri_resmgr.app.observing.decision_log"
    assert (record.severity_text, record.severity_number) == ("info", 9)
    assert texts(record)["title"] == "default/own/own"
    assert {one.key: one.value.int_value for one in record.attributes}["updates"] == 0
    assert set(texts(record)) == set(line) - {"event", "level", "timestamp"}
    assert record.body.string_value.startswith("container.placed ")
    assert "title=default/own/own" in record.body.string_value
    assert record.time_unix_nano > 0


async def test_waiting_lines_are_sent_at_the_end_and_when_it_is_switched_off(
    tmp_path: Path, collector: Collector
) -> None:
    use = {"logExporter": "otlp-http", "logExportPeriod": "24h"}
    path = document(tmp_path / "my.yaml", instrumentation=use)
    flags = ("--config-file", str(path))
    given = endpoint(collector.url)
    async with daemon(tmp_path, MACHINE, *flags, environment=given) as running:
        await running.line("log.sent")
        await running.place(Workload("first", QosClass.GUARANTEED, 1000))
        none_yet = "container.placed" not in events(collector)

        document(path)
        await reloaded(running, 0)
        await until(lambda: "container.placed" in events(collector), 30)
        number = len(collector.taken)
        await running.place(Workload("second", QosClass.GUARANTEED, 1000))

        document(path, instrumentation=use)
        await reloaded(running, 1)
        await running.line("log.sent", 1)
        await running.place(Workload("third", QosClass.GUARANTEED, 1000))
        nothing_more = len(collector.taken) == number

    assert none_yet
    assert nothing_more
    placed = [
        texts(one)["container"]
        for one in records(collector)
        if one.event_name == "container.placed"
    ]
    assert placed == ["ctr-first", "ctr-third"]


async def test_a_collector_that_is_away_is_reported_once_and_loss_is_counted(
    tmp_path: Path,
) -> None:
    port, own = free_port(), free_port()
    use = {"logExporter": "otlp-http", "logExportPeriod": "50ms"}
    path = document(tmp_path / "my.yaml", instrumentation=use)
    flags = ("--config-file", str(path), "--http-endpoint", f"127.0.0.1:{own}")
    # Enough for one more try, before which the reason is known.
    more = {"OTEL_EXPORTER_OTLP_LOGS_TIMEOUT": "2"}
    given = endpoint(f"http://127.0.0.1:{port}", **more)

    async def lost() -> int:
        _, text = await status_of(own, "/metrics")
        (row,) = (
            one
            for one in text.splitlines()
            if one.startswith("nri_resmgr_log_lines_not_sent_total ")
        )
        return int(row.split()[-1])

    async with daemon(tmp_path, MACHINE, *flags, environment=given) as running:
        line = await running.line("log.not-sent")
        for number in range(3):
            before = await lost()
            await running.place(Workload(f"c{number}", QosClass.BURSTABLE, 10))
            async with asyncio.timeout(30):
                while await lost() == before:  # noqa: ASYNC110 - of another process
                    await asyncio.sleep(0.05)
        with collecting(port) as collector:
            await running.place(Workload("own", QosClass.BURSTABLE, 10))
            again = await running.line("log.sent-again")
            await until(lambda: "container.placed" in events(collector), 30)
            total = await lost()
        logged = [one["event"] for one in running.lines()]

    assert "refused" in line["why"]
    assert logged.count("log.not-sent") == logged.count("log.sent-again") == 1
    assert again["lost"] == total >= 4
    # The exporter's own lines would be another export each.
    assert not [one for one in events(collector) if one.startswith("log.")]


async def test_a_collector_that_never_answers_delays_no_reply(tmp_path: Path) -> None:
    pytest.importorskip("opentelemetry.sdk", reason="the extra otel is not installed")
    use = {"logExporter": "otlp-http", "logExportPeriod": "1ms"}
    path = document(tmp_path / "my.yaml", instrumentation=use)
    flags = ("--config-file", str(path))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        given = endpoint(f"http://127.0.0.1:{silent.getsockname()[1]}")
        async with daemon(tmp_path, MACHINE, *flags, environment=given) as running:
            await running.line("log.sent")
            # The runtime drops a plugin that is late, and with it all of these.
            for number in range(20):
                await running.place(Workload(f"c{number}", QosClass.BURSTABLE, 10))
            await running.line("container.placed", 19)
            running.process.terminate()
            await running.process.wait()

    assert running.process.returncode == 0


async def test_without_the_extra_the_option_is_reported(tmp_path: Path) -> None:
    use = {"logExporter": "otlp-http"}
    path = document(tmp_path / "my.yaml", instrumentation=use)
    hidden = tmp_path / "hidden" / "opentelemetry"
    hidden.mkdir(parents=True)
    (hidden / "__init__.py").write_text("")
    given = {"PYTHONPATH": f"{hidden.parent}:{ROOT}"}
    flags = ("--config-file", str(path))
    async with daemon(tmp_path, MACHINE, *flags, environment=given) as running:
        line = await running.line("log.not-installed")
        await running.place(Workload("own", QosClass.GUARANTEED, 1000))

    assert line["extra"] == "otel"
