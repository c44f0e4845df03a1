"""Plans for writing: one function per value class, made from the descriptor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from operator import attrgetter
from typing import Any, Final, TypeGuard

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from msgspec import Struct
from msgspec.structs import astuple

from nri_resmgr.stub.model.contents import defaults_of, texts
from nri_resmgr.stub.schema import (
    SENT_AGAIN,
    VALUES,
    attribute,
    descriptor_of,
    is_map,
    is_wrapper,
)
from nri_resmgr.values.identity_cache import IdentityCache

# Parts of one type whose bytes are kept.
_KEPT: Final = 16

_KINDS: Final = frozenset(VALUES.values())

# Puts an attribute's content into a message.
Put = Callable[[Any, Any], None]

# What protobuf raises for a wrong type, a number out of range, text with surrogates.
UNWRITABLE: Final = (TypeError, ValueError, OverflowError)


class FieldPlan(Struct, frozen=True):
    """How the content of one attribute gets into a message."""

    attribute: str
    default: object
    put: Put


def write(value: Struct) -> Message:
    """Make a message of *value*; protobuf's own errors come out as they are."""
    message: Message = GetMessageClass(descriptor_of(_class_of(value)))()
    fill(message, value)
    return message


def fill(message: Message, value: Struct) -> None:
    """Put *value* into an empty message.

    In place, since upb merges a message that is given to a constructor, or to a list,
    by way of bytes.

    Raises:
        TypeError: *value* stands for another message.
    """
    expected, fields = _plan(message.DESCRIPTOR)
    if type(value) is not expected:
        raise TypeError(f"expected a value of {expected.__name__}, got {value!r}")
    for content, step in zip(astuple(value), fields, strict=True):
        default = step.default
        # Most fields hold the default itself, which is quicker to find out.
        if content is default or content is None:
            continue
        if default is None or content != default:
            step.put(message, content)


@cache
def _plan(descriptor: Descriptor) -> tuple[type[Struct], tuple[FieldPlan, ...]]:
    kind = VALUES[descriptor.name]
    fields = {attribute(field): field for field in descriptor.fields}
    steps = [
        FieldPlan(name, default, _put(fields[name]))
        for name, default in defaults_of(kind).items()
    ]
    return kind, tuple(steps)


def _class_of(value: object) -> type[Struct]:
    if not _is_value(value):
        raise TypeError(f"expected a value of the model, got {value!r}")
    return type(value)


def _is_value(value: object) -> TypeGuard[Struct]:
    return type(value) in _KINDS


def _put(field: FieldDescriptor) -> Put:
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
        return lambda message, items: _add_all(get(message), items)
    put = _putter(kind)
    return lambda message, content: _put_part(get(message), content, put)


def _putter(kind: Descriptor) -> Put:
    if is_wrapper(kind):
        return _put_wrapped(kind)
    if kind.name not in SENT_AGAIN:
        return fill
    known: IdentityCache[Struct, bytes] = IdentityCache(_serialized, _KEPT)
    return lambda part, content: part.MergeFromString(known(content))


def _serialized(value: Struct) -> bytes:
    return write(value).SerializeToString()


def _put_part(part: Message, content: Any, put: Put) -> None:
    part.SetInParent()  # present, whatever is in it
    put(part, content)


def _put_wrapped(wrapper: Descriptor) -> Put:
    if wrapper.fields_by_name["value"].is_repeated:
        return lambda message, items: message.value.extend(texts(items))
    return lambda message, content: setattr(message, "value", content)


def _add_all(parts: Any, items: Iterable[Struct]) -> None:
    for item in items:
        fill(parts.add(), item)


def _put_map(get: Callable[[Any], Any], entry: Descriptor) -> Put:
    if entry.fields_by_name["value"].message_type is None:
        return lambda message, entries: get(message).update(entries)
    return lambda message, entries: _fill_entries(get(message), entries)


def _fill_entries(parts: Any, entries: Mapping[Any, Struct]) -> None:
    for key, item in entries.items():
        fill(parts[key], item)


def blame(value: Struct) -> Iterator[tuple[str, Exception]]:
    """Find what in *value* cannot be written.

    Yields:
        The path of a bad field, as in ``env[3].value``, and what protobuf says.
    """
    descriptor = descriptor_of(_class_of(value))
    _, fields = _plan(descriptor)
    for step in fields:
        content = getattr(value, step.attribute)
        if content is None or content == step.default:
            continue
        try:
            step.put(GetMessageClass(descriptor)(), content)
        except UNWRITABLE as error:
            inner = list(_blame_parts(step.attribute, content))
            yield from inner or [(step.attribute, error)]


def _blame_parts(path: str, content: object) -> Iterator[tuple[str, Exception]]:
    for place, part in _parts(path, content):
        if _is_value(part):
            yield from ((f"{place}.{inner}", error) for inner, error in blame(part))


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
