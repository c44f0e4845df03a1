"""The socket to the runtime: connected by path, or inherited from the runtime."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, MutableMapping
from typing import ClassVar, Final, Protocol, TypeVar

import msgspec

from nri_resmgr.stub.errors import BadIdentity, SocketUnusable

DEFAULT_SOCKET: Final = "/var/run/nri/nri.sock"
SOCKET_VARIABLE: Final = "NRI_PLUGIN_SOCKET"

# Connecting blocks the event loop, at most for this time.
_CONNECT_TIMEOUT: Final = 1.0  # seconds

ProtocolT = TypeVar("ProtocolT", bound=asyncio.BaseProtocol)


class Connector(Protocol):
    """Connects a session to the runtime.

    Attributes:
        reconnects: Whether a lost connection can be repeated.
    """

    reconnects: ClassVar[bool]

    async def connect(self, factory: Callable[[], ProtocolT]) -> ProtocolT:
        """Connect a new protocol.

        Raises:
            SocketUnusable: No runtime listens there, or access is denied.
        """


class SocketPath(msgspec.Struct, frozen=True):
    """The path of the runtime's socket, for plugins that it does not launch."""

    reconnects: ClassVar[bool] = True

    path: str = DEFAULT_SOCKET

    async def connect(self, factory: Callable[[], ProtocolT]) -> ProtocolT:
        """Connect to the path; a runtime's restart puts a new socket there."""
        loop = asyncio.get_running_loop()
        try:
            sock = _connected(self.path)
            _, protocol = await loop.create_unix_connection(factory, sock=sock)
        except OSError as error:
            why = error.strerror or str(error)
            raise SocketUnusable(self.path, why.lower()) from None
        return protocol


def _connected(path: str) -> socket.socket:
    """Connect a socket; it blocks only while the runtime's backlog is full.

    asyncio's own connect does not block, and takes the EAGAIN of a full backlog for a
    connection in progress: it would return a socket that never was connected.
    """
    sock = socket.socket(socket.AF_UNIX)
    try:
        sock.settimeout(_CONNECT_TIMEOUT)
        sock.connect(path)
    except BaseException:
        sock.close()
        raise
    return sock


class OpenSocket(msgspec.Struct, frozen=True):
    """A connected socket: inherited from the runtime, or given by the caller."""

    reconnects: ClassVar[bool] = False

    sock: socket.socket

    @classmethod
    def inherit(cls, text: str) -> OpenSocket:
        """Wrap the descriptor that a launching runtime left open.

        Args:
            text: Its number, the value of ``NRI_PLUGIN_SOCKET``.

        Raises:
            BadIdentity: *text* is no number of an open stream socket.
        """
        try:
            descriptor = int(text)
            # A child that inherits it would keep the session open after our end.
            os.set_inheritable(descriptor, False)
            sock = socket.socket(fileno=descriptor)
        except (ValueError, OSError, OverflowError) as error:
            raise BadIdentity(
                f"{SOCKET_VARIABLE}={text!r} is no open socket ({error}); "
                "unset it to connect by path"
            ) from None
        return cls(sock)

    async def connect(self, factory: Callable[[], ProtocolT]) -> ProtocolT:
        """Pass the socket to asyncio; works once."""
        loop = asyncio.get_running_loop()
        try:
            _, protocol = await loop.create_unix_connection(factory, sock=self.sock)
        except (OSError, ValueError) as error:
            raise SocketUnusable(f"fd {self.sock.fileno()}", str(error)) from None
        return protocol


def find_connector(
    path: str | None, environment: MutableMapping[str, str]
) -> Connector:
    """Return the inherited descriptor if there is one, else the path.

    The variable is removed from *environment*, so that children do not inherit it.

    Raises:
        BadIdentity: The variable names no open socket.
    """
    inherited = environment.pop(SOCKET_VARIABLE, None)
    if inherited is not None:
        return OpenSocket.inherit(inherited)
    return SocketPath(path or DEFAULT_SOCKET)
