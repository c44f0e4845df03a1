"""Log, metrics and traces of the real daemon, as its document and flags want them."""

from __future__ import annotations

import asyncio
import http.client
import json
import signal
import socket
from pathlib import Path
from typing import Any, Final

import pytest

from nri_resmgr.cli.workload import Workload
from nri_resmgr.control.client import Client
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import QosClass
from tests.cli.command import nri_resmgr
from tests.daemon.daemon_process import RunningDaemon, daemon
from tests.daemon.documents import write
from tests.daemon.test_tracing import Collector, collector, texts
from tests.waiting import until

pytestmark = pytest.mark.process

__all__ = ["collector"]

MACHINE: Final = parse_spec("1s2n4c1t")
HEAD: Final = "apiVersion: config.nri/v1alpha1\nkind: NonePolicy\nspec: "


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def document(path: Path, **spec: Any) -> Path:
    return write(path, f"{HEAD}{json.dumps(spec)}\n")


async def status_of(port: int, path: str) -> tuple[int, str]:
    def ask() -> tuple[int, str]:
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        try:
            client.request("GET", path)
            answer = client.getresponse()
            return answer.status, answer.read().decode()
        except ConnectionRefusedError:
            return 0, ""
        finally:
            client.close()

    return await asyncio.to_thread(ask)


async def reloaded(running: RunningDaemon, number: int) -> None:
    running.process.send_signal(signal.SIGHUP)
    await running.line("configuration.accepted", number)


async def test_the_endpoint_of_a_document_is_served_and_moved(tmp_path: Path) -> None:
    first, second = free_port(), free_port()
    path = document(
        tmp_path / "my.yaml",
        instrumentation={"httpEndpoint": f"localhost:{first}"},
    )
    async with daemon(tmp_path, MACHINE, "--config-file", str(path)) as running:
        await running.line("http.listening")
        before = [await status_of(first, one) for one in ("/healthz", "/metrics")]

        moved = {"httpEndpoint": f":{second}", "prometheusExport": True}
        metrics = {"enabled": ["buildinfo", "nri_resmgr_requests_total"]}
        document(path, instrumentation={**moved, "metrics": metrics})
        await reloaded(running, 0)
        await running.line("http.listening", 1)
        await running.place(Workload("own", QosClass.GUARANTEED, 1000))
        gone, found = (
            await status_of(first, "/healthz"),
            await status_of(second, "/metrics"),
        )

        kept = {"polled": ["nri_resmgr_requests_total"]}
        document(path, instrumentation={**moved, "reportPeriod": "1h", "metrics": kept})
        await reloaded(running, 1)
        polled = [await status_of(second, "/metrics")]
        await running.place(Workload("other", QosClass.GUARANTEED, 1000))
        polled.append(await status_of(second, "/metrics"))

        document(path)
        await reloaded(running, 2)
        async with asyncio.timeout(30):
            while (await status_of(second, "/healthz"))[0]:  # noqa: ASYNC110 - of another process
                await asyncio.sleep(0.05)

    assert before == [(200, "ok\n"), (404, "no such path: /metrics\n")]
    assert gone == (0, "")
    names = {one.partition("{")[0] for one in found[1].splitlines() if one[0] != "#"}
    assert names == {
        "nri_resmgr_build_info",
        "nri_resmgr_requests_total",
    }
    assert 'requests_total{method="CreateContainer",status="ok"} 1' in found[1]
    # One is computed once in an hour, the other one at each scrape.
    once = 'requests_total{method="CreateContainer",status="ok"} 1'
    each = 'nri_resmgr_containers{cpus="unpinned",qos="Guaranteed"}'
    assert [once in text for _, text in polled] == [True, True]
    rows = [line for _, text in polled for line in text.splitlines()]
    assert [row for row in rows if row.startswith("nri_resmgr_containers{")] == [
        f"{each} 1",
        f"{each} 2",
    ]


