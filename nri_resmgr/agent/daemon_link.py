"""The daemon's verdicts, state and events, over its control socket."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from typing import Final, TypeVar

import httpx2

from nri_resmgr.agent.daemon_state import DaemonClaims, DaemonState, Verdicts
from nri_resmgr.agent.zones import Zones
from nri_resmgr.log import Logger
from nri_resmgr.values.documents import BadValue, JsonObject, from_plain

log = Logger(__name__)

_T = TypeVar("_T")

_TIMEOUT: Final = 10.0  # seconds for an answer
_AGAIN: Final = 1.0  # seconds until the next attempt
_SOON: Final = 0.5  # seconds between two reads of the state
_CLAIMS: Final = 0.2  # seconds between two reads of claims
_CLAIMS_OFF: Final = 5.0  # the same while the daemon prepares none
_SELDOM: Final = 30.0
"""Seconds between two reads while there are no events: numbers of CPUs may differ. The
daemon misses the agent after ten minutes."""

_VERDICT: Final = 0.1  # seconds between two reports while a verdict is waited for
_PATIENCE: Final = 10.0  # seconds for which it is waited for in that way

_MOST: Final = 64 << 20  # bytes of an answer, as for the commands


class DaemonLink:
    """Reports the agent to the daemon, and reads what the daemon has.

    Args:
        socket: Path of the control socket.
        report: Returns the body of a report of the agent to the daemon.
        changed: Called when `state`, `claims` or `verdicts` has changed.
        receive: Called with each event.

    Attributes:
        state: The state; None while the daemon does not answer.
        claims: Its devices, and claims that it waits for; None as before, and from a
            daemon that prepares none.
        verdicts: On the documents that were handed over; None as before.
        why: Why it does not.
    """

    def __init__(
        self,
        socket: str,
        report: Callable[[], JsonObject],
        changed: Callable[[], None],
        receive: Callable[[JsonObject], None],
    ) -> None:
        self._socket = socket
        self._report_body = report
        self._changed = changed
        self._receive = receive
        self._handed_over = asyncio.Event()
        self._hurried_until = 0.0
        self._happened = asyncio.Event()
        self._decided = asyncio.Event()
        self._last_event = 0
        self._client: httpx2.AsyncClient | None = None
        self.state: DaemonState | None = None
        self.claims: DaemonClaims | None = None
        self.verdicts: Verdicts | None = None
        self.why = f"{socket}: no answer from the daemon yet"

    def expect_verdict(self) -> None:
        """Ask for verdicts often for some seconds: a document was handed over."""
        self._hurried_until = asyncio.get_running_loop().time() + _PATIENCE
        self._handed_over.set()

    def verdicts_came(self) -> None:
        """Ask as seldom as usual: all that was handed over is judged."""
        self._hurried_until = 0.0

    async def zones(self) -> Zones | None:
        """Return what the node can grant; None without an answer."""
        if self._client is None:
            return None
        # Why there is none is noted by the other requests; a daemon of the version
        # before does not know this one.
        try:
            return _decoded(await self._client.get("/v1/zones"), Zones)
        except (httpx2.HTTPError, BadValue, ValueError, RuntimeError):
            return None  # RuntimeError: the client is closed

    async def run(self) -> None:
        """Report, read and follow until cancelled."""
        transport = httpx2.AsyncHTTPTransport(uds=self._socket)
        client = httpx2.AsyncClient(
            transport=transport, base_url="http://daemon", timeout=_TIMEOUT
        )
        self._client = client
        async with client, asyncio.TaskGroup() as group:
            group.create_task(self._report(client))
            group.create_task(self._read(client))
            group.create_task(self._read_claims(client))
            group.create_task(self._follow(client))

    async def _report(self, client: httpx2.AsyncClient) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._handed_over.clear()
            body = self._report_body()
            verdicts = await self._answer(client, "POST", "/v1/agent", Verdicts, body)
            if verdicts != self.verdicts:
                self.verdicts = verdicts
                self._changed()
            is_hurried = loop.time() < self._hurried_until
            pause = _VERDICT if is_hurried else _SELDOM
            if verdicts is None:
                pause = _AGAIN
            if is_hurried or verdicts is None:
                await asyncio.sleep(pause)
            else:
                await _within(pause, self._handed_over)

    async def _read(self, client: httpx2.AsyncClient) -> None:
        while True:
            self._happened.clear()
            state = await self._answer(client, "GET", "/v1/state", DaemonState)
            if state != self.state:
                self.state = state
                self._changed()
            await asyncio.sleep(_SOON if state else _AGAIN)
            if state is not None:
                await _within(_SELDOM, self._happened)

    async def _read_claims(self, client: httpx2.AsyncClient) -> None:
        """Read claims soon after each event: a kubelet waits for them."""
        while True:
            self._decided.clear()
            try:
                answer = await client.get("/v1/claims")
                claims: DaemonClaims | None = _decoded(answer, DaemonClaims)
            except (httpx2.HTTPError, BadValue, ValueError):
                claims = None  # the other requests report why
            if claims != self.claims:
                self.claims = claims
                self._changed()
            is_on = claims is not None and bool(claims.driver)
            await asyncio.sleep(_CLAIMS if is_on else _CLAIMS_OFF)
            await _within(_SELDOM, self._decided)

    async def _answer(
        self,
        client: httpx2.AsyncClient,
        method: str,
        path: str,
        kind: type[_T],
        body: JsonObject | None = None,
    ) -> _T | None:
        """Return an answer of the daemon; None without one, which `why` explains."""
        try:
            answer = await client.request(method, path, json=body)
            found, why = _decoded(answer, kind), ""
        except (httpx2.HTTPError, BadValue, ValueError) as error:
            found, why = None, f"{self._socket}: {error or type(error).__name__}"
        if why != self.why:
            if why:
                log.warning("agent.no-daemon", why=why)
            else:
                log.info("agent.daemon-answers")
            self.why = why
        return found

    async def _follow(self, client: httpx2.AsyncClient) -> None:
        while True:
            # Why there is no stream is reported by the other requests.
            with contextlib.suppress(httpx2.HTTPError, ValueError):
                await self._follow_once(client)
            self._happened.set()
            await asyncio.sleep(_AGAIN)

    async def _follow_once(self, client: httpx2.AsyncClient) -> None:
        query = {"since": str(self._last_event), "follow": "1"}
        timeout = httpx2.Timeout(_TIMEOUT, read=None)
        async with client.stream(
            "GET", "/v1/events", params=query, timeout=timeout
        ) as answer:
            async for line in answer.aiter_lines():
                event = json.loads(line)
                if "number" in event:
                    self._last_event = event["number"]
                    self._receive(event)
                self._happened.set()
                self._decided.set()


def _decoded(answer: httpx2.Response, kind: type[_T]) -> _T:
    if len(answer.content) > _MOST:
        raise ValueError("the answer is too large")
    found = answer.json()
    if answer.status_code != httpx2.codes.OK:
        raise ValueError(str(found.get("why", answer.status_code)))
    return from_plain(kind, found)


async def _within(seconds: float, event: asyncio.Event) -> None:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)
