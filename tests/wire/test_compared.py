"""The wire's values are compared by all their fields."""

from __future__ import annotations

import pytest

from nri_proto import CallReply
from nri_proto.client import Stray
from nri_proto.frames import Frame

REPLY = CallReply(1, 0, "fine", b"payload")


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(CallReply(3, 0, "fine", b"payload"), id="another stream"),
        pytest.param(CallReply(1, 0, "fine"), id="another last field"),
        pytest.param(Stray(1), id="another class"),
        pytest.param((1, 0, "fine", b"payload"), id="a tuple"),
    ],
)
def test_a_reply_differs_from(other: object) -> None:
    assert other != REPLY


def test_equal_values_are_one_in_a_set() -> None:
    assert {REPLY, CallReply(1, 0, "fine", b"payload")} == {REPLY}


def test_a_value_prints_its_fields() -> None:
    assert repr(Stray(5)) == "Stray(stream_id=5)"
    assert repr(Frame(1, 2, None, 3)) == "Frame(stream_id=1, type=2, data=None, size=3)"
