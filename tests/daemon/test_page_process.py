"""The page of the node over HTTP, as a browser asks for it."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
from collections.abc import AsyncIterator
from http.client import HTTPMessage
from pathlib import Path
from typing import Final

import pytest

from nri_resmgr.cli.workload import Workload
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import QosClass
from tests.cli.command import nri_resmgr
from tests.daemon.daemon_process import RunningDaemon, daemon
from tests.pictures.seen import seen

pytestmark = pytest.mark.process

MACHINE: Final = parse_spec("1s2n4c1t")
ENDPOINT: Final = ("--http-endpoint", "127.0.0.1:0")
PATHS: Final = ("/", "/page.css", "/page.js", "/picture.svg", "/v1/state", "/v1/events")


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[RunningDaemon]:
    async with daemon(tmp_path, MACHINE, *ENDPOINT, "--http-page") as found:
        yield found


async def asked(
    running: RunningDaemon, path: str, method: str = "GET", host: str = ""
) -> tuple[int, HTTPMessage, str]:
    line = await running.line("http.listening")
    address, _, port = line["endpoint"].rpartition(":")

    def ask() -> tuple[int, HTTPMessage, str]:
        client = http.client.HTTPConnection(address, int(port), timeout=30)
        client.request(method, path, headers={"Host": host} if host else {})
        answer = client.getresponse()
        text = answer.read().decode()
        client.close()
        return answer.status, answer.headers, text

    return await asyncio.to_thread(ask)


async def test_all_files_of_the_page_are_served_and_name_no_other_address(
    running: RunningDaemon,
) -> None:
    found = {path: await asked(running, path) for path in PATHS}

    assert {status for status, _, _ in found.values()} == {200}
    types = {path: headers["Content-Type"] for path, (_, headers, _) in found.items()}
    assert types == {
        "/": "text/html; charset=utf-8",
        "/page.css": "text/css; charset=utf-8",
        "/page.js": "text/javascript; charset=utf-8",
        "/picture.svg": "image/svg+xml",
        "/v1/state": "application/json",
        "/v1/events": "application/jsonl",
    }
    page = found["/"][2]
    assert set(re.findall(r'(?:src|href)="([^"]*)"', page)) == {
        *("data:,", "page.css", "page.js"),
    }
    files = "".join(found[path][2] for path in PATHS[:3])
    assert re.findall(r"[a-z]+://", files) == []
    policy = found["/"][1]["Content-Security-Policy"]
    assert "default-src 'none'; script-src 'self';" in policy


async def test_the_picture_follows_the_state(running: RunningDaemon) -> None:
    _, _, before = await asked(running, "/picture.svg")
    await running.place(Workload("own", QosClass.GUARANTEED, 2000))
    _, _, after = await asked(running, "/picture.svg")

    assert seen(before).words("holder") == []
    [holder] = seen(after).words("holder")
    assert holder.startswith("default/own/own  ")


async def test_nothing_is_changed_by_the_page(running: RunningDaemon) -> None:
    for method in ("PUT", "POST", "DELETE"):
        for path in (*PATHS, "/v1/log", "/v1/reload", "/v1/rebalance", "/v1/agent"):
            status, _, _ = await asked(running, path, method)
            assert status in (404, 405), (method, path)
    _, _, text = await asked(running, "/v1/state")
    assert json.loads(text)["configuration"]["generation"] == 1


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:8891", 200),
        ("LOCALHOST", 200),
        ("127.0.0.1", 200),
        ("10.0.0.7:8891", 200),
        ("[::1]:8891", 200),
        ("other.example:8891", 403),
        ("localhost.other.example", 403),
        ("[other]", 403),
    ],
)
async def test_a_local_page_is_for_no_site_with_a_name(
    running: RunningDaemon, host: str, status: int
) -> None:
    found = {path: (await asked(running, path, host=host))[0] for path in PATHS}

    assert set(found.values()) == {status}


async def test_metrics_and_health_are_served_beside_it(running: RunningDaemon) -> None:
    for path in ("/metrics", "/healthz"):
        status, _, _ = await asked(running, path)
        assert status == 200


async def test_there_is_no_page_unless_it_is_asked_for(tmp_path: Path) -> None:
    async with daemon(tmp_path, MACHINE, *ENDPOINT) as running:
        found = {path: (await asked(running, path))[0] for path in PATHS}

    assert set(found.values()) == {404}


def test_a_page_needs_an_endpoint() -> None:
    done = nri_resmgr("run", "--http-page")

    assert (done.returncode, done.stdout, done.stderr) == (
        *(2, "", "nri-resmgr: --http-page needs --http-endpoint, where it is served\n"),
    )
