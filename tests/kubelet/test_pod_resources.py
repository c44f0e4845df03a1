"""The client of PodResources, against a kubelet's socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import pytest
from grpclib import Status

from nri_resmgr.kubelet._gen import podresources_pb2 as pb
from nri_resmgr.kubelet.connection import KubeletConnection, Pauses
from nri_resmgr.kubelet.pod_resources import (
    Answer,
    AssignedDevice,
    ClaimedDevice,
    ContainerResources,
    PodName,
    PodResources,
)
from nri_resmgr.kubelet.pod_resources_client import PodResourcesClient, answer_of
from nri_resmgr.kubelet.sockets import POD_RESOURCES
from nri_resmgr.testing.kubelet.pod_resources import (
    GET,
    LIST,
    FakeClaim,
    FakeDevice,
    FakePod,
    FakePodResources,
    GetLevel,
)
from nri_resmgr.testing.kubelet.server import KubeletServer
from nri_resmgr.values import NodeSet
from tests.waiting import until

WEB = PodName("default", "web")
GPUS = FakePod(
    "default", "web", {"main": (FakeDevice("example.com/gpu", ("a:1", "b"), (1,)),)}
)
ANSWER = {
    "main": ContainerResources(
        (
            AssignedDevice("example.com/gpu", "a:1", NodeSet.of(1)),
            AssignedDevice("example.com/gpu", "b", NodeSet.of(1)),
        )
    )
}
SHORT = Pauses(first=0.01, last=0.05, unserved=0.05)


@attrs.define(eq=False)
class Side:
    """The daemon's side of the socket, and the kubelet's."""

    book: PodResources
    kubelet: FakePodResources
    server: KubeletServer
    connection: KubeletConnection
    changes: asyncio.Queue[PodName]

    async def answer(self, pod: PodName = WEB, uid: str = "1") -> Answer:
        """Wait for the answer about a pod."""
        while (found := self.book.of(pod, uid)) is None:
            async with asyncio.timeout(60):
                await self.changes.get()
        return found


@asynccontextmanager
async def asking(folder: Path, patience: float = 60.0) -> AsyncIterator[Side]:
    """Run a client and a kubelet, which does not serve yet."""
    book, kubelet = PodResources(patience), FakePodResources()
    changes: asyncio.Queue[PodName] = asyncio.Queue()
    book.on_change = lambda pod, _: changes.put_nowait(pod)
    server = KubeletServer(folder / POD_RESOURCES.socket, kubelet)
    connection = KubeletConnection(POD_RESOURCES, folder, SHORT)
    task = asyncio.create_task(PodResourcesClient(connection, book).run())
    try:
        yield Side(book, kubelet, server, connection, changes)
    finally:
        assert not task.done()
        task.cancel()
        await asyncio.wait({task})
        await server.stop()
        book.keep_only(())


async def test_present_pods_are_listed_at_once(tmp_path: Path) -> None:
    async with asking(tmp_path) as side:
        side.kubelet.put(GPUS)
        side.book.expect(WEB, "1")
        await side.server.start()

        assert await side.answer() == ANSWER
        assert side.server.calls == {LIST: 1}


async def test_a_pod_that_comes_later_is_asked_about(tmp_path: Path) -> None:
    async with asking(tmp_path) as side:
        await side.server.start()
        await until(lambda: not side.connection.problem)
        side.kubelet.put(GPUS)
        side.book.expect(WEB, "1")

        assert await side.answer() == ANSWER
        assert side.server.calls == {LIST: 1, GET: 1}


async def test_a_pod_that_the_kubelet_knows_later_is_asked_about_again(
    tmp_path: Path,
) -> None:
    async with asking(tmp_path) as side:
        await side.server.start()
        side.book.expect(WEB, "1")
        await until(lambda: side.server.calls[GET] > 1)
        side.kubelet.put(GPUS)

        assert await side.answer() == ANSWER
        assert side.connection.problem == ""


@pytest.mark.parametrize("level", [GetLevel.OFF, GetLevel.NONE])
async def test_a_kubelet_without_get_is_asked_for_lists(
    level: GetLevel, tmp_path: Path
) -> None:
    async with asking(tmp_path) as side:
        side.kubelet.level = level
        await side.server.start()
        await until(lambda: not side.connection.problem)
        side.kubelet.put(GPUS)
        side.book.expect(WEB, "1")

        assert await side.answer() == ANSWER
        other = PodName("default", "other")
        side.kubelet.put(FakePod("default", "other"))
        side.book.expect(other, "2")
        assert await side.answer(other, "2") == {}
        assert side.server.calls[GET] == (1 if level is GetLevel.OFF else 0)
        assert side.connection.problem == ""


async def test_queries_during_a_restart_of_the_kubelet_are_answered_after_it(
    tmp_path: Path,
) -> None:
    async with asking(tmp_path) as side:
        await side.server.start()
        await until(lambda: not side.connection.problem)
        await side.server.stop(leaves_socket=True)
        side.kubelet.put(GPUS)
        side.book.expect(WEB, "1")
        await until(lambda: bool(side.connection.problem))
        await side.server.start()

        assert await side.answer() == ANSWER


@pytest.mark.parametrize(
    "status", [Status.UNAVAILABLE, Status.INTERNAL, Status.PERMISSION_DENIED]
)
async def test_errors_pass(status: Status, tmp_path: Path) -> None:
    async with asking(tmp_path) as side:
        side.kubelet.put(GPUS)
        side.server.fail(LIST, status, "not now", times=2)
        side.server.fail(GET, status, "not now", times=2)
        await side.server.start()
        side.book.expect(WEB, "1")

        assert await side.answer() == ANSWER
        await until(lambda: not side.connection.problem)


async def test_a_hanging_query_is_abandoned_and_repeated(tmp_path: Path) -> None:
    async with asking(tmp_path, patience=0.1) as side:
        side.kubelet.put(GPUS)
        side.kubelet.hangs = True
        await side.server.start()
        side.book.expect(WEB, "1")
        assert side.book.awaits(WEB, "1")
        async with asyncio.timeout(60):
            assert await side.changes.get() == WEB
        assert not side.book.awaits(WEB, "1")
        assert side.book.of(WEB, "1") is None
        side.kubelet.hangs = False
        side.server.drop_connections()

        assert await side.answer() == ANSWER


async def test_sixty_pods_at_once_stay_below_the_limit(tmp_path: Path) -> None:
    async with asking(tmp_path) as side:
        await side.server.start()
        await until(lambda: not side.connection.problem)
        names = [PodName("default", f"web-{number}") for number in range(60)]
        for name in names:
            side.kubelet.put(FakePod("default", name.name, containers=("main",)))
            side.book.expect(name, "1")

        for name in names:
            assert await side.answer(name) == {"main": ContainerResources()}
        assert side.kubelet.exhausted == 0


async def test_a_kubelet_that_others_exhaust_is_asked_again(tmp_path: Path) -> None:
    async with asking(tmp_path) as side:
        side.server.fail(GET, Status.RESOURCE_EXHAUSTED, "rejected", times=3)
        await side.server.start()
        await until(lambda: not side.connection.problem)
        side.kubelet.put(GPUS)
        side.book.expect(WEB, "1")

        assert await side.answer() == ANSWER
        assert side.server.calls == {LIST: 1, GET: 4}


async def test_an_answer_about_an_earlier_pod_of_the_name_is_dropped(
    tmp_path: Path,
) -> None:
    async with asking(tmp_path) as side:
        side.kubelet.put(GPUS)
        await side.server.start()
        side.book.expect(WEB, "1")
        await side.answer()
        side.book.expect(WEB, "2")

        assert side.book.of(WEB, "1") is None
        assert side.book.of(WEB, "2") is None
        side.book.forget(WEB, "1")  # late: the other one stays
        assert await side.answer(uid="2") == ANSWER


def test_invalid_numbers_of_nodes_are_left_out() -> None:
    nodes = [pb.NUMANode(ID=key) for key in (-1, 0, 1023, 1024, 1 << 62)]
    device = pb.ContainerDevices(
        resource_name="a/b",
        device_ids=["x"],
        topology=pb.TopologyInfo(nodes=nodes),
    )
    message = pb.PodResources(
        containers=[pb.ContainerResources(name="main", devices=[device])]
    )

    assert answer_of(message) == {
        "main": ContainerResources((AssignedDevice("a/b", "x", NodeSet.of(0, 1023)),))
    }


async def test_claims_are_named_with_their_cdi_devices(tmp_path: Path) -> None:
    async with asking(tmp_path) as side:
        claims = {"main": (FakeClaim("c-1", name="four", namespace="default"),)}
        side.kubelet.put(FakePod("default", "web", claims=claims))
        await side.server.start()
        side.book.expect(WEB, "1")

        cdi = ("dra.k8s.io/cpu=claim-c-1",)
        claimed = ClaimedDevice("dra.cpu", "default/four", "cpudevnuma000", cdi)
        assert await side.answer() == {"main": ContainerResources((), (claimed,))}
