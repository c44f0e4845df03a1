"""The address of metrics and health: ``[ADDRESS]:PORT``."""

from __future__ import annotations

import os
import re
import socket
from dataclasses import dataclass
from typing import Final

import msgspec

from nri_resmgr.values import HostError, InputError

_FORM: Final = re.compile(r"(?:\[([0-9a-fA-F:.]+)\]|([0-9.]*)):([0-9]{1,5})")
_LAST_PORT: Final = 65535
_BACKLOG: Final = 16


@dataclass(eq=False)
class BadEndpoint(InputError):
    """``--http-endpoint`` is not an address and port."""

    text: str

    def __str__(self) -> str:
        return (
            f"--http-endpoint: {self.text!r}: expected [ADDRESS]:PORT, such as :8891, "
            "127.0.0.1:8891 or [::1]:8891"
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
        address: An IPv4 or IPv6 address; empty for all.
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
        every = not self.address and socket.has_dualstack_ipv6()
        six = every or ":" in self.address
        family = socket.AF_INET6 if six else socket.AF_INET
        where = (self.address, self.port)
        try:
            return socket.create_server(
                where, family=family, backlog=_BACKLOG, dualstack_ipv6=every
            )
        except OSError as error:
            # The text of the error would repeat the address.
            why = os.strerror(error.errno or 0).lower()
            raise EndpointTaken(str(self), why) from None


def read_endpoint(text: str) -> HttpEndpoint:
    """Read an endpoint.

    Raises:
        BadEndpoint: It is not an address and port; host names are not resolved.
    """
    match = _FORM.fullmatch(text)
    if match is None or int(match[3]) > _LAST_PORT:
        raise BadEndpoint(text)
    six, four = match[1], match[2]
    try:
        if six:
            socket.inet_pton(socket.AF_INET6, six)
        elif four:
            socket.inet_pton(socket.AF_INET, four)
    except OSError:
        raise BadEndpoint(text) from None
    return HttpEndpoint(six or four, int(match[3]))
