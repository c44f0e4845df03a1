"""A lasting connection to a service of the kubelet, by grpclib.

grpclib is an optional dependency and takes 50 ms to import. So this module is imported
late: after the daemon has registered with the runtime, and once the socket is there.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, Never, cast

import msgspec
from google.protobuf.message import DecodeError
from grpclib import GRPCError, Status
from grpclib.client import Channel, Handler
from grpclib.config import Configuration
from grpclib.exceptions import ProtocolError, StreamTerminatedError
from grpclib.protocol import H2Protocol
from h2.exceptions import H2Error

from nri_resmgr.kubelet.bounded_protocol import LARGEST_MESSAGE, BoundedProtocol
from nri_resmgr.kubelet.sockets import KubeletService
from nri_resmgr.log import Logger
from nri_resmgr.values.printable import printable

log = Logger(__name__)

BROKEN: Final = (
    OSError,
    GRPCError,
    StreamTerminatedError,
    ProtocolError,
    H2Error,
    DecodeError,
    TimeoutError,
    # grpclib's for a stream that ends within a message, and for a compressed one.
    AssertionError,
    NotImplementedError,
    # Headers that are none of gRPC's.
    ValueError,
    LookupError,
)
"""Errors of a call that a kubelet, or another program in its place, can cause."""

# Unread bytes of a connection; a message may be larger.
_WINDOW: Final = 256 << 10

_SHOWN: Final = 200  # characters of a kubelet's message

_CONFIGURATION: Final = Configuration(
    http2_connection_window_size=_WINDOW, http2_stream_window_size=_WINDOW
)


class Pauses(msgspec.Struct, frozen=True):
    """Pauses between two attempts to connect, in seconds.

    Attributes:
        first: Doubled with each attempt.
        last: The longest one, also while there is no socket.
        unserved: Where the kubelet does not have the service.
    """

    first: float = 0.1
    last: float = 5.0
    unserved: float = 60.0


DEFAULT_PAUSES: Final = Pauses()


class BoundedChannel(Channel):
    """A channel to a unix socket, with a bound for received messages."""

    def __init__(self, path: Path) -> None:
        super().__init__(path=str(path), config=_CONFIGURATION)

    def _protocol_factory(self) -> H2Protocol:
        plain = super()._protocol_factory()
        return BoundedProtocol(plain.handler, plain.config, plain.h2_config)

    async def _create_connection(self) -> H2Protocol:
        protocol = await super()._create_connection()
        # asyncio takes the EAGAIN of a socket with a full queue for a connection in
        # progress; grpclib would wait for the answer to a call on what is lost already.
        if cast(Handler, protocol.handler).connection_lost:
            raise ConnectionAbortedError
        return protocol


class KubeletConnection:
    """Connects to a service again and again, and has each connection used.

    Args:
        service: The service.
        folder: The kubelet's root directory.
        pauses: Between attempts to connect.

    Attributes:
        problem: Why the service is not in use; empty while it answers.
        path: Its socket.
    """

    def __init__(
        self, service: KubeletService, folder: Path, pauses: Pauses = DEFAULT_PAUSES
    ) -> None:
        self.path = folder / service.socket
        self.problem = f"{self.path}: not connected yet"
        self._service = service
        self._pauses = pauses
        self._failures = 0
        self._logged = ""

    async def keep(self, use: Callable[[Channel], Awaitable[None]]) -> Never:
        """Have connections used, one after the other, until cancelled.

        A kubelet that is not there, restarts or answers errors is no failure of this
        process: `problem` says what it is, and the next attempt follows.

        Args:
            use: Uses a channel until it breaks, and calls `answered` once the service
                has answered. Raises one of `BROKEN`, or returns at the end of a stream.
        """
        while True:
            channel = BoundedChannel(self.path)
            pause, is_unserved = self._pauses.last, False
            try:
                await use(channel)
            except BROKEN as error:
                self._failed(self._reason_of(error))
                if is_unserved := _is_unserved(error):
                    pause = self._pauses.unserved
            else:
                self._failed(f"{self.path}: the kubelet has ended the stream")
            finally:
                channel.close()
            doubled = min(self._failures - 1, 10)
            wait = self._pauses.first * 2.0**doubled
            await asyncio.sleep(pause if is_unserved else min(wait, pause))

    def answered(self) -> None:
        """Note that the service has answered."""
        if self._logged:
            log.info("kubelet.connected", socket=str(self.path))
        self.problem, self._failures, self._logged = "", 0, ""

    def _failed(self, why: str) -> None:
        self._failures += 1
        self.problem = why
        # A restart of the kubelet is over after some attempts.
        if self._failures > 1 and why != self._logged:
            self._logged = why
            log.warning("kubelet.unavailable", socket=str(self.path), why=why)

    def _reason_of(self, error: BaseException) -> str:
        path, name = self.path, self._service.name
        match error:
            case GRPCError(status=Status.UNIMPLEMENTED):
                why = f"the kubelet does not serve {name}; {self._service.remedy}"
            case GRPCError():
                text = printable((error.message or "")[:_SHOWN])
                why = f"the kubelet answers {error.status.name}: {text}"
            case OSError(errno=errno.ENOENT):
                why = f"no such socket; {self._service.remedy}"
            case OSError(errno=errno.ECONNREFUSED):
                why = "the kubelet does not run"
            case ConnectionAbortedError():
                why = "the connection was lost at once; too many clients may wait"
            case OSError(errno=errno.EACCES | errno.EPERM):
                why = "permission denied; run the daemon as root"
            case TimeoutError():
                why = "the kubelet does not answer"
            case StreamTerminatedError():
                limit = LARGEST_MESSAGE >> 20
                why = f"connection lost, or a message above {limit} MiB: {error}"
            case _:
                why = printable(f"{type(error).__name__}: {error}"[:_SHOWN])
        return f"{path}: {why}"


def _is_unserved(error: BaseException) -> bool:
    return isinstance(error, GRPCError) and error.status is Status.UNIMPLEMENTED
