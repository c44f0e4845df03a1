"""Every message of the schema survives the wire."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.internal import api_implementation
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given
from hypothesis import strategies as st

from nri_proto import nri_pb2
from nri_proto._gen import ttrpc_pb2
from tests.examples import examples
from tests.wire.spelled import field
from tests.wire.streams import texts

_SCALARS: dict[int, st.SearchStrategy[Any]] = {
    FieldDescriptor.CPPTYPE_INT32: st.integers(-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: st.integers(-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: st.integers(0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: st.integers(0, 2**64 - 1),
    FieldDescriptor.CPPTYPE_BOOL: st.booleans(),
    # Enumerations are open: numbers of the future are kept.
    FieldDescriptor.CPPTYPE_ENUM: st.integers(-1, 20),
}


def message_types() -> list[Descriptor]:
    found = [
        *nri_pb2.DESCRIPTOR.message_types_by_name.values(),
        *ttrpc_pb2.DESCRIPTOR.message_types_by_name.values(),
    ]
    for descriptor in found:
        found += [
            nested
            for nested in descriptor.nested_types
            if not nested.GetOptions().map_entry
        ]
    return found


def values(described: FieldDescriptor, depth: int) -> st.SearchStrategy[Any]:
    if described.message_type is not None:
        return messages(described.message_type, depth - 1)
    if described.type == FieldDescriptor.TYPE_BYTES:
        return st.binary(max_size=6)
    if described.type == FieldDescriptor.TYPE_STRING:
        return texts
    return _SCALARS[described.cpp_type]


@st.composite
def messages(draw: st.DrawFn, descriptor: Descriptor, depth: int = 2) -> Message:
    message = GetMessageClass(descriptor)()
    for described in draw(
        st.lists(st.sampled_from(list(descriptor.fields)), max_size=5)
    ):
        if described.message_type is not None and not depth:
            continue
        put(draw, message, described, depth)
    return message


def put(
    draw: st.DrawFn, message: Message, described: FieldDescriptor, depth: int
) -> None:
    held = getattr(message, described.name)
    inner = described.message_type
    if inner is not None and inner.GetOptions().map_entry:
        key = draw(values(inner.fields_by_name["key"], depth))
        value = draw(values(inner.fields_by_name["value"], depth))
        if inner.fields_by_name["value"].message_type is None:
            held[key] = value
        else:
            held[key].CopyFrom(value)
    elif described.is_repeated:
        held.extend(draw(st.lists(values(described, depth), max_size=2)))
    elif inner is not None:
        held.CopyFrom(draw(values(described, depth)))
        held.SetInParent()  # an empty sub-message is there, too
    else:
        setattr(message, described.name, draw(values(described, depth)))


def test_the_parser_is_the_fast_one() -> None:
    assert api_implementation.Type() == "upb"


@pytest.mark.parametrize(
    "descriptor", message_types(), ids=lambda found: found.full_name
)
@examples(0.2)
@given(data=st.data())
def test_messages_round_trip(descriptor: Descriptor, data: st.DataObject) -> None:
    if not descriptor.fields:
        assert GetMessageClass(descriptor)().SerializeToString() == b""
        return
    message = data.draw(messages(descriptor))
    written = message.SerializeToString(deterministic=True)

    again = GetMessageClass(descriptor).FromString(written)

    assert again == message
    assert again.SerializeToString(deterministic=True) == written


@pytest.mark.parametrize(
    "descriptor", message_types(), ids=lambda found: found.full_name
)
def test_fields_of_the_future_are_passed_over(descriptor: Descriptor) -> None:
    future = field(1000, -1) + field(1001, b"\xff")

    message = GetMessageClass(descriptor).FromString(future)

    assert message.ListFields() == []
    assert message.SerializeToString() == future
