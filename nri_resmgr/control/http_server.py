"""A small HTTP/1.1 server: one request per connection, with limits on everything."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from typing import Final

from nri_resmgr.control.http import Site
from nri_resmgr.control.http_connection import Connection
from nri_resmgr.log import Logger

__all__ = ["serve"]

log = Logger(__name__)

# Clients that may wait to be accepted. Further ones would try again after a second:
# the timeout of a probe.
_QUEUE: Final = 512
_PAUSE: Final = 0.1  # seconds until the next attempt to accept after a failed one
_LOG_INTERVAL: Final = 60.0  # seconds


async def serve(site: Site, listener: socket.socket) -> None:
    """Serve on *listener* until cancelled; close it and all connections.

    A handler's `RequestRefused` is answered with its status, another `InputError` with
    400, another `ResmgrError` with 500 and its sentence; other errors are logged.

    A client that comes while all places are taken gets that of the client that has been
    waited for longest: for its whole request, or for reading its reply. Where none is
    waited for, the new one is disconnected.

    Args:
        site: The routes.
        listener: A bound TCP or unix socket.
    """
    clients = _Clients(site)
    with listener:
        listener.setblocking(False)
        listener.listen(_QUEUE)
        try:
            await _accept(listener, clients)
        finally:
            await clients.close()


async def _accept(listener: socket.socket, clients: _Clients) -> None:
    """Accept clients until cancelled.

    Not asyncio's server: it accepts 100 at once, before requests of the runtime, and
    logs as many tracebacks per second while descriptors are short.

    Source:
        CPython issue 151615, and asyncio's selector_events.py, _accept_connection.
    """
    loop = asyncio.get_running_loop()
    next_log = loop.time()
    while True:
        try:
            accepted, _ = await loop.sock_accept(listener)
        except OSError as error:
            if error.errno == errno.EEXIST:
                # epoll has kept the listener where asyncio believes it removed: only a
                # new one can be waited for.
                raise
            if loop.time() >= next_log:
                next_log = loop.time() + _LOG_INTERVAL
                why = os.strerror(error.errno or 0).lower()
                log.warning("http.not-accepting", why=why, again_in=_PAUSE)
            clients.drop_one()  # its descriptor may be what is missing
            await asyncio.sleep(_PAUSE)
        else:
            clients.add(accepted)
            await asyncio.sleep(0)  # sock_accept does not yield while clients wait


class _Clients:
    """The connections of a site."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._streams = asyncio.Semaphore(site.limits.streams)
        self._connections: dict[asyncio.Task[None], Connection] = {}

    def add(self, accepted: socket.socket) -> None:
        """Serve a client, or disconnect it if there is no place."""
        if self._used() >= self._site.limits.connections and not self.drop_one():
            accepted.close()  # a reply would take what the limit protects
            return
        connection = Connection(self._site, self._streams)
        task = asyncio.create_task(connection.serve(accepted))
        self._connections[task] = connection

        def forget(task: asyncio.Task[None]) -> None:
            del self._connections[task]
            accepted.close()  # a task that was cancelled before its start has not

        task.add_done_callback(forget)

    def drop_one(self) -> bool:
        """Drop the client that has been waited for longest; return whether one was."""
        waiting = [
            (one.waits_since, one, task)
            for task, one in self._connections.items()
            if one.waits_since is not None and not one.is_ending
        ]
        if not waiting:
            return False
        # By time alone. With idle clients before slow readers, a client that has just
        # come would be dropped first where all others are slow readers.
        _, connection, task = min(waiting, key=lambda one: one[0])
        connection.is_ending = True
        task.cancel()
        return True

    async def close(self) -> None:
        """Drop all clients."""
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _used(self) -> int:
        return sum(not one.is_ending for one in self._connections.values())
