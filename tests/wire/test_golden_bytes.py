"""Bytes captured between the Go runtime side and a plugin named "py", index "10"."""

from __future__ import annotations

import pytest

from nri_proto import (
    PLUGIN_METHODS,
    RUNTIME_METHODS,
    Call,
    CallReply,
    Trunk,
    nri_pb2,
)
from tests.wire.spelled import PLUGIN_SERVICE, RUNTIME_SERVICE


def spelled(*parts: str | bytes) -> bytes:
    """Join hexadecimal digits and literal text."""
    return b"".join(
        part if isinstance(part, bytes) else bytes.fromhex(part) for part in parts
    )


PLUGIN = PLUGIN_SERVICE.encode()
RUNTIME = RUNTIME_SERVICE.encode()

REGISTER = spelled(
    "00000002 00000042",
    "00000038 00000001 01 00",
    "0a 1c", RUNTIME, "12 0e", b"RegisterPlugin",
    "1a 08", "0a 02", b"py", "12 02", b"10",
)  # fmt: skip
REGISTERED = spelled("00000002 0000000a", "00000000 00000001 02 00")

# As captured; the capture leaves the value of timeout_nano open, so ours is the
# typical 1.9997 s, whose varint has five bytes: 0x63 and 0x59 hold for any such.
CONFIGURE = spelled(
    "00000001 00000063",
    "00000059 00000001 01 00",
    "0a 1b", PLUGIN, "12 09", b"Configure",
    "1a 29",
    "12 0a", b"containerd", "1a 06", b"v2.2.1", "20 88 27", "28 d0 0f",
    "32 0d", b"0.0.0-unknown",
    "20 a0 80 c4 b9 07",
)  # fmt: skip
CONFIGURED = spelled(
    "00000001 0000000f", "00000005 00000001 02 00", "12 03", "10 ff 7f"
)
SYNCHRONIZED = spelled("00000001 0000000a", "00000000 00000003 02 00")
BOOM = spelled(
    "00000001 00000014", "0000000a 00000005 02 00", "0a 08", "08 02", "12 04", b"boom"
)


def configure_request() -> nri_pb2.ConfigureRequest:
    return nri_pb2.ConfigureRequest(
        runtime_name="containerd",
        runtime_version="v2.2.1",
        registration_timeout=5000,
        request_timeout=2000,
        NRI_version="0.0.0-unknown",
    )


def ask_until(trunk: Trunk, stream_id: int) -> bytes:
    """Let the runtime's end call until that stream id is used; its last bytes."""
    asked, sent = trunk.call(PLUGIN_METHODS["Synchronize"], b"")
    while asked < stream_id:
        asked, sent = trunk.call(PLUGIN_METHODS["Synchronize"], b"")
    return sent


def test_the_plugin_registers() -> None:
    message = nri_pb2.RegisterPluginRequest(plugin_name="py", plugin_idx="10")

    sent = Trunk.of_plugin().call(
        RUNTIME_METHODS["RegisterPlugin"], message.SerializeToString()
    )

    assert sent == (1, REGISTER)


def test_the_runtime_reads_the_registration() -> None:
    (call,) = Trunk.of_runtime().receive_data(REGISTER)

    assert isinstance(call, Call)
    assert call == Call(1, RUNTIME_SERVICE, "RegisterPlugin", b"\n\x02py\x12\x0210")
    assert nri_pb2.RegisterPluginRequest.FromString(
        call.payload
    ) == nri_pb2.RegisterPluginRequest(plugin_name="py", plugin_idx="10")


def test_the_runtime_answers_the_registration() -> None:
    runtime = Trunk.of_runtime()
    runtime.receive_data(REGISTER)

    assert runtime.reply(1, b"") == REGISTERED


def test_the_plugin_reads_the_zero_byte_reply() -> None:
    plugin = Trunk.of_plugin()
    plugin.call(RUNTIME_METHODS["RegisterPlugin"], b"")

    assert plugin.receive_data(REGISTERED) == [CallReply(1, 0)]


def test_the_runtime_configures() -> None:
    sent = Trunk.of_runtime().call(
        PLUGIN_METHODS["Configure"],
        configure_request().SerializeToString(),
        timeout=1.9997,
    )

    assert sent == (1, CONFIGURE)


def test_the_plugin_reads_configure() -> None:
    events = Trunk.of_plugin().receive_data(CONFIGURE)

    assert events == [
        Call(
            1,
            PLUGIN_SERVICE,
            "Configure",
            configure_request().SerializeToString(),
            timeout=1.9997,
        )
    ]


def test_the_plugin_subscribes_to_everything() -> None:
    plugin = Trunk.of_plugin()
    plugin.receive_data(CONFIGURE)
    message = nri_pb2.ConfigureResponse(events=0x3FFF)

    assert plugin.reply(1, message.SerializeToString()) == CONFIGURED


def test_the_runtime_reads_the_subscription() -> None:
    runtime = Trunk.of_runtime()
    runtime.call(PLUGIN_METHODS["Configure"], b"")

    assert runtime.receive_data(CONFIGURED) == [
        CallReply(1, 0, payload=b"\x10\xff\x7f")
    ]


def test_an_empty_reply_has_no_data() -> None:
    plugin = Trunk.of_plugin()
    plugin.receive_data(ask_until(Trunk.of_runtime(), 3))

    assert plugin.reply(3, b"") == SYNCHRONIZED


def test_an_error_is_a_status_alone() -> None:
    plugin = Trunk.of_plugin()
    plugin.receive_data(ask_until(Trunk.of_runtime(), 5))

    assert plugin.refuse(5, 2, "boom") == BOOM


def test_the_runtime_reads_the_error() -> None:
    runtime = Trunk.of_runtime()
    ask_until(runtime, 5)

    assert runtime.receive_data(SYNCHRONIZED + BOOM) == [
        CallReply(3, 0),
        CallReply(5, 2, "boom"),
    ]


@pytest.mark.parametrize(
    ("message", "data"),
    [
        pytest.param(nri_pb2.LinuxMemory(), "", id="an unset limit is nothing"),
        pytest.param(
            nri_pb2.LinuxMemory(limit=nri_pb2.OptionalInt64(value=0)),
            "0a 00",
            id="a limit of 0 is an empty message",
        ),
        pytest.param(
            nri_pb2.LinuxMemory(limit=nri_pb2.OptionalInt64(value=-1)),
            "0a 0b 08 ff ff ff ff ff ff ff ff ff 01",
            id="a limit of -1 takes ten bytes",
        ),
        pytest.param(
            nri_pb2.LinuxMemory(disable_oom_killer=nri_pb2.OptionalBool(value=False)),
            "3a 00",
            id="an explicit false is an empty message",
        ),
    ],
)
def test_unset_is_not_zero(message: nri_pb2.LinuxMemory, data: str) -> None:
    assert message.SerializeToString() == bytes.fromhex(data)
    assert nri_pb2.LinuxMemory.FromString(bytes.fromhex(data)) == message
