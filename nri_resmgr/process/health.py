"""Liveness and readiness over HTTP, for probes."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Final, Protocol

from nri_resmgr.control.http import (
    ClientLimits,
    HttpReply,
    HttpRequest,
    Routes,
    Site,
    text_reply,
)
from nri_resmgr.control.http_server import serve
from nri_resmgr.log import Logger
from nri_resmgr.process.endpoint import listen_when_free, read_endpoint
from nri_resmgr.process.heartbeat import Heartbeat

log = Logger(__name__)

# The kubelet sends three small requests per ten seconds, each at once, and waits a
# second for the answer by default. Places are cheap here, and many: with 2,000 hostile
# connections a second, each new client has 60 ms to send its request.
LIMITS: Final = ClientLimits(head=4 << 10, body=0, connections=128, seconds=1.0)

# A runtime waits two seconds, then it continues without this plugin. What takes longer
# than this is not expected to end.
STUCK: Final = 10.0  # seconds


class Pulse(Protocol):
    """Knows when the event loop last ran."""

    @property
    def age(self) -> float:
        """Seconds since the last beat."""


class Parts(Protocol):
    """Knows of parts that cannot be started again; the `Supervisor` does."""

    def problems(self) -> tuple[str, ...]:
        """Return why the process should be replaced; empty if it is healthy."""


def process_problem(heartbeat: Pulse, parts: Parts | None = None) -> str:
    """Return why the process should be restarted; empty if it is healthy.

    A blocked event loop does not answer at all, which fails the probe as well.
    """
    if parts is not None and (problems := parts.problems()):
        return "; ".join(problems)
    if heartbeat.age > STUCK:
        return f"no heartbeat for {heartbeat.age:.0f} s"
    return ""


class Probes:
    """The handlers of ``/healthz`` and ``/readyz``.

    Args:
        why_not_alive: Returns why the process should be restarted; empty if it is well.
        why_not_ready: Returns why it does not do its work now.

    Attributes:
        heartbeat: Measures the lag of the event loop; its `beat` has to run.
        routes: The handlers.
    """

    def __init__(
        self,
        why_not_alive: Callable[[Heartbeat], str],
        why_not_ready: Callable[[], str],
    ) -> None:
        self._why_not_alive = why_not_alive
        self._why_not_ready = why_not_ready
        self.heartbeat = Heartbeat()
        self.routes: Routes = {
            ("GET", "/healthz"): self._healthz,
            ("GET", "/readyz"): self._readyz,
        }

    def _healthz(self, _: HttpRequest) -> HttpReply:
        return _verdict(self._why_not_alive(self.heartbeat))

    def _readyz(self, _: HttpRequest) -> HttpReply:
        return _verdict(self._why_not_ready())


async def serve_probes(probes: Probes, endpoint: str) -> None:
    """Serve ``--health-endpoint`` until cancelled."""
    address = read_endpoint("--health-endpoint", endpoint)
    listener, where = await listen_when_free(address)
    log.info("health.listening", endpoint=where)
    await serve_with_health(Site(probes.routes, LIMITS), listener, probes)


async def serve_with_health(
    site: Site, listener: socket.socket, probes: Probes
) -> None:
    """Serve *site*, which has the routes of *probes*, until cancelled."""
    with listener:
        async with asyncio.TaskGroup() as group:
            group.create_task(probes.heartbeat.beat())
            group.create_task(serve(site, listener))


def _verdict(why_not: str) -> HttpReply:
    return text_reply(f"{why_not}\n", 503) if why_not else text_reply("ok\n")
