"""A tape of every message, for whole-value comparison in tests."""

from __future__ import annotations

import enum
from typing import Final

import attrs
import msgspec
from google.protobuf.message import Message

from nri_proto import PLUGIN_METHODS, Event, nri_pb2

_EVENTS: Final = frozenset(event.value for event in Event)


class Side(enum.StrEnum):
    """Who said it."""

    RUNTIME = "runtime"
    PLUGIN = "plugin"


class Failure(msgspec.Struct, frozen=True):
    """An error reply.

    Attributes:
        code: A gRPC status code.
        message: The words that came with it.
    """

    code: int
    message: str


class RecordedMessage(msgspec.Struct, frozen=True):
    """One message.

    Attributes:
        plugin: ``NN-name``, or empty as long as it has not told.
        side: Who sent it.
        method: The call it belongs to; a reply carries the call's name too.
        body: The request or the reply, or an error in its place.
    """

    plugin: str
    side: Side
    method: str
    body: Message | Failure


@attrs.define(eq=False, repr=False)
class Tape:
    """Takes records in the order in which they were sent or received."""

    runs: bool = True
    records: list[RecordedMessage] = attrs.field(factory=list)

    def add(self, record: RecordedMessage) -> None:
        """Take one record."""
        if self.runs:
            self.records.append(record)

    def heard_by(self, plugin: str) -> list[str]:
        """Name the calls the runtime made to a plugin, in order.

        StateChange is named with its event: ``StateChange(RUN_POD_SANDBOX)``.
        """
        return [
            _title(record)
            for record in self.records
            if record.plugin == plugin
            and record.side is Side.RUNTIME
            and record.method in PLUGIN_METHODS
        ]


def _title(record: RecordedMessage) -> str:
    if isinstance(record.body, nri_pb2.StateChangeEvent):
        number = int(record.body.event)
        name = nri_pb2.Event.Name(number) if number in _EVENTS else number
        return f"StateChange({name})"
    return record.method
