"""The small HTTP server on a unix socket, for tests."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from pathlib import Path

from nri_resmgr.control.http import Site
from nri_resmgr.control.http_server import serve


@contextlib.asynccontextmanager
async def serving(site: Site, path: Path) -> AsyncIterator[str]:
    """Serve *site* at *path* until the block ends."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    task = asyncio.create_task(serve(site, listener))
    try:
        yield str(path)
    finally:
        task.cancel()
        await asyncio.wait({task})
