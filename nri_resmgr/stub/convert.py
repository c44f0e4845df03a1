"""Messages to frozen values and back, driven by the schema's descriptors.

`nri_resmgr.stub.schema` says which class stands for which message.
"""

from __future__ import annotations

from typing import Any, overload

from google.protobuf.message import Message
from msgspec import Struct

from nri_proto import nri_pb2
from nri_resmgr.stub import model
from nri_resmgr.stub.adjustment import ContainerAdjustment
from nri_resmgr.stub.read_plans import reader
from nri_resmgr.stub.reply_errors import BadField
from nri_resmgr.stub.update import ContainerUpdate
from nri_resmgr.stub.write_plans import UNWRITABLE, blame, fill, write


@overload
def from_message(message: nri_pb2.PodSandbox) -> model.Pod: ...
@overload
def from_message(message: nri_pb2.Container) -> model.Container: ...
@overload
def from_message(message: nri_pb2.LinuxResources) -> model.LinuxResources: ...
@overload
def from_message(message: nri_pb2.ContainerAdjustment) -> ContainerAdjustment: ...
@overload
def from_message(message: nri_pb2.ContainerUpdate) -> ContainerUpdate: ...
@overload
def from_message(message: nri_pb2.ContainerEviction) -> model.ContainerEviction: ...
@overload
def from_message(message: nri_pb2.OwningPlugins) -> model.OwningPlugins: ...
@overload
def from_message(message: nri_pb2.PluginInstance) -> model.PluginInstance: ...
@overload
def from_message(message: Message) -> Any: ...
def from_message(message: Message) -> Any:
    """Turn a message into the value that stands for it.

    All of it is read at once; the value keeps nothing of *message*. Maps of the value
    cannot be changed.

    Unknown fields are dropped, unknown numbers of enumerations stay plain ints.

    Raises:
        KeyError: No class stands for messages of this type (requests, replies).
    """
    return reader(message.DESCRIPTOR)(message)


@overload
def to_message(value: ContainerAdjustment) -> nri_pb2.ContainerAdjustment: ...
@overload
def to_message(value: ContainerUpdate) -> nri_pb2.ContainerUpdate: ...
@overload
def to_message(value: model.ContainerEviction) -> nri_pb2.ContainerEviction: ...
@overload
def to_message(value: model.Pod) -> nri_pb2.PodSandbox: ...
@overload
def to_message(value: model.Container) -> nri_pb2.Container: ...
@overload
def to_message(value: Struct) -> Any: ...
def to_message(value: Struct) -> Any:
    """Turn a value into its message.

    Raises:
        BadField: A number out of range, a wrong type, or text that is not UTF-8;
            Go's runtimes would refuse the whole message for the latter.
    """
    try:
        return write(value)
    except UNWRITABLE as error:
        raise _bad_field(value, error) from error


def write_to(message: Message, value: Struct) -> None:
    """Do as `to_message`, into an empty message that is part of another.

    Raises:
        BadField: As in `to_message`; what the message holds then is undefined.
    """
    try:
        fill(message, value)
    except UNWRITABLE as error:
        raise _bad_field(value, error) from error


def _bad_field(value: Struct, error: Exception) -> BadField:
    path, why = next(blame(value), ("", error))
    where = f"{type(value).__name__}.{path}" if path else type(value).__name__
    return BadField(where, str(why))
