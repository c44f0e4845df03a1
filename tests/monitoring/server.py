"""A real Prometheus, which scrapes targets of a test and evaluates the alerts."""

from __future__ import annotations

import asyncio
import copy
import http.client
import json
import re
import urllib.parse
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import attrs
import msgspec
import yaml

from tests.monitoring.programs import prometheus
from tests.monitoring.rules import specification
from tests.real_host.patience import patience

# `rate` needs two samples; nodes of a test live for seconds.
_INTERVAL: Final = "1s"
_STEP: Final = 0.05  # seconds between two looks
_LISTENING: Final = re.compile(rb'msg="Listening on" address=(\S+)')


class Target(msgspec.Struct, frozen=True):
    """What serves metrics.

    Attributes:
        endpoint: Address and port.
        labels: What the Prometheus operator adds, and a `pod-monitor`.
    """

    endpoint: str
    labels: Mapping[str, str]


def target(endpoint: str, node: str, container: str) -> Target:
    """Return a target as the option `pod-monitor` has it."""
    labels = {"node": node, "namespace": "kube-system", "pod": f"nri-resmgr-{node}"}
    return Target(endpoint, {**labels, "container": container})


@attrs.frozen(eq=False)
class Prometheus:
    """A running server."""

    address: str

    async def ready(self) -> None:
        """Wait until it answers queries."""
        async with asyncio.timeout(patience(60)):
            while (await self._fetch("-/ready"))[0] != HTTPStatus.OK:  # noqa: ASYNC110 - of another process
                await asyncio.sleep(_STEP)

    async def query(self, text: str) -> dict[str, Any]:
        """Return the whole answer to an instant query."""
        return await self._get(f"query?{urllib.parse.urlencode({'query': text})}")

    async def series(self, text: str) -> list[dict[str, str]]:
        """Return the labels of the series that an instant query has."""
        answer = await self.query(text)
        assert answer["status"] == "success", (text, answer)
        return [one["metric"] for one in answer["data"]["result"]]

    async def rules(self) -> list[dict[str, Any]]:
        """Return all rules with their outcome."""
        answer = await self._get("rules")
        return [rule for one in answer["data"]["groups"] for rule in one["rules"]]

    async def _get(self, path: str) -> dict[str, Any]:
        _, body = await self._fetch(f"api/v1/{path}")
        found: dict[str, Any] = json.loads(body)  # of an error, too
        return found

    async def _fetch(self, path: str) -> tuple[int, bytes]:
        def fetch() -> tuple[int, bytes]:
            client = http.client.HTTPConnection(self.address, timeout=patience(30))
            try:
                client.request("GET", f"/{path}")
                answer = client.getresponse()
                return answer.status, answer.read()
            finally:
                client.close()

        return await asyncio.to_thread(fetch)


@asynccontextmanager
async def prometheus_server(
    folder: Path, targets: Iterable[Target]
) -> AsyncIterator[Prometheus]:
    """Run a server with the alerts, which fire at once."""
    (folder / "rules.yaml").write_text(yaml.safe_dump(_at_once(specification())))
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(_configuration(targets)))
    process = await asyncio.create_subprocess_exec(
        prometheus(),
        *("--config.file", folder / "prometheus.yaml"),
        *("--storage.tsdb.path", folder / "data"),
        *("--web.listen-address", "127.0.0.1:0"),
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    said = [b""]
    try:
        async with asyncio.timeout(patience(60)):
            while (found := _LISTENING.search(said[-1])) is None:
                said.append(await process.stderr.readline())
                assert said[-1], b"".join(said).decode()
        rest = asyncio.create_task(process.stderr.read())  # else its pipe is full
        server = Prometheus(found[1].decode())
        await server.ready()
        yield server
    finally:
        process.kill()
        await process.wait()
    await rest


def _at_once(rules: dict[str, Any]) -> dict[str, Any]:
    """Return rules without the time for which a condition has to hold."""
    found = copy.deepcopy(rules)
    for group in found["groups"]:
        group["interval"] = _INTERVAL
        for rule in group["rules"]:
            rule.pop("for", None)
    return found


def _configuration(targets: Iterable[Target]) -> dict[str, Any]:
    return {
        "global": {
            "scrape_interval": _INTERVAL,
            "scrape_timeout": _INTERVAL,
            "evaluation_interval": _INTERVAL,
        },
        "rule_files": ["rules.yaml"],
        "scrape_configs": [
            {
                "job_name": "nri-resmgr",
                "static_configs": [
                    {"targets": [one.endpoint], "labels": dict(one.labels)}
                    for one in targets
                ],
            }
        ],
    }
