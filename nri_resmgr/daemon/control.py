"""The control socket as the daemon serves it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from socket import socket
from typing import Final

from nri_resmgr.app.background.threads import NO_MEMORY, in_thread
from nri_resmgr.control.http_server import serve
from nri_resmgr.control.listener import ControlSocketUnusable, open_control_socket
from nri_resmgr.control.routes import site_of
from nri_resmgr.daemon.parts import Daemon
from nri_resmgr.daemon.view import daemon_view_of
from nri_resmgr.log import Logger

log = Logger(__name__)

# Its folder is in memory as a rule, and answers at once.
_REMOVAL: Final = 2.0
"""Seconds to remove the socket; the end of the process does not wait longer."""


async def serve_control(daemon: Daemon, path: str) -> None:
    """Serve the control socket at *path* until cancelled.

    Raises:
        ControlSocketUnusable: The socket cannot be created.
        UntrustedState: Other users may write to its folder.
    """
    async with _listening(path, for_agent=bool(daemon.options.spool)) as listener:
        log.info("control.listening", socket=path)
        daemon.control_tried.set()
        await serve(site_of(daemon_view_of(daemon)), listener)


@asynccontextmanager
async def _listening(path: str, *, for_agent: bool) -> AsyncIterator[socket]:
    listener, remove = open_control_socket(path, for_agent=for_agent)
    try:
        yield listener
    finally:
        listener.close()
        await _removed(path, remove)


async def _removed(path: str, remove: Callable[[], object]) -> None:
    try:
        async with asyncio.timeout(_REMOVAL):
            await in_thread(remove)
    except TimeoutError:
        raise ControlSocketUnusable(path, "the file system does not answer") from None
    except (RuntimeError, *NO_MEMORY):
        # Without a thread a file system that hangs would keep the process from its end.
        # The next start replaces a socket on which nothing listens.
        return
