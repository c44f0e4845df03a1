"""The end of a connection whose peer does not read."""

from __future__ import annotations

import asyncio
import socket

import pytest

from nri_proto import RUNTIME_METHODS, Trunk, nri_pb2
from nri_resmgr.stub.errors import ConnectionLost
from nri_resmgr.stub.link import Link


class Impatient(Link):
    """A link that waits a moment for its peer."""

    write_stall = 0.05


async def test_a_peer_that_does_not_read_is_named_as_the_reason() -> None:
    ours, theirs = socket.socketpair()
    loop = asyncio.get_running_loop()
    _, link = await loop.create_unix_connection(
        lambda: Impatient(Trunk.of_plugin(), lambda _: None), sock=ours
    )
    # More than the socket's buffer takes.
    update = nri_pb2.ContainerUpdate(container_id="c" * 3_000_000)
    request = nri_pb2.UpdateContainersRequest(update=[update])
    why = "the peer has not read its messages for 0.05 s"

    with pytest.raises(ConnectionLost, match=why):
        await link.call(RUNTIME_METHODS["UpdateContainers"], request, 60)
    # The log's line has it, too: see `Stub`.
    assert await link.closed == why
    theirs.close()
