"""Plans for reading: one function per message type, made from its descriptor."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from operator import attrgetter
from sys import intern
from types import MappingProxyType
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from nri_resmgr.stub.schema import (
    ENUMS,
    REPEATING,
    VALUES,
    attribute,
    is_map,
    is_wrapper,
)

Read = Callable[[Any], Any]

# How many values of one kind are remembered for sharing. Few pods: events of one pod
# come close together. No containers: their state and times differ in each event.
_SHARED_OF_A_KIND: Final = 256
SHARED: Final = MappingProxyType({"PodSandbox": 64, "Container": 0})
# Bytes; a seccomp profile of the usual kind fits in, a pod with a huge annotation is
# not worth its memory.
_LARGEST_SHARED: Final = 16 << 10


@cache
def reader(descriptor: Descriptor) -> Read:
    """Return the function that reads messages of one type.

    Equal messages get one value, which saves most of the time and memory: containers
    have most mounts, namespaces and resources in common, and a pod comes along with
    each event of its containers. Bytes of equal maps may differ; that costs a second
    copy, nothing else.

    Raises:
        KeyError: No class stands for such messages.
    """
    read = _reader(descriptor)
    if (kept := SHARED.get(descriptor.name, _SHARED_OF_A_KIND)) == 0:
        return read
    parse = GetMessageClass(descriptor).FromString
    recall = lru_cache(kept)(lambda data: read(parse(data)))

    def share(message: Message) -> object:
        data = message.SerializeToString()
        return recall(data) if len(data) <= _LARGEST_SHARED else read(message)

    return share


def _reader(descriptor: Descriptor) -> Read:
    if any(_has_presence(field) for field in descriptor.fields):
        return _sparse_reader(descriptor)
    return _plain_reader(descriptor)


def _has_presence(field: FieldDescriptor) -> bool:
    return field.message_type is not None and not field.is_repeated


def _sparse_reader(descriptor: Descriptor) -> Read:
    """Read what is set; most of a large message is not."""
    build = VALUES[descriptor.name]
    plan = {
        field.number: (attribute(field), _field_reader(field))
        for field in descriptor.fields
    }

    def read(message: Message) -> object:
        values = {}
        for field, value in message.ListFields():
            name, read_field = plan[field.number]
            values[name] = value if read_field is None else read_field(value)
        return build(**values)

    return read


def _plain_reader(descriptor: Descriptor) -> Read:
    """Read all fields in one call; worth it where most are set, as in a mount."""
    build = VALUES[descriptor.name]
    # The extra name is unused; with one alone attrgetter returns no tuple.
    names = [field.name for field in descriptor.fields]
    get = attrgetter(*names, names[0])
    fixes = [
        (index, read_field)
        for index, field in enumerate(descriptor.fields)
        if (read_field := _field_reader(field)) is not None
    ]

    def read(message: Message) -> object:
        values = list(get(message))
        values.pop()
        for index, read_field in fixes:
            values[index] = read_field(values[index])
        return build(*values)

    return read


def _field_reader(field: FieldDescriptor) -> Read | None:
    """Return how the content of *field* is read, None for "as it is"."""
    if (kind := field.message_type) is not None and is_map(kind):
        return _map_reader(kind)
    one = _item_reader(field)
    if not field.is_repeated:
        return one
    # Slices: upb copies them at once, its iterators take twice as long.
    if one is None:
        return lambda items: tuple(items[:])
    return lambda items: tuple(map(one, items[:]))


def _item_reader(field: FieldDescriptor) -> Read | None:
    if (kind := field.message_type) is not None:
        return _wrapper_reader(kind) if is_wrapper(kind) else reader(kind)
    if field.enum_type is not None:
        numbers = {int(member): member for member in ENUMS[field.enum_type.name]}
        return lambda number: numbers.get(number, number)
    return intern if field.name in REPEATING else None


def _wrapper_reader(descriptor: Descriptor) -> Read:
    if descriptor.fields_by_name["value"].is_repeated:
        return lambda wrapper: tuple(wrapper.value[:])
    return attrgetter("value")


def _map_reader(entry: Descriptor) -> Read:
    one = _item_reader(entry.fields_by_name["value"])
    if one is not None:
        return lambda entries: MappingProxyType(
            {key: one(entries[key]) for key in entries}
        )
    if entry.fields_by_name["key"].type != FieldDescriptor.TYPE_STRING:
        return lambda entries: MappingProxyType({key: entries[key] for key in entries})
    return lambda entries: MappingProxyType(
        {intern(key): entries[key] for key in entries}
    )
