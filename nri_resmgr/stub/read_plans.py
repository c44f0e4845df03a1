"""Plans for reading: one function per message type, made from its descriptor."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from sys import intern
from types import MappingProxyType
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from nri_resmgr.stub.schema import (
    ENUMS,
    REPEATING,
    VALUES,
    attribute,
    is_map,
    is_wrapper,
)

Read = Callable[[Any], Any]

# Messages of one type. A container has a dozen mounts, half of them of its own.
_REMEMBERED: Final = 128


@cache
def reader(descriptor: Descriptor) -> Read:
    """Return the function that reads messages of one type.

    Messages with other messages in them are read on demand, field by field; small
    ones at once. The message belongs to the value from then on.

    Raises:
        KeyError: No class stands for such messages.
    """
    if any(_has_presence(field) for field in descriptor.fields):
        return _lazy_reader(descriptor)
    return _remembering(_eager_reader(descriptor))


def _has_presence(field: FieldDescriptor) -> bool:
    return field.message_type is not None and not field.is_repeated


def _lazy_reader(descriptor: Descriptor) -> Read:
    build = VALUES[descriptor.name].reading
    plan = {attribute(field): _reader_from(field) for field in descriptor.fields}
    return lambda message: build(message, plan)


def _reader_from(field: FieldDescriptor) -> Read:
    """Return the function that reads *field* from the message it is in."""
    name, read = field.name, _field_reader(field)
    get = attrgetter(name)
    if read is None:
        return get
    if _has_presence(field):
        return lambda message: read(get(message)) if message.HasField(name) else None
    return lambda message: read(get(message))


def _eager_reader(descriptor: Descriptor) -> Read:
    """Read all fields in one call."""
    build = VALUES[descriptor.name]
    # The extra name is unused; with one alone attrgetter returns no tuple.
    names = [field.name for field in descriptor.fields]
    get = attrgetter(*names, names[0])
    fixes = [
        (index, read_field)
        for index, field in enumerate(descriptor.fields)
        if (read_field := _field_reader(field)) is not None
    ]

    def read(message: Any) -> object:
        values = list(get(message))
        values.pop()
        for index, read_field in fixes:
            values[index] = read_field(values[index])
        return build(*values)

    return read


def _remembering(read: Read) -> Read:
    """Read what came a moment ago no second time.

    Most mounts of a container are those of every other. To write a message takes a
    fifth of the time that it takes to read its fields.
    """
    known: dict[bytes, object] = {}

    def read_once(message: Any) -> object:
        content = message.SerializeToString()
        if (value := known.get(content)) is None:
            if len(known) >= _REMEMBERED:
                known.clear()
            value = known[content] = read(message)
        return value

    return read_once


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
