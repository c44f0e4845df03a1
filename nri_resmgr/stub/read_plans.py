"""Plans for reading: one function per message type, made from its descriptor."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from msgspec import Struct

from nri_resmgr.stub.model.contents import EMPTY, defaults_of
from nri_resmgr.stub.schema import ENUMS, VALUES, attribute, is_map, is_wrapper

Read = Callable[[Any], Any]

# Fields from which on it pays to ask which are present. Smaller messages tend to be
# full, such as mounts.
_MANY: Final = 5


@cache
def reader(descriptor: Descriptor) -> Read:
    """Return the function that reads messages of one type, at once and whole.

    Raises:
        KeyError: No class stands for such messages.
    """
    kind = VALUES[descriptor.name]
    by_name = {attribute(field): field for field in descriptor.fields}
    fields = [by_name[name] for name in kind.__struct_fields__]
    if len(fields) < _MANY and not any(map(_is_part, fields)):
        return _dense_reader(fields, kind)
    return _sparse_reader(fields, kind)


def _dense_reader(fields: list[FieldDescriptor], kind: Callable[..., object]) -> Read:
    """Read all fields in one call."""
    reads = [_field_reader(field) for field in fields]
    get = _getter(fields)
    if not any(reads):
        return lambda message: kind(*get(message))
    converted = [(at, read) for at, read in enumerate(reads) if read is not None]

    def read(message: Any) -> object:
        contents = [*get(message)]
        for at, read_one in converted:
            contents[at] = read_one(contents[at])
        return kind(*contents)

    return read


def _getter(fields: list[FieldDescriptor]) -> Callable[[Any], tuple[Any, ...]]:
    get = attrgetter(*[field.name for field in fields])
    if len(fields) > 1:
        return get
    return lambda message: (get(message),)  # attrgetter makes no tuple of one


def _sparse_reader(fields: list[FieldDescriptor], kind: type[Struct]) -> Read:
    """Read the fields that are present; upb lists them faster than it looks at all."""
    absent = list(defaults_of(kind).values())
    build: Callable[..., object] = kind
    # By the descriptors themselves, of which there is one object each.
    plan = {field: (at, _field_reader(field)) for at, field in enumerate(fields)}

    def read(message: Any) -> object:
        contents = absent.copy()
        for field, content in message.ListFields():
            at, read_one = plan[field]
            contents[at] = content if read_one is None else read_one(content)
        return build(*contents)

    return read


def _is_part(field: FieldDescriptor) -> bool:
    return field.message_type is not None and not field.is_repeated


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
    return None


def _wrapper_reader(descriptor: Descriptor) -> Read:
    if descriptor.fields_by_name["value"].is_repeated:
        return lambda wrapper: tuple(wrapper.value[:])
    return attrgetter("value")


def _map_reader(entry: Descriptor) -> Read:
    one = _item_reader(entry.fields_by_name["value"])

    # Comprehensions: `dict` and `items` of upb's maps take twice as long.
    def read(entries: Any) -> object:
        if not entries:
            return EMPTY
        if one is None:
            return MappingProxyType({key: entries[key] for key in entries})
        return MappingProxyType({key: one(entries[key]) for key in entries})

    return read
