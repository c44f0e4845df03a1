"""Plans for reading: one function per message type, made from its descriptor."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from sys import intern
from types import MappingProxyType
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message_factory import GetMessageClass

from nri_resmgr.stub.schema import (
    ENUMS,
    OF_THE_ENDED,
    RECURRING,
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
    if not any(_has_parts(field) for field in descriptor.fields):
        return _remembering(_eager_reader(descriptor))
    read = _lazy_reader(descriptor)
    if descriptor.name not in RECURRING:
        return read
    # Of a copy: a value that lives on must not keep the request that it came with.
    copy = GetMessageClass(descriptor).FromString
    return _remembering(lambda message: read(copy(message.SerializeToString())))


def _has_parts(field: FieldDescriptor) -> bool:
    kind = field.message_type
    return kind is not None and not field.is_repeated and not is_wrapper(kind)


def _has_presence(field: FieldDescriptor) -> bool:
    return field.message_type is not None and not field.is_repeated


def _lazy_reader(descriptor: Descriptor) -> Read:
    """Read plain fields at once, in one call, and the others on demand."""
    kind = VALUES[descriptor.name]
    plan = {attribute(field): _reader_from(field) for field in descriptor.fields}
    plain = [field for field in descriptor.fields if _is_plain(field)]
    if len(plain) < 2:  # noqa: PLR2004 - of one, attrgetter makes no tuple
        return lambda message: kind.reading(message, plan)
    # By their slots, past the class' own way, which refuses.
    puts = [getattr(kind, attribute(field)).__set__ for field in plain]
    get = attrgetter(*[field.name for field in plain])

    def read(message: Any) -> object:
        value = kind.reading(message, plan)
        for put, content in zip(puts, get(message), strict=True):
            put(value, content)
        return value

    return read


def _is_plain(field: FieldDescriptor) -> bool:
    if field.name in OF_THE_ENDED:
        return False
    return not _has_presence(field) and _field_reader(field) is None


def _eager_reader(descriptor: Descriptor) -> Read:
    """Read all fields at once."""
    build = VALUES[descriptor.name]
    reads = [_reader_from(field) for field in descriptor.fields]
    return lambda message: build(*[read(message) for read in reads])


def _reader_from(field: FieldDescriptor) -> Read:
    """Return the function that reads *field* from the message it is in."""
    name, read = field.name, _field_reader(field)
    get = attrgetter(name)
    if read is None:
        return get
    if _has_presence(field):
        return lambda message: read(get(message)) if message.HasField(name) else None
    return lambda message: read(get(message))


def _remembering(read: Read) -> Read:
    """Read what came a moment ago no second time.

    Most mounts of a container are those of every other. To write a message takes a
    fifth of the time that it takes to read its fields.
    """
    known: dict[bytes, object] = {}

    def read_once(message: Any) -> object:
        # In the same order each time: Go's runtimes send maps in random order.
        content = message.SerializeToString(deterministic=True)
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
