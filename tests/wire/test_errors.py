"""Whose fault an error is, what it says, and the numbers of the codes."""

from __future__ import annotations

import grpc
import pytest

from nri_proto import (
    Code,
    LocalProtocolError,
    MessageTooLarge,
    ProtocolError,
    RemoteProtocolError,
    StreamIdsExhausted,
    StreamNotOpen,
    TrunkFrameTooLarge,
)


def test_codes_are_those_of_grpc() -> None:
    assert {code.name: code.value for code in Code} == {
        code.name: code.value[0] for code in grpc.StatusCode
    }


@pytest.mark.parametrize(
    ("error", "branch", "text"),
    [
        pytest.param(
            MessageTooLarge(5, 4),
            LocalProtocolError,
            "message of 5 bytes exceeds the limit of 4",
            id="a message too large is ours",
        ),
        pytest.param(
            StreamNotOpen(7),
            LocalProtocolError,
            "stream 7 has no open call",
            id="a reply without a call is our error",
        ),
        pytest.param(
            StreamIdsExhausted(),
            LocalProtocolError,
            "no stream id is left: open a new connection",
            id="too many calls are ours",
        ),
        pytest.param(
            TrunkFrameTooLarge(1, 5, 4),
            RemoteProtocolError,
            "multiplexer frame of 5 bytes on connection 1 exceeds the limit of 4",
            id="a trunk frame too large is the peer's",
        ),
    ],
)
def test_errors_name_the_side_at_fault_and_the_reason(
    error: ProtocolError, branch: type[ProtocolError], text: str
) -> None:
    assert [
        side
        for side in (LocalProtocolError, RemoteProtocolError)
        if isinstance(error, side)
    ] == [branch]
    assert str(error) == text
