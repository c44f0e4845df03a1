"""What a request brought."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from google.protobuf.message import Message

from nri_proto import nri_pb2
from nri_resmgr.stub.adjustment import ContainerAdjustment
from nri_resmgr.stub.convert import from_message
from nri_resmgr.stub.model import Container, OwningPlugins
from nri_resmgr.stub.update import ContainerUpdate


class CreateResult(msgspec.Struct, frozen=True):
    """A container was created.

    Attributes:
        container: As it is now, adjusted.
        adjustment: What the plugins wanted, merged.
        updates: Of other containers, merged; they have been applied.
        owners: Which plugin set what.
    """

    container: Container
    adjustment: ContainerAdjustment
    updates: tuple[ContainerUpdate, ...]
    owners: OwningPlugins


class UpdateResult(msgspec.Struct, frozen=True):
    """A container was updated, or stopped.

    Attributes:
        container: As it is now.
        updates: What the plugins wanted, merged, others first.
    """

    container: Container
    updates: tuple[ContainerUpdate, ...]


def value_of(message: Message) -> Any:
    """Turn a message of the world, which goes on changing, into a value."""
    copy = type(message)()
    copy.CopyFrom(message)
    return from_message(copy)


def values_of(
    updates: Iterable[nri_pb2.ContainerUpdate],
) -> tuple[ContainerUpdate, ...]:
    """Turn messages into values."""
    return tuple(value_of(update) for update in updates)
