"""Nothing is lost between values, messages and bytes."""

from __future__ import annotations

from typing import Any

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from hypothesis import given
from msgspec import Struct

from nri_resmgr.stub.convert import from_message, to_message
from tests.examples import examples
from tests.strategies_model import any_value


@given(any_value())
def test_a_value_survives_its_message(value: Struct) -> None:
    assert from_message(to_message(value)) == value


@given(any_value())
def test_a_value_survives_the_wire(value: Struct) -> None:
    message: Message = to_message(value)

    again = type(message).FromString(message.SerializeToString())

    assert from_message(again) == value


@given(any_value())
def test_equal_values_read_from_messages_share_their_repr(value: Struct) -> None:
    message: Message = to_message(value)
    one: Any = from_message(message)
    two: Any = from_message(message)

    assert repr(one) == repr(two)


@given(any_value())
@examples(0.5)
def test_a_message_made_of_what_it_prints_is_the_same_message(value: Struct) -> None:
    message: Message = to_message(value)
    printed = MessageToDict(message, preserving_proto_field_name=True)

    assert sorted(printed) == sorted(field.name for field, _ in message.ListFields())
