"""Conversion between protobuf messages and frozen values.

`from_message` reads a message with a function that is made once for each message type
from its descriptor; `to_message` and `write_to` write with a list of steps made once
for each class. `nri_resmgr.stub.schema` says which class stands for which message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeGuard, overload

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from msgspec import Struct
from msgspec.structs import astuple

from nri_proto import nri_pb2
from nri_resmgr.stub import model
from nri_resmgr.stub.adjustment import ContainerAdjustment
from nri_resmgr.stub.contents import EMPTY, defaults_of, texts
from nri_resmgr.stub.errors import BadField
from nri_resmgr.stub.schema import (
    ENUMS,
    SENT_AGAIN,
    VALUES,
    attribute,
    descriptor_of,
    is_map,
    is_wrapper,
)
from nri_resmgr.stub.update import ContainerUpdate
from nri_resmgr.values.identity_cache import IdentityCache

# The content of a field is one of many types, known from the descriptor only: Any.
_Read: TypeAlias = Callable[[Any], Any]
_Put: TypeAlias = Callable[[Any, Any], None]

# Messages with fewer fields tend to have all of them, such as mounts: reading each is
# then faster than listing those that are present.
_MANY_FIELDS: Final = 5

# Parts of one type of which the bytes are kept.
_KEPT: Final = 16

# Pods have a few dozen labels and annotations.
LARGE_MAP: Final = 256
"""Entries of a map that is read when it is looked at."""

_CLASSES: Final = frozenset(VALUES.values())

# What protobuf raises for a wrong type, a number out of range, text with surrogates.
_UNWRITABLE: Final = (TypeError, ValueError, OverflowError)


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
def from_message(message: Message) -> Struct: ...
def from_message(message: Message) -> Struct:
    """Convert a message to the value that stands for it.

    The value keeps no reference to *message*, unless there is a map of more than
    `LARGE_MAP` entries in it (see `LargeMap`). Maps are read-only. Unknown fields
    are dropped, unknown numbers of enumerations stay plain ints.

    Raises:
        KeyError: No class stands for messages of this type (requests, replies).
    """
    value: Struct = _reader(message.DESCRIPTOR)(message)
    return value


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
def to_message(value: model.LinuxResources) -> nri_pb2.LinuxResources: ...
@overload
def to_message(value: Struct) -> Message: ...
def to_message(value: Struct) -> Message:
    """Convert a value to its message.

    Raises:
        BadField: A number out of range, a wrong type, or text that is not UTF-8;
            Go's runtimes would refuse the whole message for the last.
    """
    try:
        return _write(value)
    except _UNWRITABLE as error:
        raise _bad_field(value, error) from error


def write_to(message: Message, value: Struct) -> None:
    """Write a value into an empty message that is part of another.

    Raises:
        BadField: As in `to_message`; the content of *message* is undefined then.
    """
    try:
        _fill(message, value)
    except _UNWRITABLE as error:
        raise _bad_field(value, error) from error


def _bad_field(value: Struct, error: Exception) -> BadField:
    path, why = next(_unwritable_fields(value), ("", error))
    where = f"{type(value).__name__}.{path}" if path else type(value).__name__
    return BadField(where, str(why))


@cache
def _reader(descriptor: Descriptor) -> _Read:
    """Return the function that reads messages of one type."""
    kind = VALUES[descriptor.name]
    by_name = {attribute(field): field for field in descriptor.fields}
    fields = [by_name[name] for name in kind.__struct_fields__]
    if len(fields) < _MANY_FIELDS and not any(map(_is_part, fields)):
        return _dense_reader(fields, kind)
    return _sparse_reader(fields, kind)


def _dense_reader(fields: list[FieldDescriptor], kind: Callable[..., object]) -> _Read:
    """Return a function that reads all fields in one call."""
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


def _sparse_reader(fields: list[FieldDescriptor], kind: type[Struct]) -> _Read:
    """Return a function that reads the fields that are present.

    upb lists those faster than it reads all fields.
    """
    absent = list(defaults_of(kind).values())
    build: Callable[..., object] = kind
    # Descriptors are keys: there is one object for each field.
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


def _field_reader(field: FieldDescriptor) -> _Read | None:
    """Return what converts the content of *field*; None if it stays as it is."""
    if (kind := field.message_type) is not None and is_map(kind):
        return _map_reader(kind)
    one = _item_reader(field)
    if not field.is_repeated:
        return one
    # A slice, since upb copies it at once: its iterators take twice as long.
    if one is None:
        return lambda items: tuple(items[:])
    return lambda items: tuple(map(one, items[:]))


def _item_reader(field: FieldDescriptor) -> _Read | None:
    if (kind := field.message_type) is not None:
        return _wrapper_reader(kind) if is_wrapper(kind) else _reader(kind)
    if field.enum_type is not None:
        numbers = {int(member): member for member in ENUMS[field.enum_type.name]}
        return lambda number: numbers.get(number, number)
    return None


def _wrapper_reader(descriptor: Descriptor) -> _Read:
    if descriptor.fields_by_name["value"].is_repeated:
        return lambda wrapper: tuple(wrapper.value[:])
    return attrgetter("value")


def _map_reader(entry: Descriptor) -> _Read:
    one = _item_reader(entry.fields_by_name["value"])

    # A comprehension: `dict` and `items` of upb's maps take twice as long.
    def read(entries: Any) -> object:
        if not entries:
            return EMPTY
        if len(entries) > LARGE_MAP:
            return LargeMap(entries, one)
        if one is None:
            return MappingProxyType({key: entries[key] for key in entries})
        return MappingProxyType({key: one(entries[key]) for key in entries})

    return read


class LargeMap(Mapping[str, Any]):
    """A map of a message, of which each entry is read when it is looked up.

    A pod may have a megabyte of labels, of which a plugin uses a few. This keeps the
    message in memory instead of a Python object for each text.
    """

    __slots__ = ("_entries", "_read")

    def __init__(self, entries: Any, read: _Read | None) -> None:
        self._entries, self._read = entries, read

    def __getitem__(self, key: str) -> Any:
        # upb's maps add what is missing when it is looked up.
        if key not in self._entries:
            raise KeyError(key)
        content = self._entries[key]
        return content if self._read is None else self._read(content)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return repr(dict(self))


class _FieldWriter(Struct, frozen=True):
    """Writes the content of one attribute into a message."""

    attribute: str
    default: object
    put: _Put


def _write(value: Struct) -> Message:
    """Convert *value*; raises protobuf's own errors."""
    message: Message = GetMessageClass(descriptor_of(_class_of(value)))()
    _fill(message, value)
    return message


