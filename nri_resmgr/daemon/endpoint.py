"""Where metrics and health are served: ``[ADDRESS]:PORT``."""

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
    """``--http-endpoint`` says no address that can be listened on."""

    text: str

    def __str__(self) -> str:
        return (
            f"--http-endpoint: {self.text!r}: expected [ADDRESS]:PORT, such as :8891, "
            "127.0.0.1:8891 or [::1]:8891"
        )


@dataclass(eq=False)
class EndpointTaken(HostError):
    """Nobody can listen there now."""

    where: str
    why: str

    def __str__(self) -> str:
        return f"cannot listen on {self.where}: {self.why}"


class Endpoint(msgspec.Struct, frozen=True):
    """An address of this host.

    Attributes:
        address: Of the internet, version 4 or 6; empty for all that there are.
        port: 0 for one that is free.
    """

    address: str
    port: int

    def __str__(self) -> str:
        address = f"[{self.address}]" if ":" in self.address else self.address
        return f"{address}:{self.port}"

    def listen(self) -> socket.socket:
        """Open a socket there.

        Raises:
            EndpointTaken: Somebody else has it, or the address is not of this host.
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
            # Its own text says the address, too.
            why = os.strerror(error.errno or 0).lower()
            raise EndpointTaken(str(self), why) from None


def read_endpoint(text: str) -> Endpoint:
    """Read an endpoint.

    Raises:
        BadEndpoint: It is none. Names of hosts are none: nobody looks them up.
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
    return Endpoint(six or four, int(match[3]))
