"""Registration, Configure and Synchronize, as each runtime does them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from nri_proto import Code, NriLevel, Trunk, nri_pb2
from nri_resmgr.stub import (
    CallTimedOut,
    Configuration,
    ConfigureMissing,
    ConnectionLost,
    Container,
    Identity,
    Plugin,
    Pod,
    RegistrationRefused,
    RuntimeInfo,
    SocketPath,
    Stub,
    StubOptions,
    current_request,
)
from nri_resmgr.testing import (
    Misbehaviour,
    RecordedMessage,
    Runtime,
    RuntimeOptions,
    Sender,
    SessionStep,
)
from tests.stub.live import (
    NAME,
    first_call,
    launched_stub_at,
    live,
    recording,
    running,
    scripted,
    stub_at,
)

QUICK = StubOptions(registration_timeout=0.4)

# Those before 0.7 send no timeouts: NRI's defaults are 5 s and 2 s.
RUNTIMES = [
    pytest.param(NriLevel(0, 3), "containerd", "v1.7.0", (5, 2), id="0.3"),
    pytest.param(NriLevel(0, 6, 1), "cri-o", "1.31.4", (5, 2), id="0.6.1"),
    pytest.param(NriLevel(0, 8), "containerd", "v2.0.5", (5.005, 2.007), id="0.8"),
    pytest.param(NriLevel(0, 9, 1), "cri-o", "1.33.2", (5.005, 2.007), id="0.9.1"),
    pytest.param(NriLevel(0, 10), "containerd", "v2.2.0", (5.005, 2.007), id="0.10"),
    pytest.param(NriLevel(0, 11), "cri-o", "1.36.0", (5.005, 2.007), id="0.11"),
    pytest.param(NriLevel(0, 12), "containerd", "v2.3.0", (5.005, 2.007), id="0.12"),
    pytest.param(
        NriLevel(0, 12, 1), "containerd", "v2.4.0", (5.005, 2.007), id="0.12.1"
    ),
    pytest.param(NriLevel(0, 13), "cri-o", "1.38.0", (5.005, 2.007), id="0.13"),
]


class _Diary:
    """Keeps what the handshake brings."""

    def __init__(self) -> None:
        self.pages: list[object] = []

    def configure(self, configuration: Configuration) -> None:
        self.pages.append(configuration)

    def synchronize(
        self, pods: tuple[Pod, ...], containers: tuple[Container, ...]
    ) -> None:
        self.pages.append((pods, containers))

    def stop_container(self, pod: Pod, container: Container) -> None:
        self.pages.append((pod, container))


@pytest.mark.parametrize(("level", "name", "version", "timeouts"), RUNTIMES)
async def test_a_plugin_is_configured_then_synchronized(
    level: NriLevel,
    name: str,
    version: str,
    timeouts: tuple[float, float],
    tmp_path: Path,
) -> None:
    options = RuntimeOptions(registration_timeout=5.005, request_timeout=2.007)
    diary = _Diary()
    async with Runtime(tmp_path, level, name, version, options) as runtime:
        pod = await runtime.run_pod(Pod(name="web"))
        await runtime.create_container(pod.id, Container(name="app"))
        before = stub_at(runtime, diary).runtime
        async with live(runtime, diary) as stub:
            await stub.started()
            await stub.synchronized()

            reports = level >= NriLevel(0, 7)
            info = RuntimeInfo(name, version, level, *timeouts, reports)
            assert (before, stub.runtime) == (RuntimeInfo(), info)
            assert diary.pages == [
                Configuration("", info),
                (runtime.pods, runtime.containers),
            ]
            assert runtime.calls_to(NAME) == ["Configure", "Synchronize"]


@pytest.mark.parametrize("reply_first", [False, True])
async def test_configure_may_overtake_the_reply_to_the_registration(
    reply_first: bool,  # noqa: FBT001 - a parameter of the table
    tmp_path: Path,
) -> None:
    async with Runtime(tmp_path) as runtime:
        runtime.misbehave(Misbehaviour(reply_first=reply_first))
        async with live(runtime, _Diary()):
            methods = [record.method for record in runtime.records][:3]
            assert methods == (
                ["RegisterPlugin", "RegisterPlugin", "Configure"]
                if reply_first
                else ["RegisterPlugin", "Configure", "RegisterPlugin"]
            )


@pytest.mark.parametrize("name", ["abcd-0123+EFGH_4567.ijkl", "x"])
@pytest.mark.parametrize("index", ["00", "99"])
async def test_a_plugin_registers_under_its_name(
    name: str, index: str, tmp_path: Path
) -> None:
    async with Runtime(tmp_path) as runtime:
        socket_path = SocketPath(str(runtime.socket_path))
        async with running(Stub(_Diary(), Identity(name, index), socket_path)):
            await runtime.synchronized(f"{index}-{name}")

        assert runtime.records[0] == RecordedMessage(
            "",
            Sender.PLUGIN,
            "RegisterPlugin",
            nri_pb2.RegisterPluginRequest(
                plugin_name=name, plugin_idx=index, NRI_version="v0.13.0"
            ),
        )


async def test_a_refused_name_raises(tmp_path: Path) -> None:
    identity = Identity("foo", "10")
    # A name that only the runtime objects to.
    msgspec.structs.force_setattr(identity, "name", "foo,bar")
    async with Runtime(tmp_path) as runtime:
        stub = Stub(_Diary(), identity, SocketPath(str(runtime.socket_path)))
        with pytest.raises(RegistrationRefused) as refusal:
            await stub.run()

        assert str(refusal.value) == (
            "the runtime refused plugin 10-foo,bar: invalid plugin name: 'foo,bar'"
        )


async def test_a_refused_plugin_closes_the_socket_itself(tmp_path: Path) -> None:
    rest: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def refuse(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        trunk = Trunk.of_runtime()
        call = await first_call(reader, trunk)
        writer.write(trunk.refuse(call.stream_id, Code.UNKNOWN, "no"))
        rest.set_result(await reader.read())
        writer.close()

    async with scripted(tmp_path / "nri.sock", refuse):
        with pytest.raises(RegistrationRefused):
            await stub_at(tmp_path / "nri.sock", _Diary()).run()
        assert await asyncio.wait_for(rest, 5) == b""


@pytest.mark.parametrize("step", list(SessionStep)[:7])
async def test_after_a_hang_up_the_whole_handshake_is_repeated(
    step: SessionStep, tmp_path: Path
) -> None:
    heard: list[str] = []
    plugin = recording(heard, "synchronize", "stop_container")
    async with Runtime(tmp_path) as runtime:
        runtime.misbehave(Misbehaviour(hang_up=step))
        async with live(runtime, plugin):
            assert runtime.plugins == (NAME,)
        registrations = [
            record
            for record in runtime.records
            if record.method == "RegisterPlugin" and record.sender is Sender.PLUGIN
        ]
        assert len(registrations) == (1 if step is SessionStep.CONNECTED else 2)
        assert heard[-1] == "synchronize"


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(Misbehaviour(hang_up=SessionStep.CONNECTED), id="when connected"),
        pytest.param(Misbehaviour(hang_up=SessionStep.REGISTERING), id="registering"),
        pytest.param(
            Misbehaviour(hang_up=SessionStep.REGISTERED, reply_first=True),
            id="registered, not yet configured",
        ),
    ],
)
async def test_a_launched_plugin_reports_a_lost_handshake(
    wrong: Misbehaviour, tmp_path: Path
) -> None:
    async with Runtime(tmp_path) as runtime:
        runtime.misbehave(wrong)
        stub = launched_stub_at(runtime, _Diary())
        run = asyncio.create_task(stub.run())
        with pytest.raises(ConnectionLost):
            await stub.started()
        with pytest.raises(ConnectionLost, match="closed the connection"):
            await asyncio.wait_for(run, 5)


@pytest.mark.parametrize(
    ("wrong", "error", "sentence"),
    [
        pytest.param(
            Misbehaviour(fall_silent=SessionStep.CONNECTED),
            CallTimedOut,
            "the runtime did not answer RegisterPlugin within 0.4 s",
            id="nothing is answered",
        ),
        pytest.param(
            Misbehaviour(fall_silent=SessionStep.REGISTERED, reply_first=True),
            ConfigureMissing,
            "the runtime sent no Configure within 0.4 s",
            id="the registration is answered and that is all",
        ),
    ],
)
async def test_a_silent_handshake_ends_with_the_registration_timeout(
    wrong: Misbehaviour, error: type[Exception], sentence: str, tmp_path: Path
) -> None:
    async with Runtime(tmp_path) as runtime:
        runtime.misbehave(wrong)
        stub = launched_stub_at(runtime, _Diary(), QUICK)
        with pytest.raises(error) as silence:
            await asyncio.wait_for(stub.run(), 5)

        assert str(silence.value) == sentence


async def test_after_silence_an_external_plugin_tries_again(tmp_path: Path) -> None:
    async with Runtime(tmp_path) as runtime:
        runtime.misbehave(Misbehaviour(fall_silent=SessionStep.REGISTERING))
        async with live(runtime, _Diary(), QUICK):
            assert runtime.plugins == (NAME,)


async def test_a_failing_configure_handler_ends_the_plugin(tmp_path: Path) -> None:
    plugin = recording([], "stop_container")

    @plugin.handler
    def configure(_: Configuration) -> None:
        raise ValueError("not my kind of runtime")

    async with Runtime(tmp_path) as runtime:
        with pytest.raises(ValueError, match="not my kind of runtime"):
            await asyncio.wait_for(stub_at(runtime, plugin).run(), 1)
        await runtime.wait_dropped()

        assert [str(why) for why in runtime.dropped] == [
            f"plugin '{NAME}' failed Configure: ValueError: not my kind of runtime"
        ]


async def test_configure_has_a_deadline_and_may_be_a_coroutine(tmp_path: Path) -> None:
    limits: list[float] = []
    plugin = Plugin()
    plugin.handler(recording([], "stop_container").handlers["stop_container"])

    @plugin.handler
    async def configure(_: Configuration) -> None:
        await asyncio.sleep(0)
        request = current_request()
        limits.append(request.timeout if request else -1)

    options = RuntimeOptions(request_timeout=0.7)
    async with Runtime(tmp_path, options=options) as runtime, live(runtime, plugin):
        assert limits == [0.7]


async def test_a_second_configure_changes_nothing_for_the_session(
    tmp_path: Path,
) -> None:
    async with Runtime(tmp_path) as runtime, live(runtime, _Diary()):
        again = nri_pb2.ConfigureRequest(runtime_name="containerd", config="x: 1")
        answer = await runtime.call(NAME, "Configure", again)

        assert answer == nri_pb2.ConfigureResponse(events=0x200)
        assert runtime.plugins == (NAME,)
