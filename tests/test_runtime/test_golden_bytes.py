"""The runtime's bytes are those captured from Go's adaptation."""

from __future__ import annotations

from pathlib import Path

from nri_proto import NriLevel, nri_pb2
from nri_resmgr.stub import Container, LinuxMemory, LinuxResources, Pod
from nri_resmgr.testing import Runtime, RuntimeOptions
from tests.test_runtime.peer import Answer, Peer

_PLUGIN = b"\x0a\x1bnri.pkg.api.v1alpha1.Plugin"

# Five bytes of varint for 2 s in nanoseconds; Go's are a little less by then.
_TIMEOUT = bytes.fromhex("20 80a8d6b907")

_CONFIGURE = (
    bytes.fromhex("00000001 00000063 00000059 00000001 01 00")
    + _PLUGIN
    + b"\x12\x09Configure"
    + bytes.fromhex("1a 29 12 0a")
    + b"containerd"
    + bytes.fromhex("1a 06")
    + b"v2.2.1"
    + bytes.fromhex("20 8827 28 d00f 32 0d")
    + b"0.0.0-unknown"
    + _TIMEOUT
)
_REGISTERED = bytes.fromhex("00000002 0000000a 00000000 00000001 02 00")
_SYNCHRONIZE = (
    # Nothing runs, so there is no payload.
    bytes.fromhex("00000001 0000003a 00000030 00000003 01 00")
    + _PLUGIN
    + b"\x12\x0bSynchronize"
    + b"\x20"  # then what is left of the time
)


async def test_the_handshake_to_the_byte(tmp_path: Path) -> None:
    options = RuntimeOptions(nri_version="0.0.0-unknown")
    level = NriLevel(0, 13)
    async with Runtime(tmp_path, level, version="v2.2.1", options=options) as runtime:
        with Peer.connect(runtime.socket_path) as peer:
            await runtime.synchronized("10-py")

    assert peer.received[:-5] == _CONFIGURE + _REGISTERED + _SYNCHRONIZE


async def test_the_streams_of_the_plugin_service_count_by_two(tmp_path: Path) -> None:
    async with Runtime(tmp_path) as runtime:
        with Peer.connect(runtime.socket_path) as peer:
            await runtime.synchronized("10-py")
            handshake = len(peer.received)
            await runtime.run_pod(Pod())

    header = peer.received[handshake : handshake + 18]
    assert header[:4] == bytes.fromhex("00000001")
    assert header[12:] == bytes.fromhex("00000005 01 00")


async def test_an_error_reply_to_the_byte(tmp_path: Path) -> None:
    async with Runtime(tmp_path) as runtime:
        with Peer.connect(runtime.socket_path, name="", index="10") as peer:
            await peer.wait_replies(1)

    message = b"invalid plugin name: ''"
    status = b"\x08\x02\x12" + bytes([len(message)]) + message
    response = b"\x0a" + bytes([len(status)]) + status
    size = len(response)
    assert peer.received == (
        bytes.fromhex("00000002")
        + (size + 10).to_bytes(4, "big")
        + size.to_bytes(4, "big")
        + bytes.fromhex("00000001 02 00")
        + response
    )


async def test_a_present_zero_is_two_bytes_and_an_absent_value_none(
    tmp_path: Path,
) -> None:
    limits: list[bytes] = []

    def keep(request: object) -> nri_pb2.UpdateContainerResponse:
        assert isinstance(request, nri_pb2.UpdateContainerRequest)
        limits.append(request.linux_resources.memory.SerializeToString())
        return nri_pb2.UpdateContainerResponse()

    answers: dict[str, Answer] = {"UpdateContainer": keep}
    async with Runtime(tmp_path) as runtime:
        with Peer.connect(runtime.socket_path, answers=answers):
            await runtime.synchronized("10-py")
            pod = await runtime.run_pod(Pod())
            await runtime.create_container(pod.id, Container())
            for memory in (LinuxMemory(limit=0), LinuxMemory()):
                await runtime.update_container("ctr0", LinuxResources(memory=memory))

    assert limits == [bytes.fromhex("0a 00"), b""]
