"""The addresses of metrics and of health: ``[ADDRESS]:PORT``."""

from __future__ import annotations

import asyncio
import os
import re
import socket
from dataclasses import dataclass
from typing import Final

import msgspec

from nri_resmgr.log import Logger
from nri_resmgr.values import HostError, InputError

log = Logger(__name__)

_FORM: Final = re.compile(r"(?:\[([0-9a-fA-F:.]+)\]|([0-9.]*)):([0-9]{1,5})")
_LAST_PORT: Final = 65535
_LOCALHOST: Final = "127.0.0.1"
_EVERY: Final = "::"
_PAUSE: Final = 5.0  # seconds between attempts to listen
# Per client, and enough for each request: the kernel counts what clients send as memory
# of our cgroup, also that of clients that wait to be accepted.
_RECEIVED: Final = 8 << 10


@dataclass(eq=False)
class BadEndpoint(InputError):
    """``--http-endpoint`` or ``--health-endpoint`` is not an address and port."""

    flag: str
    text: str

    def __str__(self) -> str:
        return (
            f"{self.flag}: {self.text!r}: expected [ADDRESS]:PORT, such as :8891 for "
            "this host only, 10.0.0.7:8891, or [::]:8891 for every address"
        )


@dataclass(eq=False)
class EndpointTaken(HostError):
    """The address cannot be listened on now."""

    where: str
    why: str

    def __str__(self) -> str:
        return f"cannot listen on {self.where}: {self.why}"


class HttpEndpoint(msgspec.Struct, frozen=True):
    """An address of this host.

    Attributes:
        address: An IPv4 or IPv6 address; ``::`` is every address of both.
        port: 0 for any free port.
    """

    address: str
    port: int

    def __str__(self) -> str:
        address = f"[{self.address}]" if ":" in self.address else self.address
        return f"{address}:{self.port}"

    def listen(self) -> socket.socket:
        """Open a listening socket.

        Raises:
            EndpointTaken: The port is in use, or the address is not of this host.
        """
        every = self.address == _EVERY and socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if ":" in self.address else socket.AF_INET
        where = (self.address, self.port)
        try:
            listener = socket.create_server(where, family=family, dualstack_ipv6=every)
        except OSError as error:
            # The text of the error would repeat the address.
            why = os.strerror(error.errno or 0).lower()
            raise EndpointTaken(str(self), why) from None
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVED)
        return listener


def read_endpoint(flag: str, text: str) -> HttpEndpoint:
    """Read an endpoint; one without an address is of localhost.

    Brackets may be around any address, so that ``[$(POD_IP)]:8891`` in a manifest is
    right whatever the pod's address is.

    Args:
        flag: Its flag, for the error.
        text: ``[ADDRESS]:PORT``.

    Raises:
        BadEndpoint: It is not an address and port; host names are not resolved.
    """
    match = _FORM.fullmatch(text)
    if match is None or int(match[3]) > _LAST_PORT:
        raise BadEndpoint(flag, text)
    address = match[1] or match[2] or _LOCALHOST
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        socket.inet_pton(family, address)
    except OSError:
        raise BadEndpoint(flag, text) from None
    return HttpEndpoint(address, int(match[3]))


async def listen_when_free(endpoint: HttpEndpoint) -> tuple[socket.socket, str]:
    """Open a listening socket; return it with its address.

    While the port is in use, retry: a rolling update runs two instances for a moment.
    """
    is_logged = False
    while True:
        try:
            listener = endpoint.listen()
        except EndpointTaken as error:
            if not is_logged:
                log.warning("http.not-listening", why=str(error), again_in=_PAUSE)
            is_logged = True
            await asyncio.sleep(_PAUSE)
        else:
            # The kernel has replaced port 0 by a free one.
            port = listener.getsockname()[1]
            return listener, str(msgspec.structs.replace(endpoint, port=port))
