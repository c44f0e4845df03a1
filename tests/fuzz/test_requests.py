"""Any bytes at the control socket are answered by HTTP, and change nothing."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.control.http_server import serve
from nri_resmgr.control.listener import control_socket
from nri_resmgr.control.routes import site_of
from tests.control.daemon_parts import Parts, make_parts
from tests.control.json_schema import mistakes
from tests.fuzz.drawn import mutants
from tests.fuzz.samples import HEADS

BODY = '{"pattern": "stub.*", "level": "debug"}'
PUT = f"PUT /v1/log HTTP/1.1\r\nHost: h\r\nContent-Length: {len(BODY)}\r\n\r\n{BODY}"
GETS = tuple(
    f"GET /v1/{what} HTTP/1.0\r\n\r\n"
    for what in ("state", "topology", "events", "host", "log", "explain?pod=a")
)

# A request that says less than it announces is waited for until it hangs up.
BYTES = (mutants((*HEADS, *GETS, PUT)) | st.text()).map(
    lambda text: text.encode("utf-8", "surrogateescape")
)


@attrs.frozen
class Answer:
    """What came back."""

    status: int
    body: bytes
    is_whole: bool = True


class Served:
    """A control socket with a server in a thread."""

    def __init__(self, path: str, parts: Parts) -> None:
        self.path = path
        self.parts = parts

    def answer_to(self, data: bytes) -> Answer | None:
        """Send bytes and the end, and read what comes; None where nothing does."""
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(10)
            client.connect(self.path)
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
            answer = http.client.HTTPResponse(client)
            try:
                answer.begin()
            except (http.client.BadStatusLine, ConnectionError):
                return None
            try:
                return Answer(answer.status, answer.read())
            except http.client.IncompleteRead as cut:  # there could be more events
                return Answer(answer.status, cut.partial, is_whole=False)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    parts = make_parts()
    parts.run("a", 1)
    path = str(tmp_path_factory.mktemp("run") / "private" / "control.sock")
    loop, ready = asyncio.new_event_loop(), threading.Event()
    task: list[asyncio.Task[None]] = []

    async def run() -> None:
        with control_socket(path) as listener:
            task.append(asyncio.create_task(serve(site_of(parts.daemon), listener)))
            ready.set()
            await asyncio.wait(task)

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),))
    thread.start()
    ready.wait()
    yield Served(path, parts)
    loop.call_soon_threadsafe(task[0].cancel)
    thread.join()
    loop.close()


@given(BYTES)
def test_any_bytes_are_answered_or_refused(served: Served, data: bytes) -> None:
    before = everything(served.parts)

    answer = served.answer_to(data)

    assert everything(served.parts) == before
    if answer is not None:
        assert answer.status in (200, 400, 404, 405, 413, 431, 501)
        if answer.status != 200 and answer.body:
            assert mistakes(json.loads(answer.body), "Refusal") == []


def everything(parts: Parts) -> tuple[Any, ...]:
    return parts.policy.state, parts.policy.config, parts.history.last


@pytest.mark.parametrize("query", ["since=" + "9" * 5000, "since=-1", "follow=2"])
def test_invalid_numbers_are_refused(served: Served, query: str) -> None:
    answer = served.answer_to(f"GET /v1/events?{query} HTTP/1.0\r\n\r\n".encode())

    assert answer is not None
    assert answer.status == 400


def test_a_client_that_closed_its_sending_side_gets_the_whole_answer(
    served: Served,
) -> None:
    for _ in range(1000):  # in several pieces
        served.parts.history.note("drift.cleared")
    answer = served.answer_to(b"GET /v1/events HTTP/1.1\r\nHost: h\r\n\r\n")

    assert answer is not None
    assert answer.is_whole
    assert len(answer.body.splitlines()) == 1 + served.parts.history.last


def test_a_truncated_request_is_not_answered(served: Served) -> None:
    for end in range(len(PUT)):
        answer = served.answer_to(PUT[:end].encode())
        assert answer is None


def test_a_secret_of_a_pod_is_in_no_answer(served: Served) -> None:
    for request in GETS:
        answer = served.answer_to(request.encode())
        assert answer is not None
        assert answer.status == 200
        assert b"hunter2" not in answer.body
