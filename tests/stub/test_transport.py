"""The socket: by path, or inherited from a runtime that launched us."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

import pytest

from nri_resmgr.stub import BadIdentity, OpenSocket, SocketPath, SocketUnusable
from nri_resmgr.stub.transport import find_connector


def test_the_descriptor_takes_precedence_and_its_variable_is_removed() -> None:
    ours, theirs = socket.socketpair()
    os.set_inheritable(theirs.fileno(), True)
    environment = {"NRI_PLUGIN_SOCKET": str(theirs.fileno()), "HOME": "/"}
    connector = find_connector("/run/other.sock", environment)

    assert isinstance(connector, OpenSocket)
    assert connector.sock.fileno() == theirs.detach()
    assert not os.get_inheritable(connector.sock.fileno())
    assert environment == {"HOME": "/"}
    assert not connector.reconnects
    connector.sock.close()
    ours.close()


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (None, SocketPath("/var/run/nri/nri.sock")),
        ("", SocketPath("/var/run/nri/nri.sock")),
        ("/run/x.sock", SocketPath("/run/x.sock")),
    ],
    ids=["the default", "empty is the default", "the given path"],
)
def test_without_a_descriptor_the_path_is_used(
    path: str | None, expected: SocketPath
) -> None:
    connector = find_connector(path, {})

    assert connector == expected
    assert connector.reconnects


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("three", id="a word"),
        pytest.param("-1", id="negative"),
        pytest.param("987654", id="not open"),
        pytest.param("9" * 30, id="beyond any integer of C"),
    ],
)
def test_an_invalid_descriptor_is_reported(text: str) -> None:
    with pytest.raises(BadIdentity) as mistake:
        OpenSocket.inherit(text)

    sentence = str(mistake.value)
    assert sentence.startswith(f"NRI_PLUGIN_SOCKET={text!r} is no open socket (")
    assert sentence.endswith("); unset it to connect by path")


def test_a_file_is_no_socket(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w") as file, pytest.raises(BadIdentity):
        OpenSocket.inherit(str(file.fileno()))


async def test_a_datagram_socket_is_of_no_use() -> None:
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock,
        pytest.raises(SocketUnusable),
    ):
        await OpenSocket(sock).connect(asyncio.Protocol)


async def test_a_missing_socket_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(SocketUnusable) as absence:
        await SocketPath(str(tmp_path / "nri.sock")).connect(asyncio.Protocol)

    assert str(absence.value) == (
        f"cannot connect to the NRI socket {tmp_path}/nri.sock: no such file or "
        "directory; is NRI enabled in the runtime, and is this process root?"
    )


async def test_a_path_too_long_for_a_socket_is_a_sentence() -> None:
    with pytest.raises(SocketUnusable, match="too long"):
        await SocketPath("/" + "x" * 200).connect(asyncio.Protocol)
