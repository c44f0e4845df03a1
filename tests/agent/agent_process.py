"""The agent as a process of its own, with a kubeconfig for the API server of a test."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import attrs
import yaml

from nri_resmgr.agent.api import Access
from nri_resmgr.cli.flags import PREFIX
from tests.real_host.patience import patience

NODE: Final = "node-a"
NAMESPACE: Final = "kube-system"
ENDPOINTS: Final = (
    *("--http-endpoint", "127.0.0.1:0"),
    *("--health-endpoint", "127.0.0.1:0"),
)


@attrs.define(eq=False)
class RunningAgent:
    """A running agent.

    Attributes:
        process: The process.
        lines: The log lines that were read.
    """

    process: asyncio.subprocess.Process
    lines: list[dict[str, Any]] = attrs.Factory(list)

    async def line(self, event: str) -> dict[str, Any]:
        """Return the first log line of an event; wait for it."""
        assert self.process.stderr is not None
        for one in self.lines:
            if one["event"] == event:
                return one
        async with asyncio.timeout(patience(60)):
            while text := await self.process.stderr.readline():
                self.lines.append(json.loads(text))
                if self.lines[-1]["event"] == event:
                    return self.lines[-1]
        raise AssertionError(f"the agent ended before {event}: {self.lines}")

    async def get(
        self, path: str, listening: str = "http.listening"
    ) -> tuple[int, str]:
        """Ask an endpoint; return the status and the text."""
        line = await self.line(listening)
        return await asyncio.to_thread(_get, line["endpoint"], path)

    async def until(
        self, path: str, condition: Callable[[int, str], bool]
    ) -> tuple[int, str]:
        """Ask again and again, until an answer fulfils a condition; return it."""
        async with asyncio.timeout(patience(90)):
            while True:
                status, text = await self.get(path)
                if condition(status, text):
                    return status, text
                await asyncio.sleep(0.1)


def _get(endpoint: str, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection(endpoint, timeout=patience(30))
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def kubeconfig_of(access: Access, folder: Path) -> Path:
    """Write a kubeconfig of an access."""
    assert access.ca is not None
    assert access.token is not None
    text = yaml.safe_dump(
        {
            "clusters": [
                {
                    "name": "test",
                    "cluster": {
                        "server": access.server,
                        "certificate-authority": str(access.ca.path),
                    },
                }
            ],
            "users": [{"name": "test", "user": {"tokenFile": str(access.token.path)}}],
            "contexts": [
                {
                    "name": "test",
                    "context": {
                        "cluster": "test",
                        "user": "test",
                        "namespace": NAMESPACE,
                    },
                }
            ],
            "current-context": "test",
        }
    )
    path = folder / "kubeconfig"
    path.write_text(text)
    return path


def command(folder: Path, kubeconfig: Path, *flags: str) -> tuple[str, ...]:
    """Return the command of an agent whose files are in a folder."""
    return (
        *(sys.executable, "-m", "nri_resmgr", "agent"),
        *("--kubeconfig", str(kubeconfig), "--node-name", NODE),
        *("--spool", str(folder / "spool"), "--log-format", "json"),
        *("--control-socket", str(folder / "control.sock")),
        *flags,
    )


@asynccontextmanager
async def agent_process(
    folder: Path,
    kubeconfig: Path,
    *flags: str,
    environment: Mapping[str, str] | None = None,
) -> AsyncIterator[RunningAgent]:
    """Run an agent; it is killed if it still runs at the end."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(PREFIX)}
    process = await asyncio.create_subprocess_exec(
        *command(folder, kubeconfig, *flags),
        env=inherited | dict(environment or {}),
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield RunningAgent(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
