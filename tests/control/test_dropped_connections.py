"""The client connects again where the daemon dropped it before the request."""

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


def dropping(listener: socket.socket, number: int) -> Callable[[], int]:
    """Drop the first *number* connections, answer the next; return what counts them."""
    accepted = []

    def serve() -> None:
        while True:
            try:
                connected, _ = listener.accept()
            except OSError:
                return
            with connected:
                accepted.append(connected)
                if len(accepted) > number:
                    while not connected.recv(1 << 16).endswith(b"}"):
                        pass
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
