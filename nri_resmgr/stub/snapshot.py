"""The Synchronize messages of a large node put together, and taken apart."""

from __future__ import annotations

from typing import Final

import attrs

from nri_proto import nri_pb2
from nri_proto.frames import MAX_DATA_OUT
from nri_resmgr.stub.convert import from_message
from nri_resmgr.stub.model import Container, Pod

# Leaves room for the envelope.
UPDATES_BUDGET: Final = MAX_DATA_OUT - (64 << 10)
_TAG_AND_LENGTH: Final = 6


@attrs.define(eq=False, repr=False)
class Snapshot:
    """Collects chunks; pods and containers are cut without regard to each other."""

    _pods: list[Pod] = attrs.field(factory=list, init=False)
    _containers: list[Container] = attrs.field(factory=list, init=False)

    def add(self, chunk: nri_pb2.SynchronizeRequest) -> None:
        """Convert one chunk; any number may come, empty ones among them."""
        self._pods += map(from_message, chunk.pods)
        self._containers += map(from_message, chunk.containers)

    def take(self) -> tuple[tuple[Pod, ...], tuple[Container, ...]]:
        """Return everything and start anew."""
        taken = tuple(self._pods), tuple(self._containers)
        self._pods, self._containers = [], []
        return taken


def split_updates(
    response: nri_pb2.SynchronizeResponse,
) -> tuple[nri_pb2.ContainerUpdate, ...]:
    """Cut from a reply the updates for which 4 MiB have no room.

    Returns:
        What was taken out of *response*, to be sent by UpdateContainers.
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
    """Return the bytes that *update* takes in a message, at most."""
    return update.ByteSize() + _TAG_AND_LENGTH
