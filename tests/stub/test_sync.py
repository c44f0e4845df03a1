"""Synchronize in many messages, with more updates than fit into one reply."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from nri_proto import NriLevel, nri_pb2
from nri_resmgr.stub import Container, ContainerUpdate, Pod
from nri_resmgr.testing import (
    Misbehaviour,
    Runtime,
    RuntimeOptions,
    Sender,
    SessionStep,
)
from tests.stub.live import NAME, live, recording, running, stub_at
from tests.stub.programs import program
from tests.waiting import until

Snapshot = tuple[tuple[Pod, ...], tuple[Container, ...]]


class _Census:
    """Keeps each snapshot, and answers with some updates."""

    def __init__(self, *answer: ContainerUpdate) -> None:
        self.snapshots: list[Snapshot] = []
        self.answer = answer

    def synchronize(
        self, pods: tuple[Pod, ...], containers: tuple[Container, ...]
    ) -> Iterable[ContainerUpdate]:
        self.snapshots.append((pods, containers))
        return self.answer

    def stop_container(self, _: Pod, __: Container) -> None:
        """Be subscribed to something."""


async def populate(runtime: Runtime, pods: int, containers: int, size: int = 0) -> None:
    """Create so many pods, the last one with so many containers of so many bytes."""
    for _ in range(pods):
        pod = await runtime.run_pod(Pod())
    for _ in range(containers):
        await runtime.create_container(pod.id, Container(args=("x" * size,)))


def update_calls(runtime: Runtime) -> list[list[str]]:
    """Name the containers of each UpdateContainers."""
    return [
        [update.container_id for update in record.body.update]
        for record in runtime.records
        if isinstance(record.body, nri_pb2.UpdateContainersRequest)
    ]


def large(container_id: str, size: int) -> ContainerUpdate:
    """Make an update of a little more than *size* bytes."""
    return ContainerUpdate(container_id).set_unified("memory.high", "9" * size)


@pytest.mark.parametrize(
    ("options", "pods", "containers"),
    [
        pytest.param(RuntimeOptions(), 0, 0, id="nothing"),
        pytest.param(RuntimeOptions(), 3, 7, id="one message"),
        pytest.param(RuntimeOptions(sync_objects=1), 3, 7, id="one object a message"),
        pytest.param(
            RuntimeOptions(sync_objects=2), 7, 3, id="more pods than containers"
        ),
        pytest.param(RuntimeOptions(sync_limit=2500), 2, 9, id="cut by size"),
    ],
)
async def test_however_synchronize_is_cut_its_handler_is_called_once_with_all(
    options: RuntimeOptions, pods: int, containers: int, tmp_path: Path
) -> None:
    census = _Census()
    async with Runtime(tmp_path, options=options) as runtime:
        await populate(runtime, pods, containers, size=200)
        async with live(runtime, census):
            assert census.snapshots == [(runtime.pods, runtime.containers)]


async def test_a_container_may_come_before_its_pod(tmp_path: Path) -> None:
    census = _Census()
    first = nri_pb2.SynchronizeRequest(
        containers=[nri_pb2.Container(id="c", pod_sandbox_id="p")], more=True
    )
    last = nri_pb2.SynchronizeRequest(pods=[nri_pb2.PodSandbox(id="p")])
    async with Runtime(tmp_path) as runtime:
        await populate(runtime, 1, 1)  # sent in the handshake, and not again
        async with live(runtime, census):
            replies = [
                await runtime.call(NAME, "Synchronize", part) for part in (first, last)
            ]

    assert replies == [
        nri_pb2.SynchronizeResponse(more=True),
        nri_pb2.SynchronizeResponse(),
    ]
    assert census.snapshots[1:] == [
        ((Pod(id="p"),), (Container(id="c", pod_sandbox_id="p"),))
    ]


class _Slow(_Census):
    """Takes its time."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds

    async def synchronize(  # type: ignore[override] # handlers may be either
        self, pods: tuple[Pod, ...], containers: tuple[Container, ...]
    ) -> Iterable[ContainerUpdate]:
        await asyncio.sleep(self.seconds)
        return super().synchronize(pods, containers)


