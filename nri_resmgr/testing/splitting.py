"""How much of a node's state goes into each Synchronize message."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from nri_proto import MessageTooLarge, nri_pb2

# Go cuts both counts at least by this when a message did not fit.
_SHRINK: Final = 0.9

# Room for service, method, timeout and lengths around the payload.
_ENVELOPE: Final = 128


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
