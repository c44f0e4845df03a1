"""A small service on a socket of the kubelet, for tests of connections."""

from __future__ import annotations

import asyncio
from pathlib import Path

from grpclib.client import Channel, UnaryUnaryMethod
from grpclib.const import Cardinality, Handler
from grpclib.server import Stream

from nri_resmgr.kubelet._gen.pods_pb2 import GetPodRequest, GetPodResponse
from nri_resmgr.kubelet.connection import KubeletConnection, Pauses
from nri_resmgr.kubelet.sockets import KubeletService

SERVICE = KubeletService("test.Greeting", "greeting/greeting.sock", "greet by hand")
METHOD = "/test.Greeting/Greet"

FAST = Pauses(first=0.01, last=0.02, unserved=0.02)


class Greeting:
    """Answers with as many bytes as it is asked for."""

    async def greet(self, stream: Stream[GetPodRequest, GetPodResponse]) -> None:
        request = await stream.recv_message()
        assert request is not None
        await stream.send_message(GetPodResponse(pod=bytes(int(request.podUID))))

    def __mapping__(self) -> dict[str, Handler]:
        return {
            METHOD: Handler(
                self.greet, Cardinality.UNARY_UNARY, GetPodRequest, GetPodResponse
            )
        }


class Client:
    """Asks for *size* bytes on each connection, and notes how many came."""

    def __init__(self, folder: Path, size: int = 3) -> None:
        self.connection = KubeletConnection(SERVICE, folder, FAST)
        self.size = size
        self.answers: list[int] = []
        self.came = asyncio.Event()

    async def use(self, channel: Channel) -> None:
        method = UnaryUnaryMethod(channel, METHOD, GetPodRequest, GetPodResponse)
        answer = await method(GetPodRequest(podUID=str(self.size)), timeout=30)
        self.connection.answered()
        self.answers.append(len(answer.pod))
        self.came.set()
        await asyncio.sleep(0.01)

    async def run(self) -> None:
        await self.connection.keep(self.use)

    async def answer(self) -> int:
        """Wait for the next answer."""
        self.came.clear()
        async with asyncio.timeout(60):
            await self.came.wait()
        return self.answers[-1]

    async def problem(self, part: str) -> str:
        """Wait until the problem says *part*."""
        async with asyncio.timeout(60):
            while part not in self.connection.problem:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        return self.connection.problem
