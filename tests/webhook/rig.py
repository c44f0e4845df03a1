"""The webhook as a process, and a client that keeps its connection open."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from pathlib import Path
from typing import Final

import attrs

from nri_resmgr.webhook.own_certificates.openssl import make_pair
from nri_resmgr.webhook.own_certificates.plan import Pair
from tests.real_host.patience import wait_until
from tests.webhook.pods import Json

_SECONDS: Final = 60.0  # A start takes one on an idle machine.
NAME: Final = "nri-resmgr-webhook.kube-system.svc"
_LISTENING: Final = re.compile(r"webhook\.listening .*?endpoint=\S*?:(\d+)")


def write_pair(folder: Path, pair: Pair) -> None:
    """Replace the files of a certificate, one after the other."""
    for name, text in (("tls.crt", pair.certificate), ("tls.key", pair.key)):
        new = folder / f"{name}.new"
        new.write_text(text)
        new.replace(folder / name)


async def until(holds: Callable[[], bool]) -> None:
    """Wait while other tasks of the test run."""
    async with asyncio.timeout(_SECONDS):
        while not holds():  # noqa: ASYNC110 - of a process
            await asyncio.sleep(0.02)


def new_pair(days: int = 30) -> Pair:
    """Make a certificate with a CA of its own."""
    return make_pair((NAME,), days)


@attrs.define(eq=False)
class Answered:
    """An answer of HTTP."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Json:
        """The body."""
        found: Json = json.loads(self.body)
        return found

    @property
    def is_allowed(self) -> bool:
        """Whether the object is allowed."""
        return self.status == 200 and self.json["response"]["allowed"] is True


@attrs.define(eq=False)
class WebhookClient:
    """A connection to the webhook."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def post(self, body: object, path: str = "/mutate?timeout=2s") -> Answered:
        """Send a review, and read the answer."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: {NAME}\r\n"
            "Content-Type: application/json\r\n"
            f"Content-Length: {len(content)}\r\n\r\n"
        )
        return await self.send(head.encode() + content)

    async def send(self, data: bytes) -> Answered:
        """Send some bytes, and read an answer."""
        self.writer.write(data)
        await self.writer.drain()
        return await self.read()

    async def read(self) -> Answered:
        """Read an answer."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.strip().split("\r\n")
        headers = {
            name.lower(): value
            for name, _, value in (line.partition(": ") for line in lines)
        }
        body = await self.reader.readexactly(int(headers.get("content-length", "0")))
        return Answered(int(first.split()[1]), headers, body)

    def has_ticket(self) -> bool:
        """Whether the webhook has sent a ticket, by which a session is resumed."""
        transport: ssl.SSLObject = self.writer.get_extra_info("ssl_object")
        assert transport.version() == "TLSv1.3"
        return transport.session is not None and transport.session.has_ticket

    def serial(self) -> int:
        """Serial number of the certificate that the webhook shows."""
        transport: ssl.SSLObject = self.writer.get_extra_info("ssl_object")
        found = transport.getpeercert()
        assert found is not None
        return int(str(found["serialNumber"]), 16)


@attrs.define(eq=False)
class RunningWebhook:
    """A webhook that runs.

    Attributes:
        process: Its process.
        port: Where it listens, at 127.0.0.1.
        folder: Where its certificate is.
    """

    process: subprocess.Popen[bytes]
    port: int
    folder: Path

    @asynccontextmanager
    async def client(self, *authorities: str) -> AsyncIterator[WebhookClient]:
        """Connect, trusting some CAs."""
        reader, writer = await asyncio.open_connection(
            "127.0.0.1",
            self.port,
            ssl=_trusting(authorities),
            server_hostname=NAME,
        )
        try:
            yield WebhookClient(reader, writer)
        finally:
            writer.transport.abort()

    def wait_until_listening(self) -> None:
        """Wait, and note its port."""
        wait_until(self._is_listening, "the webhook to listen", _SECONDS)

    def _is_listening(self) -> bool:
        assert self.process.poll() is None, self.log()
        if found := _LISTENING.search(self.log()):
            self.port = int(found[1])
        return found is not None

    def log(self) -> str:
        """What it has logged."""
        return (self.folder / "log").read_text()


@cache
def _trusting(authorities: tuple[str, ...]) -> ssl.SSLContext:
    # One for all connections, as an API server has it.
    return ssl.create_default_context(cadata="".join(authorities))


@contextmanager
def running_webhook(folder: Path, *flags: str) -> Iterator[RunningWebhook]:
    """Run the command with the certificate in a folder; ends it by SIGTERM."""
    with starting_webhook(folder, *flags) as running:
        running.wait_until_listening()
        yield running


@contextmanager
def starting_webhook(folder: Path, *flags: str) -> Iterator[RunningWebhook]:
    """The same, before it may listen."""
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "nri_resmgr", "webhook"),
                *("--endpoint", "127.0.0.1:0", "--linger", "0"),
                *("--tls-cert", str(folder / "tls.crt")),
                *("--tls-key", str(folder / "tls.key"), *flags),
            ],
            stdout=subprocess.DEVNULL,
            stderr=log,
        )
    running = RunningWebhook(process, 0, folder)
    try:
        yield running
    finally:
        process.terminate()
        assert process.wait() == 0, running.log()
