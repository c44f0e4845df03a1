"""Clients that take places of an HTTP server, and come again when they are dropped.

They are a process of their own: in that of a test, a probe would wait for their turns
of the interpreter, and measure these.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Final, TypeAlias

_REQUEST: Final = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
_PAUSE: Final = 0.25  # seconds before the next connection
_BUSY: Final = 60.0  # seconds for all to connect; the machine may be busy
_ROOT: Final = Path(__file__).parents[2]

Address: TypeAlias = tuple[str, int] | str
Misbehaviour: TypeAlias = Callable[[socket.socket], Awaitable[None]]


async def idle(client: socket.socket) -> None:
    """Send nothing until dropped."""
    await asyncio.get_running_loop().sock_recv(client, 1)


async def slow(client: socket.socket) -> None:
    """Send a byte now and then until dropped."""
    loop = asyncio.get_running_loop()
    while True:
        await loop.sock_sendall(client, b"G")
        await asyncio.sleep(0.2)


async def half_closed(client: socket.socket) -> None:
    """Send half a request, and no more."""
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(client, _REQUEST[:9])
    client.shutdown(socket.SHUT_WR)
    await loop.sock_recv(client, 1)


async def unread(client: socket.socket) -> None:
    """Ask for the largest answer, and do not read it."""
    await asyncio.get_running_loop().sock_sendall(client, _REQUEST)
    await asyncio.sleep(3600)


async def endless(client: socket.socket) -> None:
    """Send a header without an end, as fast as the server reads it."""
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(client, b"GET / HTTP/1.1\r\nX: ")
    while True:
        await loop.sock_sendall(client, b"x" * 4096)
        await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def besieged(
    address: Address, number: int, misbehave: Misbehaviour
) -> AsyncIterator[None]:
    """Keep *number* clients at *address* until the block ends."""
    where = (address,) if isinstance(address, str) else (address[0], str(address[1]))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.daemon.hostile_clients"),
        *(misbehave.__name__, str(number), *where),
        cwd=_ROOT,
        stdin=PIPE,  # whose end ends them, also if the test is killed
        stdout=PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        async with asyncio.timeout(_BUSY):
            assert await process.stdout.readline()
        yield
    finally:
        process.stdin.close()
        await process.wait()


async def _besiege(address: Address, number: int, misbehave: Misbehaviour) -> None:
    tried = [asyncio.Event() for _ in range(number)]
    clients = [
        asyncio.create_task(_come_again(address, misbehave, one)) for one in tried
    ]
    for one in tried:
        await one.wait()
    print("all have connected", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    for client in clients:
        client.cancel()
    await asyncio.gather(*clients, return_exceptions=True)


async def _come_again(
    address: Address, misbehave: Misbehaviour, tried: asyncio.Event
) -> None:
    loop = asyncio.get_running_loop()
    while True:
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        with socket.socket(family) as client, contextlib.suppress(OSError):
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.setblocking(False)
            await loop.sock_connect(client, address)
            tried.set()
            await misbehave(client)
        await asyncio.sleep(_PAUSE)


if __name__ == "__main__":
    _, _name, _number, *_where = sys.argv
    _chosen = {one.__name__: one for one in (idle, slow, half_closed, unread, endless)}
    _address = _where[0] if len(_where) == 1 else (_where[0], int(_where[1]))
    asyncio.run(_besiege(_address, int(_number), _chosen[_name]))