@pytest.mark.slow
@pytest.mark.parametrize(("seconds", "warnings"), [(0, 0), (5.1, 1)])
async def test_half_of_the_timeout_is_logged_with_advice(
    seconds: float, warnings: int, tmp_path: Path
) -> None:
    options = RuntimeOptions(request_timeout=10, sync_objects=1)
    async with Runtime(tmp_path, options=options) as runtime:
        await populate(runtime, 1, 3)
        with capture_logs() as lines:
            async with running(stub_at(runtime, _Slow(seconds))):
                await runtime.synchronized(NAME, within=60)

    found = [line for line in lines if line["event"] == "synchronize.slow"]
    assert len(found) == warnings
    for line in found:
        assert line["timeout"] == 10
        assert "raise the runtime's timeout" in line["advice"]


ALWAYS_LATE = """
import time

class Late:
    def synchronize(self, pods, containers):
        time.sleep(0.3)

    def stop_container(self, pod, container):
        pass

serve(Late(), name="late", index="10", socket=SOCKET)
"""


@pytest.mark.process
@pytest.mark.slow
async def test_a_plugin_that_is_always_too_late_reconnects_less_and_less_often(
    tmp_path: Path,
) -> None:
    options = RuntimeOptions(request_timeout=0.2)
    async with Runtime(tmp_path, options=options) as runtime:
        text = f"SOCKET = {str(runtime.socket_path)!r}\n{ALWAYS_LATE}"
        late = program(tmp_path / "10-late", text)
        process = await asyncio.create_subprocess_exec(
            late, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        assert process.stdout is not None
        found: list[str] = []
        begun = time.monotonic()
        while len(found) < 8 and (line := await process.stdout.readline()):
            found += [line.decode()] if b"synchronize.too-slow" in line else []
        took = time.monotonic() - begun
        process.terminate()
        await process.wait()

    assert len(found) == 8
    assert "raise the runtime's timeout" in found[0]
    # Seven pauses that double, half of each at random: not a test of speed.
    assert took > 0.05 * (2**7 - 1)


@pytest.mark.slow
async def test_ten_thousand_empty_messages_are_answered(tmp_path: Path) -> None:
    census = _Census()
    async with Runtime(tmp_path, options=RuntimeOptions(request_timeout=60)) as runtime:
        await populate(runtime, 1, 1)
        runtime.misbehave(Misbehaviour(empty_chunks=10_000))
        async with running(stub_at(runtime, census)):
            await runtime.synchronized(NAME, within=60)

            assert runtime.calls_to(NAME).count("Synchronize") == 10_001
            assert census.snapshots == [(runtime.pods, runtime.containers)]


async def test_a_plugin_without_handler_echoes_more(tmp_path: Path) -> None:
    plugin = recording([], "stop_container")
    async with Runtime(tmp_path, options=RuntimeOptions(sync_objects=1)) as runtime:
        await populate(runtime, 1, 3)
        async with live(runtime, plugin) as stub:
            await stub.synchronized()
            answers = [
                record.body
                for record in runtime.records
                if record.sender is Sender.PLUGIN and record.method == "Synchronize"
            ]

    assert answers == [
        nri_pb2.SynchronizeResponse(more=True),
        nri_pb2.SynchronizeResponse(more=True),
        nri_pb2.SynchronizeResponse(),
    ]


async def test_messages_of_a_lost_session_are_discarded(tmp_path: Path) -> None:
    census = _Census()
    async with Runtime(tmp_path, options=RuntimeOptions(sync_objects=1)) as runtime:
        await populate(runtime, 2, 3)
        runtime.misbehave(Misbehaviour(hang_up=SessionStep.SYNCHRONIZING))
        async with live(runtime, census):
            assert census.snapshots == [(runtime.pods, runtime.containers)]


async def test_the_stub_sets_no_deadline_for_the_synchronize_handler(
    tmp_path: Path,
) -> None:
    plugin = recording([], "stop_container")

    @plugin.handler
    async def synchronize(_: object, __: object) -> ContainerUpdate:
        await asyncio.sleep(0.15)
        return ContainerUpdate("ctr0").set_cpus("3")

    async with Runtime(tmp_path) as runtime:
        await populate(runtime, 1, 1)
        runtime.misbehave(Misbehaviour(timeout=0.05))  # sent, but not enforced
        async with live(runtime, plugin):
            assert runtime.container("ctr0").cpu.cpus == "3"


async def test_waiting_for_synchronize_has_no_limit_and_ends_with_the_session(
    tmp_path: Path,
) -> None:
    async with Runtime(tmp_path) as runtime:
        runtime.misbehave(Misbehaviour(fall_silent=SessionStep.CONFIGURED))
        stub = stub_at(runtime, _Census())
        async with running(stub):
            await stub.started()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(stub.synchronized(), 0.1)


async def test_16_mib_from_an_old_runtime_are_accepted(tmp_path: Path) -> None:
    census = _Census()
    async with Runtime(
        tmp_path,
        NriLevel(0, 6, 1),
        version="v1.7.20",
        options=RuntimeOptions(request_timeout=9),
    ) as runtime:
        await populate(runtime, 1, 5, size=3 << 20)
        runtime.misbehave(Misbehaviour(oversize=True))
        async with live(runtime, census):
            assert census.snapshots == [(runtime.pods, runtime.containers)]


async def test_updates_over_4_mib_follow_by_calls(tmp_path: Path) -> None:
    census = _Census(*(large(f"ctr{number}", 1_500_000) for number in range(7)))
    async with Runtime(tmp_path) as runtime:
        await populate(runtime, 1, 7)
        async with live(runtime, census):
            await until(lambda: len(update_calls(runtime)) == 3)
            await runtime.run_pod(Pod())  # takes the runtime's lock: all is applied

        assert update_calls(runtime) == [["ctr2", "ctr3"], ["ctr4", "ctr5"], ["ctr6"]]
        assert [
            len(item.resources.unified["memory.high"]) for item in runtime.containers
        ] == [1_500_000] * 7


async def test_updates_over_4_mib_are_sent_with_replies_to_old_runtimes(
    tmp_path: Path,
) -> None:
    census = _Census(*(large(f"ctr{number}", 1_500_000) for number in range(5)))
    async with Runtime(tmp_path, NriLevel(0, 11), version="v2.2.1") as runtime:
        await populate(runtime, 1, 6)
        async with live(runtime, census):
            stops = [await runtime.stop_container(f"ctr{number}") for number in (5, 0)]
            again = await runtime.stop_container("ctr1")

        assert [
            [update.container_id for update in stop.updates] for stop in (*stops, again)
        ] == [["ctr2", "ctr3"], ["ctr4"], []]
        assert update_calls(runtime) == []


@pytest.mark.parametrize(
    ("level", "version", "sessions"),
    [
        pytest.param(NriLevel(0, 6, 1), "v1.7.20", 2, id="0.6 would never ask again"),
        pytest.param(NriLevel(0, 3), "unheard of", 2, id="an unknown level"),
        pytest.param(NriLevel(0, 8), "v2.1.0", 1, id="0.8 hangs up itself"),
    ],
)
async def test_before_0_7_a_late_answer_means_a_new_session(
    level: NriLevel, version: str, sessions: int, tmp_path: Path
) -> None:
    delays = [0.15, 0.0]
    plugin = recording([], "stop_container")

    @plugin.handler
    async def synchronize(_: object, __: object) -> None:
        await asyncio.sleep(delays.pop(0))

    async with Runtime(tmp_path, level, version=version) as runtime:
        runtime.misbehave(Misbehaviour(timeout=0.1))  # sent, but not enforced
        async with running(stub_at(runtime, plugin)):
            await runtime.synchronized(NAME)
            expected = ["Configure", "Synchronize"] * sessions
            await until(lambda: runtime.calls_to(NAME) == expected)
            await runtime.run_pod(Pod())

            assert runtime.calls_to(NAME) == expected
