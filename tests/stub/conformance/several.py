"""Several plugins at one runtime."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from nri_resmgr.stub import Identity, SocketPath, Stub
from nri_resmgr.testing import Runtime
from tests.stub.live import running


@asynccontextmanager
async def several(
    directory: Path, plugins: Mapping[str, object]
) -> AsyncIterator[Runtime]:
    """Run plugins by their ``NN-name``, started in this order."""
    async with AsyncExitStack() as stack:
        runtime = await stack.enter_async_context(Runtime(directory))
        for name, plugin in plugins.items():
            endpoint = SocketPath(str(runtime.socket_path))
            stub = Stub(plugin, Identity.parse(name), endpoint)
            await stack.enter_async_context(running(stub))
            await runtime.synchronized(name)
        yield runtime
