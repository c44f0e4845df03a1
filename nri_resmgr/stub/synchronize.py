"""Synchronize on a large node: requests in several messages, a reply cut to size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from nri_proto import nri_pb2
from nri_proto.frames import MAX_DATA_OUT
from nri_resmgr.stub.convert import from_message
from nri_resmgr.stub.model import Container, Pod

# Bytes of updates in one message; the rest of the 4 MiB is for the envelope.
UPDATES_BUDGET: Final = MAX_DATA_OUT - (64 << 10)
_TAG_AND_LENGTH: Final = 6


@attrs.define(eq=False, repr=False)
class SynchronizeChunks:
    """Collects pods and containers from the messages of one Synchronize.

    Runtimes cut both lists independently: a container may come before its pod.
    """

    _reduce_pod: Callable[[Pod], Pod] | None = None
    _reduce_container: Callable[[Container], Container] | None = None
    _pods: list[Pod] = attrs.field(factory=list, init=False)
    _containers: list[Container] = attrs.field(factory=list, init=False)

    def add(self, chunk: nri_pb2.SynchronizeRequest) -> None:
        """Convert and keep the objects of one message, which may have none."""
        # Converted and reduced one by one: the messages of a large node are megabytes.
        for pod in map(from_message, chunk.pods):
            self._pods.append(self._reduce_pod(pod) if self._reduce_pod else pod)
        for one in map(from_message, chunk.containers):
            reduced = self._reduce_container(one) if self._reduce_container else one
            self._containers.append(reduced)

    def take(self) -> tuple[tuple[Pod, ...], tuple[Container, ...]]:
        """Return all objects and begin with an empty collection."""
        taken = tuple(self._pods), tuple(self._containers)
        self._pods, self._containers = [], []
        return taken


def split_updates(
    response: nri_pb2.SynchronizeResponse,
) -> tuple[nri_pb2.ContainerUpdate, ...]:
    """Cut updates from a reply until the rest fits into 4 MiB.

    Returns:
        The updates taken out of *response*, to be sent by UpdateContainers.
    """
    size = 0
    for kept, update in enumerate(response.update):
        size += entry_size(update)
        if size > UPDATES_BUDGET:
            surplus = tuple(response.update[kept:])
            del response.update[kept:]
            return surplus
    return ()


def entry_size(update: nri_pb2.ContainerUpdate) -> int:
    """Return the maximum of bytes that *update* takes in a message."""
    return update.ByteSize() + _TAG_AND_LENGTH