def _fill(message: Message, value: Struct) -> None:
    """Write *value* into an empty message.

    In place, because upb serializes a message that is given to a constructor or
    appended to a list.

    Raises:
        TypeError: *value* stands for another type of message.
    """
    expected, fields = _writers(message.DESCRIPTOR)
    if type(value) is not expected:
        raise TypeError(f"expected a value of {expected.__name__}, got {value!r}")
    for content, field in zip(astuple(value), fields, strict=True):
        default = field.default
        # Most fields hold the default object itself: identity is faster than ==.
        if content is default or content is None:
            continue
        if default is None or content != default:
            field.put(message, content)


@cache
def _writers(descriptor: Descriptor) -> tuple[type[Struct], tuple[_FieldWriter, ...]]:
    kind = VALUES[descriptor.name]
    fields = {attribute(field): field for field in descriptor.fields}
    writers = [
        _FieldWriter(name, default, _put(fields[name]))
        for name, default in defaults_of(kind).items()
    ]
    return kind, tuple(writers)


def _class_of(value: object) -> type[Struct]:
    if not _is_value(value):
        raise TypeError(f"expected a value of the model, got {value!r}")
    return type(value)


def _is_value(value: object) -> TypeGuard[Struct]:
    return type(value) in _CLASSES


def _put(field: FieldDescriptor) -> _Put:
    name, kind = field.name, field.message_type
    get = attrgetter(name)
    if kind is None:
        if field.type == FieldDescriptor.TYPE_STRING and field.is_repeated:
            return lambda message, items: get(message).extend(texts(items))
        if field.is_repeated:
            return lambda message, items: get(message).extend(items)
        return lambda message, content: setattr(message, name, content)
    if is_map(kind):
        return _put_map(get, kind)
    if field.is_repeated:
        return _put_items(get)
    return _put_part(get, _putter(kind))


def _putter(kind: Descriptor) -> _Put:
    if is_wrapper(kind):
        return _put_wrapped(kind)
    if kind.name not in SENT_AGAIN:
        return _fill
    known: IdentityCache[Struct, bytes] = IdentityCache(
        lambda part: _write(part).SerializeToString(), _KEPT
    )
    return lambda part, content: part.MergeFromString(known(content))


def _put_part(get: Callable[[Any], Any], put: _Put) -> _Put:
    def put_one(message: Any, content: Any) -> None:
        part = get(message)
        part.SetInParent()  # present, also if it is empty
        put(part, content)

    return put_one


def _put_wrapped(wrapper: Descriptor) -> _Put:
    if wrapper.fields_by_name["value"].is_repeated:
        return lambda message, items: message.value.extend(texts(items))
    return lambda message, content: setattr(message, "value", content)


def _put_items(get: Callable[[Any], Any]) -> _Put:
    def put_all(message: Any, items: Iterable[Struct]) -> None:
        parts = get(message)
        for item in items:
            _fill(parts.add(), item)

    return put_all


def _put_map(get: Callable[[Any], Any], entry: Descriptor) -> _Put:
    if entry.fields_by_name["value"].message_type is None:
        return lambda message, entries: get(message).update(entries)
    return lambda message, entries: _fill_entries(get(message), entries)


def _fill_entries(parts: Any, entries: Mapping[Any, Struct]) -> None:
    for key, item in entries.items():
        _fill(parts[key], item)


def _unwritable_fields(value: Struct) -> Iterator[tuple[str, Exception]]:
    """Find the fields of *value* that cannot be written.

    Yields:
        The path of a field, such as ``env[3].value``, and protobuf's error.
    """
    descriptor = descriptor_of(_class_of(value))
    _, fields = _writers(descriptor)
    for field in fields:
        content = getattr(value, field.attribute)
        if content is None or content == field.default:
            continue
        try:
            field.put(GetMessageClass(descriptor)(), content)
        except _UNWRITABLE as error:
            inner = list(_unwritable_parts(field.attribute, content))
            yield from inner or [(field.attribute, error)]


def _unwritable_parts(path: str, content: object) -> Iterator[tuple[str, Exception]]:
    for place, part in _parts(path, content):
        if _is_value(part):
            for inner, error in _unwritable_fields(part):
                yield f"{place}.{inner}", error


def _parts(path: str, content: object) -> Iterator[tuple[str, object]]:
    match content:
        case tuple() | list():
            for index, item in enumerate(content):
                yield f"{path}[{index}]", item
        case Mapping():
            for key, item in content.items():
                yield f"{path}[{key!r}]", item
        case _:
            yield path, content
