"""Network devices of this host: lent to a network namespace, and taken back.

The kernel is asked by rtnetlink(7). A socket of it belongs to the namespace in which it
was made, whatever thread uses it later.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from ipaddress import IPv4Interface, IPv6Interface
from typing import Final, Self

import msgspec

from nri_resmgr.host import libc
from nri_resmgr.host.bounded import reason
from nri_resmgr.values import HostError

OWN_NAMESPACE: Final = "/proc/self/ns/net"

# Source: linux/netlink.h, linux/rtnetlink.h.
_HEADER: Final = struct.Struct("=IHHII")  # length, type, flags, sequence, port
_ATTRIBUTE: Final = struct.Struct("=HH")  # length, type
_REQUEST, _ACK, _CREATE, _EXCLUSIVE, _DUMP = 0x1, 0x4, 0x400, 0x200, 0x300
_ERROR: Final = 2
_NEW_LINK, _GET_LINK, _SET_LINK, _NEW_ADDRESS = 16, 18, 19, 20

# Source: linux/if_link.h, linux/if_addr.h, linux/if.h.
_LINK: Final = struct.Struct("=BxHiII")  # family, type, index, flags, changed flags
_ADDRESS: Final = struct.Struct("=BBBBI")  # family, prefix, flags, scope, index
_NAME, _MTU, _ALIAS, _NAMESPACE = 3, 4, 20, 28
_OF_PEER, _LOCAL = 1, 2
_UP: Final = 1

_CLONE_NEWNET: Final = 0x40000000
_REPLY: Final = 1 << 18  # bytes; a link with many virtual functions has 100 KiB


@dataclass(eq=False)
class LinkNotMoved(HostError):
    """A network device is not where it should be."""

    name: str
    why: str

    def __str__(self) -> str:
        return f"network device {self.name!r}: {self.why}"


class Link(msgspec.Struct, frozen=True):
    """A network device.

    Attributes:
        index: Its number in its namespace.
        alias: A text that whoever has the device may set.
    """

    index: int
    name: str
    alias: str = ""


class LinkSocket:
    """The network devices of one namespace; close it.

    Args:
        namespace: Path of the namespace.

    Raises:
        OSError: It is no network namespace, or this process may not enter it.
    """

    def __init__(self, namespace: str = OWN_NAMESPACE) -> None:
        self.descriptor = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
        try:
            # A thread of its own: nothing else may run in that namespace.
            with ThreadPoolExecutor(max_workers=1) as thread:
                self._socket = thread.submit(self._inside).result()
        except BaseException:
            os.close(self.descriptor)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        os.close(self.descriptor)

    def find(self, name: str) -> Link | None:
        """Return the device of a name."""
        body = _LINK.pack(0, 0, 0, 0, 0) + _text(_NAME, name)
        try:
            reply = self._ask(_GET_LINK, 0, body)
        except OSError as error:
            if error.errno == errno.ENODEV:
                return None
            raise
        return _link(reply)

    def with_alias(self, alias: str) -> Link | None:
        """Return the device that has an alias."""
        size = _HEADER.size + _LINK.size
        head = _HEADER.pack(size, _GET_LINK, _REQUEST | _DUMP, 0, 0)
        self._socket.send(head + _LINK.pack(0, 0, 0, 0, 0))
        found = None
        while True:  # to the end: what is left would be the next reply
            for kind, body in _messages(self._socket.recv(_REPLY)):
                if kind != _NEW_LINK:
                    return found
                link = _link(body)
                found = found or (link if link.alias == alias else None)

    def rename(self, link: Link, name: str) -> None:
        """Rename a device, which has to be down."""
        self._set(link, _text(_NAME, name))

    def mark(self, link: Link, alias: str) -> None:
        """Set the alias of a device."""
        self._set(link, _attribute(_ALIAS, alias.encode() or b"\0"))

    def move(self, link: Link, to: LinkSocket, name: str) -> None:
        """Move a device to another namespace, where it has a name, and is down."""
        target = _attribute(_NAMESPACE, struct.pack("=I", to.descriptor))
        self._set(link, target + _text(_NAME, name))

    def start(self, link: Link, mtu: int = 0) -> None:
        """Set a device up, with an MTU if it is not 0."""
        size = _attribute(_MTU, struct.pack("=I", mtu)) if mtu else b""
        self._set(link, size, _UP)

    def add_address(self, link: Link, address: IPv4Interface | IPv6Interface) -> None:
        """Give an address with its prefix to a device."""
        is_old = isinstance(address, IPv4Interface)
        family = socket.AF_INET if is_old else socket.AF_INET6
        head = _ADDRESS.pack(family, address.network.prefixlen, 0, 0, link.index)
        own = _attribute(_LOCAL, address.packed) + _attribute(_OF_PEER, address.packed)
        self._ask(_NEW_ADDRESS, _ACK | _CREATE | _EXCLUSIVE, head + own)

    def _inside(self) -> socket.socket:
        libc.call("setns", self.descriptor, _CLONE_NEWNET)
        return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)

    def _set(self, link: Link, attributes: bytes, flags: int = 0) -> None:
        head = _LINK.pack(0, 0, link.index, flags, flags)
        self._ask(_SET_LINK, _ACK, head + attributes)

    def _ask(self, kind: int, flags: int, body: bytes) -> bytes:
        """Send a request; return the body of its only reply."""
        size = _HEADER.size + len(body)
        self._socket.send(_HEADER.pack(size, kind, flags | _REQUEST, 0, 0) + body)
        reply = self._socket.recv(_REPLY)
        reply_kind, body = next(_messages(reply))
        if reply_kind == _ERROR:
            (number,) = struct.unpack_from("=i", body)
            if number:
                raise OSError(-number, os.strerror(-number))
        return body


def _link(body: bytes) -> Link:
    found = dict(_attributes(body[_LINK.size :]))
    name, alias = (
        found.get(kind, b"").rstrip(b"\0").decode(errors="replace")
        for kind in (_NAME, _ALIAS)
    )
    return Link(_LINK.unpack_from(body)[2], name, alias)


def lend(
    host_name: str,
    namespace: str,
    name: str,
    *,
    mtu: int = 0,
    address: IPv4Interface | IPv6Interface | None = None,
) -> None:
    """Move a device of this host to another namespace, and set it up there.

    Its alias there is its name on the host, by which `take_back` knows it.

    Args:
        host_name: Its name on the host.
        namespace: Path of the namespace.
        name: Its name there.
        mtu: Its MTU there; 0 leaves the present one.
        address: An address that it has there.

    Raises:
        LinkNotMoved: The kernel refuses it; the device is on the host.
    """
    with _explained(host_name), LinkSocket() as host, LinkSocket(namespace) as pod:
        if (link := _on_host(host, host_name)) is None:
            raise LinkNotMoved(host_name, "this host has none of that name")
        if pod.find(name) is not None:
            raise LinkNotMoved(host_name, f"the pod has a device {name!r} already")
        host.mark(link, host_name)
        try:
            host.move(link, pod, name)
        except OSError:
            host.mark(link, link.alias)
            raise
        try:
            if (moved := pod.find(name)) is not None:
                pod.start(moved, mtu)
                if address is not None:
                    pod.add_address(moved, address)
        except OSError:
            _return(pod, host, name, host_name)
            raise


def take_back(host_name: str, namespace: str, name: str) -> bool:
    """Move a device that was lent back to this host, where it is down.

    If the namespace is gone, the kernel has moved it, and it is only renamed.

    Returns:
        Whether it was there.

    Raises:
        LinkNotMoved: The kernel refuses it; the device is in the namespace.
    """
    with _explained(host_name), LinkSocket() as host:
        try:
            pod = LinkSocket(namespace)
        except FileNotFoundError:
            # The kernel may have returned it already, under its name in the pod.
            link = host.find(host_name)
            return link is None and _on_host(host, host_name) is not None
        with pod:
            return _return(pod, host, name, host_name)


def _on_host(host: LinkSocket, name: str) -> Link | None:
    """Return a device of the host, by its alias if the kernel has returned it."""
    if (link := host.find(name)) is None and (lent := host.with_alias(name)):
        host.rename(lent, name)
        host.mark(lent, "")
        return msgspec.structs.replace(lent, name=name, alias="")
    return link


def _return(pod: LinkSocket, host: LinkSocket, name: str, host_name: str) -> bool:
    link = pod.find(name)
    if link is None or link.alias != host_name:
        return False
    pod.move(link, host, host_name)
    if (back := host.find(host_name)) is not None:
        host.mark(back, "")
    return True


@contextlib.contextmanager
def _explained(host_name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise LinkNotMoved(host_name, reason(error)) from None


def _text(kind: int, text: str) -> bytes:
    return _attribute(kind, text.encode() + b"\0")


def _attribute(kind: int, value: bytes) -> bytes:
    size = _ATTRIBUTE.size + len(value)
    return _ATTRIBUTE.pack(size, kind) + value + bytes(-size % 4)


def _messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Return the types and bodies of the messages of one reply."""
    at = 0
    while at + _HEADER.size <= len(data):
        size, kind, *_ = _HEADER.unpack_from(data, at)
        yield kind, data[at + _HEADER.size : at + size]
        at += size + -size % 4


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + _ATTRIBUTE.size <= len(data):
        size, kind = _ATTRIBUTE.unpack_from(data, at)
        if size < _ATTRIBUTE.size:
            return
        yield kind, data[at + _ATTRIBUTE.size : at + size]
        at += size + -size % 4
