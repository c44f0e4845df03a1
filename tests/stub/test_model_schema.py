"""Each field and number of the schema has its place in the values."""

from __future__ import annotations

import pytest
from google.protobuf.descriptor import Descriptor, EnumDescriptor

from nri_proto import nri_pb2
from nri_resmgr.stub.model import AdjustedField
from nri_resmgr.stub.schema import ENUMS, VALUES, attribute

MESSAGES = nri_pb2.DESCRIPTOR.message_types_by_name

# Messages that no value stands for, by what they are.
NOT_VALUES = {
    "the session's": ("Request", "Response", "StateChangeEvent", "Empty"),
    "an absent or present plain value": ("Optional",),
}


def enum_descriptors() -> dict[str, EnumDescriptor]:
    nested = {
        enum.name: enum for message in MESSAGES.values() for enum in message.enum_types
    }
    return dict(nri_pb2.DESCRIPTOR.enum_types_by_name) | nested


def test_each_message_is_a_value_or_known_not_to_be_one() -> None:
    marks = [mark for marks in NOT_VALUES.values() for mark in marks]
    left = [name for name in MESSAGES if not any(mark in name for mark in marks)]

    assert sorted(left) == sorted(VALUES)


@pytest.mark.parametrize("message", [MESSAGES[name] for name in VALUES])
def test_attributes_are_the_fields_in_the_order_of_the_schema(
    message: Descriptor,
) -> None:
    names = VALUES[message.name].__struct_fields__

    assert list(names) == [attribute(field) for field in message.fields]


@pytest.mark.parametrize("name", ENUMS)
def test_members_are_the_schema_s_without_a_prefix(name: str) -> None:
    numbers = {number.number: number.name for number in enum_descriptors()[name].values}
    members = {int(member): member.name for member in ENUMS[name]}

    assert members.keys() == numbers.keys()
    assert all(full.endswith(members[number]) for number, full in numbers.items())


def test_adjusted_fields_have_the_numbers_of_the_schema() -> None:
    schema = {v.name.lower(): v.number for v in enum_descriptors()["Field"].values}

    assert {m.name.replace("_", "").lower(): int(m) for m in AdjustedField} == schema


def test_enumerations_left_out_belong_to_the_session() -> None:
    left = enum_descriptors().keys() - ENUMS.keys() - {"Field"}

    assert left == {"Event", "Level"}
