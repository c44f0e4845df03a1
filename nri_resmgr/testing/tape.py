"""A recording of all messages, for comparison of whole values in tests."""

from __future__ import annotations

from typing import Final

import attrs
import msgspec
from google.protobuf.message import Message

from nri_proto import PLUGIN_METHODS, Event, nri_pb2
from nri_resmgr.stub.observer import Sender

_EVENTS: Final = frozenset(event.value for event in Event)


class Failure(msgspec.Struct, frozen=True):
    """An error reply.

    Attributes:
        code: A gRPC status code.
    """

    code: int
    message: str


class RecordedMessage(msgspec.Struct, frozen=True):
    """One message.

    Attributes:
        plugin: ``NN-name``; empty before RegisterPlugin.
        method: The call that it belongs to, as a request or as a reply.
        body: The request or the reply, or an error in place of a reply.
    """

    plugin: str
    sender: Sender
    method: str
    body: Message | Failure


@attrs.define(eq=False, repr=False)
class Tape:
    """Records messages in the order in which they were sent or received."""

    is_on: bool = True
    records: list[RecordedMessage] = attrs.field(factory=list)

    def add(self, record: RecordedMessage) -> None:
        """Add a message."""
        if self.is_on:
            self.records.append(record)

    def calls_to(self, plugin: str) -> list[str]:
        """Return the names of the calls that the runtime made to a plugin, in order.

        StateChange has its event with it: ``StateChange(RUN_POD_SANDBOX)``.
        """
        return [
            _title(record)
            for record in self.records
            if record.plugin == plugin
            and record.sender is Sender.RUNTIME
            and record.method in PLUGIN_METHODS
        ]


def _title(record: RecordedMessage) -> str:
    if isinstance(record.body, nri_pb2.StateChangeEvent):
        number = int(record.body.event)
        name = nri_pb2.Event.Name(number) if number in _EVENTS else number
        return f"StateChange({name})"
    return record.method
