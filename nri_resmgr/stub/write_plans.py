"""Plans for writing: one function per value class, made from the descriptor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Final

import attrs
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from nri_resmgr.stub.model.frozen import Value
from nri_resmgr.stub.schema import attribute, descriptor_of, is_map, is_wrapper
from nri_resmgr.values.by_content import ByContent
from nri_resmgr.values.declared import frozen

Write = Callable[[Any], Any]

# What protobuf raises for a wrong type, a number out of range, text with surrogates.
UNWRITABLE: Final = (TypeError, ValueError, OverflowError)


@frozen
class FieldPlan(ByContent):
    """How the content of one attribute gets into one field of a message."""

    attribute: str
    field: str
    default: object
    write: Write | None


def write(value: Value) -> Message:
    """Fill a message from *value*; protobuf's own errors come out as they are.

    Protobuf also finds a value that stands for another message than the field's.
    """
    if not isinstance(value, Value):
        raise TypeError(f"expected a value of the model, got {value!r}")
    message, fields = _plan(_class_of(value))
    return message(
        **{
            step.field: content if step.write is None else step.write(content)
            for step in fields
            # Most fields hold the default itself, which is quicker to find out.
            if (content := getattr(value, step.attribute)) is not step.default
            and content != step.default
        }
    )


@cache
def _plan(kind: Any) -> tuple[type[Message], tuple[FieldPlan, ...]]:
    descriptor = descriptor_of(kind)
    defaults = {field.name: field.default for field in attrs.fields(kind)}
    fields = (
        FieldPlan(name, field.name, defaults[name], _field_writer(field))
        for field in descriptor.fields
        for name in [attribute(field)]
    )
    return GetMessageClass(descriptor), tuple(fields)


def _class_of(value: Value) -> Any:
    # Any: mypy takes the class for one of its instances where it has to be hashable.
    return type(value)


def _field_writer(field: FieldDescriptor) -> Write | None:
    kind = field.message_type
    if kind is None:
        return None
    if is_map(kind):
        return _map_writer(kind)
    if is_wrapper(kind):
        wrapper = GetMessageClass(kind)
        return lambda content: wrapper(value=content)
    return (lambda items: [*map(write, items)]) if field.is_repeated else write


def _map_writer(entry: Descriptor) -> Write:
    if entry.fields_by_name["value"].message_type is None:
        return dict
    return lambda entries: {key: write(value) for key, value in entries.items()}


def blame(value: Value) -> Iterator[tuple[str, Exception]]:
    """Find what in *value* cannot be written.

    Yields:
        The path of a bad field, as in ``env[3].value``, and what protobuf says.
    """
    message, fields = _plan(_class_of(value))
    for step in fields:
        content = getattr(value, step.attribute)
        if content == step.default:
            continue
        try:
            message(**{step.field: step.write(content) if step.write else content})
        except UNWRITABLE as error:
            inner = list(_blame_parts(step.attribute, content))
            yield from inner or [(step.attribute, error)]


def _blame_parts(path: str, content: object) -> Iterator[tuple[str, Exception]]:
    for place, part in _parts(path, content):
        if isinstance(part, Value):
            yield from ((f"{place}.{inner}", error) for inner, error in blame(part))


def _parts(path: str, content: object) -> Iterator[tuple[str, object]]:
    match content:
        case tuple():
            for index, item in enumerate(content):
                yield f"{path}[{index}]", item
        case Mapping():
            for key, item in content.items():
                yield f"{path}[{key!r}]", item
        case _:
            yield path, content
