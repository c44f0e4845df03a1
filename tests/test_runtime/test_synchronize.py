"""Synchronize uses as many messages as it needs."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from nri_proto import MessageTooLarge, NriLevel, nri_pb2
from nri_resmgr.stub import Container, LinuxCpu, Pod
from nri_resmgr.testing import Misbehaviour, Runtime, RuntimeOptions
from nri_resmgr.testing.synchronizing import sync_requests
from tests.test_runtime.peer import Answer, Peer


async def populate(runtime: Runtime, containers: int, size: int = 0) -> None:
    """Create one pod with so many containers of so many bytes."""
    pod = await runtime.run_pod(Pod())
    for _ in range(containers):
        await runtime.create_container(pod.id, Container(args=("x" * size,)))


def shapes(peer: Peer) -> list[tuple[int, int, bool]]:
    """Return pods, containers and ``more`` of each Synchronize."""
    return [
        (len(request.pods), len(request.containers), request.more)
        for request in peer.requests
        if isinstance(request, nri_pb2.SynchronizeRequest)
    ]


@pytest.mark.parametrize(
    ("level", "options", "expected"),
    [
        pytest.param(
            NriLevel(0, 12), RuntimeOptions(), [(1, 5, False)], id="one that fits"
        ),
        pytest.param(
            NriLevel(0, 12),
            RuntimeOptions(sync_objects=2),
            [(1, 2, True), (0, 2, True), (0, 1, False)],
            id="small ones by an option",
        ),
        pytest.param(
            NriLevel(0, 7),
            RuntimeOptions(sync_limit=2500),
            [(1, 2, True), (0, 2, True), (0, 1, False)],
            id="several when one does not fit",
        ),
        pytest.param(
            NriLevel(0, 6, 1),
            RuntimeOptions(sync_objects=2),
            [(1, 5, False)],
            id="one before level 0.7",
        ),
    ],
)
async def test_a_node_is_reported_in(
    level: NriLevel,
    options: RuntimeOptions,
    expected: list[tuple[int, int, bool]],
    tmp_path: Path,
) -> None:
    async with Runtime(tmp_path, level, options=options) as runtime:
        await populate(runtime, 5, size=1000)
        with Peer.connect(runtime.socket_path) as peer:
            await runtime.synchronized("10-py")

    assert shapes(peer) == expected


async def test_more_than_fits_is_only_sent_by_old_runtimes(tmp_path: Path) -> None:
    async with Runtime(tmp_path, NriLevel(0, 6, 1)) as runtime:
        await populate(runtime, 5, size=1 << 20)
        with Peer.connect(runtime.socket_path) as refused:
            await runtime.wait_dropped()
        runtime.misbehave(Misbehaviour(oversize=True))
        with Peer.connect(runtime.socket_path) as peer:
            await runtime.synchronized("10-py")

    assert shapes(refused) == []
    assert shapes(peer) == [(1, 5, False)]


async def test_empty_chunks_come_first_when_asked_for(tmp_path: Path) -> None:
    async with Runtime(tmp_path) as runtime:
        await populate(runtime, 1)
        runtime.misbehave(Misbehaviour(empty_chunks=50))
        with Peer.connect(runtime.socket_path) as peer:
            await runtime.synchronized("10-py")

    assert shapes(peer) == [(0, 0, True)] * 50 + [(1, 1, False)]


def without_more(_: Message) -> Message:
    return nri_pb2.SynchronizeResponse()


def with_updates(request: Message) -> Message:
    assert isinstance(request, nri_pb2.SynchronizeRequest)
    update = nri_pb2.ContainerUpdate(container_id="ctr0")
    return nri_pb2.SynchronizeResponse(more=request.more, update=[update])


@pytest.mark.parametrize("answer", [without_more, with_updates])
async def test_a_wrong_answer_to_a_chunk_ends_the_session(
    answer: Answer, tmp_path: Path
) -> None:
    answers = {"Synchronize": answer}
    async with Runtime(tmp_path, options=RuntimeOptions(sync_objects=1)) as runtime:
        await populate(runtime, 2)
        with Peer.connect(runtime.socket_path, answers=answers) as peer:
            await runtime.wait_dropped()
            await peer.wait_disconnected()

        assert [str(error) for error in runtime.dropped] == [
            "plugin '10-py': plugin does not handle split sync requests"
        ]


async def test_all_chunks_share_one_deadline(tmp_path: Path) -> None:
    def dawdle(request: Message) -> Message:
        assert isinstance(request, nri_pb2.SynchronizeRequest)
        time.sleep(0.2)
        return nri_pb2.SynchronizeResponse(more=request.more)

    options = RuntimeOptions(sync_objects=1, request_timeout=0.5)
    async with Runtime(tmp_path, options=options) as runtime:
        await populate(runtime, 5)
        answers = {"Synchronize": dawdle}
        with Peer.connect(runtime.socket_path, answers=answers) as peer:
            await runtime.wait_dropped()
            await peer.wait_disconnected()

        assert runtime.plugins == ()


async def test_updates_of_the_last_answer_are_applied(tmp_path: Path) -> None:
    resources = nri_pb2.LinuxResources(cpu=nri_pb2.LinuxCPU(cpus="3"))
    update = nri_pb2.ContainerUpdate(
        container_id="ctr0", linux=nri_pb2.LinuxContainerUpdate(resources=resources)
    )
    answers: dict[str, Answer] = {
        "Synchronize": lambda _: nri_pb2.SynchronizeResponse(update=[update])
    }
    async with Runtime(tmp_path) as runtime:
        await populate(runtime, 1)
        with Peer.connect(runtime.socket_path, answers=answers):
            await runtime.synchronized("10-py")

        assert runtime.container("ctr0").cpu == LinuxCpu(cpus="3")


@given(
    pods=st.lists(st.integers(0, 400), max_size=20),
    containers=st.lists(st.integers(0, 400), max_size=20),
    limit=st.integers(1100, 5000),
    objects=st.none() | st.integers(1, 10),
)
def test_chunks_fit_and_join_to_the_whole(
    pods: list[int], containers: list[int], limit: int, objects: int | None
) -> None:
    all_pods = [nri_pb2.PodSandbox(name="p" * size) for size in pods]
    all_containers = [nri_pb2.Container(name="c" * size) for size in containers]
    requests = list(
        sync_requests(all_pods, all_containers, limit=limit, objects=objects)
    )

    assert [pod for request in requests for pod in request.pods] == all_pods
    assert [
        container for request in requests for container in request.containers
    ] == all_containers
    assert [request.more for request in requests] == [True] * (len(requests) - 1) + [
        False
    ]
    assert all(request.ByteSize() <= limit for request in requests)


def test_an_object_that_never_fits_is_an_error() -> None:
    with pytest.raises(MessageTooLarge):
        list(sync_requests([nri_pb2.PodSandbox(name="p" * 100)], [], limit=150))
