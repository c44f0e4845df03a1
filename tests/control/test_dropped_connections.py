"""The client connects again where the daemon dropped it before an answer."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from nri_resmgr.control.client import AnswerLost, Client

# More than the kernel buffers: sending waits until the other side closes.
LARGE = {"comment": "x" * (4 << 20)}
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


def dropping(
    listener: socket.socket, number: int, end: bytes | None = None
) -> Callable[[], int]:
    """Drop the first *number* connections, answer the next; return what counts them.

    They are dropped at once, or when they have sent a request, which has that *end*.
    """
    accepted = []

    def serve() -> None:
        while True:
            try:
                connected, _ = listener.accept()
            except OSError:
                return
            with connected:
                accepted.append(connected)
                is_answered = len(accepted) > number
                if is_answered or end:
                    while not connected.recv(1 << 16).endswith(end or b"}"):
                        pass
                if is_answered:
                    connected.sendall(ANSWER)

    threading.Thread(target=serve, daemon=True).start()
    return lambda: len(accepted)


@pytest.mark.parametrize(("dropped", "connections"), [(0, 1), (1, 2), (2, 3)])
def test_a_dropped_connection_is_made_again(
    tmp_path: Path, dropped: int, connections: int
) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        listener.listen()
        count = dropping(listener, dropped)

        assert Client(str(tmp_path / "socket")).put("/v1/config", LARGE) == {}
        assert count() == connections


def test_a_daemon_that_drops_all_is_an_error(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        listener.listen()
        count = dropping(listener, 10)

        with pytest.raises(AnswerLost, match=r"socket: broken pipe$"):
            Client(str(tmp_path / "socket")).put("/v1/config", LARGE)
        assert count() == 3


@pytest.mark.parametrize(("dropped", "connections"), [(1, 2), (2, 3)])
def test_a_query_is_asked_again(tmp_path: Path, dropped: int, connections: int) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        listener.listen()
        count = dropping(listener, dropped, b"\r\n\r\n")

        assert Client(str(tmp_path / "socket")).get("/v1/state") == {}
        assert count() == connections


def test_a_change_that_may_have_been_made_is_not_asked_for_again(
    tmp_path: Path,
) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        listener.listen()
        count = dropping(listener, 1, b"}")

        with pytest.raises(AnswerLost, match=r"socket: .*closed connection"):
            Client(str(tmp_path / "socket")).put("/v1/config", {})
        assert count() == 1
