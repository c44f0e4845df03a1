"""Strategies for the stub's values, read off the schema so that none is forgotten."""

from __future__ import annotations

from functools import cache
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from hypothesis import strategies as st
from msgspec import Struct

from nri_proto import nri_pb2
from nri_resmgr.stub.schema import ENUMS, VALUES, attribute

_RANGES = {
    FieldDescriptor.TYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.TYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.TYPE_UINT64: (0, 2**64 - 1),
}
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)


def any_value() -> st.SearchStrategy[Struct]:
    """Values of every class that stands for a message."""
    return st.sampled_from(sorted(VALUES)).flatmap(values_of)


@cache
def values_of(message: str) -> st.SearchStrategy[Any]:
    """Values that stand for *message*, each field at its default as often as not."""
    descriptor = nri_pb2.DESCRIPTOR.message_types_by_name[message]
    fields = {attribute(field): _contents(field) for field in descriptor.fields}
    return st.fixed_dictionaries({}, optional=fields).map(
        lambda chosen: VALUES[message](**chosen)
    )


def _contents(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    kind = field.message_type
    if kind is not None and kind.GetOptions().map_entry:
        key, value = kind.fields
        return st.dictionaries(_one(key), _one(value), max_size=2)
    if field.is_repeated:
        return st.lists(_one(field), max_size=2).map(tuple)
    return st.none() | _one(field) if kind is not None else _one(field)


def _one(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    if field.message_type is not None:
        return _message(field.message_type)
    if field.enum_type is not None:
        known = st.sampled_from(ENUMS[field.enum_type.name])
        return known | st.integers(100, 2**31 - 1)
    if field.type == FieldDescriptor.TYPE_BOOL:
        return st.booleans()
    if field.type == FieldDescriptor.TYPE_STRING:
        return TEXTS
    return st.integers(*_RANGES[field.type])


def _message(kind: Descriptor) -> st.SearchStrategy[Any]:
    if not kind.name.startswith("Optional"):
        return values_of(kind.name)
    return _contents(kind.fields_by_name["value"])