async def test_a_flag_takes_precedence_and_status_shows_it(tmp_path: Path) -> None:
    ours, theirs = free_port(), free_port()
    path = document(
        tmp_path / "my.yaml",
        log={"debug": ["irq"], "source": True, "klog": {"skip_headers": True}},
        instrumentation={
            "httpEndpoint": f":{theirs}",
            "tracingCollector": "otlp-http",
            "metrics": {"enabled": ["policy"], "polled": ["rdt"]},
            "reportPeriod": "1m",
        },
    )
    control = tmp_path / "control.sock"
    flags = (
        *("--config-file", str(path), "--http-endpoint", f"127.0.0.1:{ours}"),
        *("--control-socket", str(control), "--log-debug", "stub"),
    )
    async with daemon(tmp_path, MACHINE, *flags) as running:
        await running.line("http.listening")
        await running.line("control.listening")
        found = await asyncio.to_thread(Client(str(control)).get, "/v1/state")
        shown = await asyncio.to_thread(
            nri_resmgr, "status", "--control-socket", str(control)
        )
        served = [await status_of(one, "/metrics") for one in (ours, theirs)]
        levels = await asyncio.to_thread(Client(str(control)).get, "/v1/log")

    assert [code for code, _ in served] == [200, 0]
    assert "nri_policy_cpu_allocation" in served[0][1]
    assert "nri_resmgr_connected" not in served[0][1]
    spec = "$.spec.instrumentation"
    assert [
        (one["name"], one["value"], one["source"]) for one in found["observability"]
    ] == [
        ("HTTP", f"127.0.0.1:{ours}: metrics and health", "--http-endpoint"),
        ("metrics", "policy", f"{spec}.metrics.enabled"),
        ("polled", "rdt every 60 s", f"{spec}.metrics.polled"),
        ("debug", "stub", "--log-debug"),
        ("debug", "app.host_settings", "$.spec.log.debug"),
        ("log source", "true", "$.spec.log.source"),
        ("log headers", "false", "$.spec.log.klog.skip_headers"),
    ]
    assert "metrics and health, by --http-endpoint\n" in shown.stdout
    assert levels["levels"]["rules"] == {
        "*": "info",
        "app.host_settings": "debug",
        "stub": "debug",
    }


async def test_debug_of_requests_follows_the_document(tmp_path: Path) -> None:
    path = document(tmp_path / "my.yaml", log={"debug": ["nri-plugin"], "source": True})
    async with daemon(tmp_path, MACHINE, "--config-file", str(path)) as running:
        await running.place(Workload("one", QosClass.BURSTABLE, 500))
        line = await running.line("request.answered")
        placed = await running.line("container.placed")

        document(path, log={"debug": ["nri-plugin:off"]})
        await reloaded(running, 0)
        await running.place(Workload("two", QosClass.BURSTABLE, 500))
        await running.line("container.placed", 1)
        later = running.lines()
    begun = next(
        place
        for place, one in enumerate(later)
        if one["event"] == "configuration.accepted"
    )

    assert line["component"] == "app.observing.request_log"
    assert line["level"] == "debug"
    assert placed["component"] == "app.observing.decision_log"
    after = [one for one in later[begun + 1 :] if one["event"] != "http.listening"]
    assert [one["event"] for one in after if one["event"] == "request.answered"] == []
    assert all("component" not in one for one in after)


async def test_lines_of_text_without_headers(tmp_path: Path) -> None:
    path = document(tmp_path / "my.yaml", log={"klog": {"skip_headers": "true"}})
    flags = ("--config-file", str(path), "--log-format", "text")
    async with daemon(tmp_path, MACHINE, *flags) as running:
        await until(lambda: "configuration.in-force" in running.log.read_text())
        document(path)
        running.process.send_signal(signal.SIGHUP)
        await until(lambda: "configuration.accepted" in running.log.read_text())
        lines = running.log.read_text().splitlines()

    assert any(one.startswith("configuration.in-force ") for one in lines)
    (accepted,) = [one for one in lines if "configuration.accepted" in one]
    assert " [info     ] configuration.accepted" in accepted


async def test_traces_follow_the_document(tmp_path: Path, collector: Collector) -> None:
    use = {"samplingRatePerMillion": 1_000_000}
    path = document(tmp_path / "my.yaml")
    async with daemon(tmp_path, MACHINE, "--config-file", str(path)) as running:
        await running.place(Workload("before", QosClass.BURSTABLE, 500))
        document(path, instrumentation={**use, "tracingCollector": collector.url})
        await reloaded(running, 0)
        await running.line("tracing.started")
        await running.place(Workload("traced", QosClass.BURSTABLE, 500))
        document(path)
        await reloaded(running, 1)
        await until(lambda: bool(collector.spans()))
        await running.place(Workload("after", QosClass.BURSTABLE, 500))
    spans = [one for one in collector.spans() if one.name == "CreateContainer"]

    assert [texts(one)["k8s.pod.name"] for one in spans] == ["traced"]
