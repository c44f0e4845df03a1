"""Synchronize: all pods and containers for a plugin, in one or more messages."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Final, cast

from nri_proto import PLUGIN_METHODS, MessageTooLarge, nri_pb2
from nri_proto.levels import SPLIT_SYNC
from nri_resmgr.testing.errors import RegistrationFailed
from nri_resmgr.testing.misbehaviour import SessionStep
from nri_resmgr.testing.plugin import ConnectedPlugin
from nri_resmgr.testing.profile import Profile

# Go reduces both counts at least by this factor if a message does not fit.
_SHRINK: Final = 0.9

# Bytes for service, method, timeout and lengths around the payload.
_ENVELOPE: Final = 128

# Bytes; the limit of runtimes that do not check the size.
_NO_LIMIT: Final = 1 << 30

_METHOD: Final = PLUGIN_METHODS["Synchronize"]


async def synchronize(
    plugin: ConnectedPlugin,
    profile: Profile,
    pods: Sequence[nri_pb2.PodSandbox],
    containers: Sequence[nri_pb2.Container],
) -> Sequence[nri_pb2.ContainerUpdate]:
    """Send all pods and containers to the plugin; return the updates it replies.

    Raises:
        RegistrationFailed: The plugin does not support several messages, or one object
            is too large.
        PluginRefused: The plugin answered with an error.
        PluginLost: The connection ended, or the plugin was too late.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + profile.options.request_timeout
    try:
        for request in _requests(plugin, profile, pods, containers):
            answer = plugin.connection.begin(_METHOD, request, deadline - loop.time())
            await plugin.step(SessionStep.SYNCHRONIZING)
            message = await plugin.connection.end(
                _METHOD,
                answer,
                deadline - loop.time(),
                keeps_late=profile.level < SPLIT_SYNC,
            )
            reply = cast("nri_pb2.SynchronizeResponse", message)
            if reply.more != request.more or (request.more and reply.update):
                why = "plugin does not handle split sync requests"
                raise RegistrationFailed(plugin.name, why)
    except MessageTooLarge as error:
        raise RegistrationFailed(plugin.name, str(error)) from error
    await plugin.step(SessionStep.SYNCHRONIZED)
    return reply.update


def _requests(
    plugin: ConnectedPlugin,
    profile: Profile,
    pods: Sequence[nri_pb2.PodSandbox],
    containers: Sequence[nri_pb2.Container],
) -> Iterator[nri_pb2.SynchronizeRequest]:
    if profile.level < SPLIT_SYNC:
        yield nri_pb2.SynchronizeRequest(pods=pods, containers=containers)
        return
    wrong = plugin.connection.misbehaviour
    for _ in range(wrong.empty_chunks):
        yield nri_pb2.SynchronizeRequest(more=True)
    options = profile.options
    limit = _NO_LIMIT if wrong.oversize else options.sync_limit
    yield from sync_requests(
        pods, containers, limit=limit, objects=options.sync_objects
    )


def sync_requests(
    pods: Sequence[nri_pb2.PodSandbox],
    containers: Sequence[nri_pb2.Container],
    *,
    limit: int,
    objects: int | None = None,
) -> Iterator[nri_pb2.SynchronizeRequest]:
    """Distribute pods and containers over messages; the last one has no ``more``.

    Both lists are cut independently, as in Go's runtime, so a container may come before
    its pod. Cases in which Go's code loops or crashes are not emulated.

    A message has at most *limit* bytes, *objects* pods and *objects* containers.

    Raises:
        MessageTooLarge: A single pod and container exceed the limit.
    """
    step = objects or max(len(pods), len(containers), 1)
    at = 0
    while True:
        end = at + step
        request = nri_pb2.SynchronizeRequest(
            pods=pods[at:end],
            containers=containers[at:end],
            more=end < max(len(pods), len(containers)),
        )
        if (size := request.ByteSize() + _ENVELOPE) > limit:
            if step == 1:
                raise MessageTooLarge(size, limit)
            step = max(1, int(step * min(_SHRINK, limit / size)))
            continue
        yield request
        if not request.more:
            return
        at = end
