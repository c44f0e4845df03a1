"""Telling a plugin what runs, in as many messages as it takes."""

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

# Go cuts both counts at least by this when a message did not fit.
_SHRINK: Final = 0.9

# Room for service, method, timeout and lengths around the payload.
_ENVELOPE: Final = 128


# A limit for runtimes that send whatever they have.
_NO_LIMIT: Final = 1 << 30

_METHOD: Final = PLUGIN_METHODS["Synchronize"]


async def synchronize(
    plugin: ConnectedPlugin,
    profile: Profile,
    pods: Sequence[nri_pb2.PodSandbox],
    containers: Sequence[nri_pb2.Container],
) -> Sequence[nri_pb2.ContainerUpdate]:
    """Tell the plugin what runs; return the updates it wants.

    Raises:
        RegistrationFailed: It cannot take several messages, or one object alone
            is too large.
        PluginRefused: It answered with an error.
        PluginLost: It went away, or took too long for all of it.
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
                forgives=profile.level < SPLIT_SYNC,
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
    """Cut pods and containers into messages; the last one has no ``more``.

    Both are cut independently, as Go's runtime does, so a container may come
    before its pod. Go's own endless and crashing cases are not played.

    Args:
        pods: All of them.
        containers: All of them.
        limit: Bytes that fit.
        objects: Most pods, and most containers, in one message.

    Raises:
        MessageTooLarge: A single pod and container exceed the limit.
    """
    step = objects or max(len(pods), len(containers), 1)
    at = 0
    while True:
        request = _slice(pods, containers, at, step)
        if (size := request.ByteSize() + _ENVELOPE) > limit:
            if step == 1:
                raise MessageTooLarge(size, limit)
            step = max(1, int(step * min(_SHRINK, limit / size)))
            continue
        yield request
        if not request.more:
            return
        at += step


def _slice(
    pods: Sequence[nri_pb2.PodSandbox],
    containers: Sequence[nri_pb2.Container],
    at: int,
    step: int,
) -> nri_pb2.SynchronizeRequest:
    end = at + step
    return nri_pb2.SynchronizeRequest(
        pods=pods[at:end],
        containers=containers[at:end],
        more=end < max(len(pods), len(containers)),
    )
