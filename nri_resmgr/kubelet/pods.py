"""The client of the kubelet's Pods API: feeds the cache of pods.

Imported late, as `nri_resmgr.kubelet.connection` is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import Final, Never

from grpclib import GRPCError, Status
from grpclib.client import Channel, UnaryStreamMethod, UnaryUnaryMethod

from nri_resmgr.kubelet._gen.pods_pb2 import (
    DELETED,
    INITIAL_SYNC_COMPLETE,
    GetPodRequest,
    GetPodResponse,
    WatchPodsEvent,
    WatchPodsRequest,
)
from nri_resmgr.kubelet.connection import BROKEN, KubeletConnection
from nri_resmgr.kubelet.pod_cache import PodCache
from nri_resmgr.kubelet.pod_reader import read_pod

GET: Final = "/v1alpha1.Pods/GetPod"
WATCH: Final = "/v1alpha1.Pods/WatchPods"

# A watch begins with all pods, or at least with the end of their list.
_FIRST: Final = 10.0  # seconds

# GetPod takes some milliseconds; the watch has the pod soon anyway.
_LONGEST: Final = 5.0  # seconds

# The kubelet answers ten calls at once and 100 a second, of all its clients.
_AT_ONCE: Final = 4
_LIMITED: Final = 0.1  # seconds


class PodsClient:
    """Keeps a cache as the kubelet's pods are.

    Args:
        connection: To the service.
        cache: What it feeds.
        on_list: Called when the kubelet has listed all pods.
    """

    def __init__(
        self,
        connection: KubeletConnection,
        cache: PodCache,
        on_list: Callable[[], object],
    ) -> None:
        self._connection = connection
        self._cache = cache
        self._on_list = on_list
        self._has_listed = False

    @property
    def problem(self) -> str:
        """Why pods may be unknown; empty while all are known."""
        if problem := self._connection.problem:
            return problem
        return "" if self._has_listed else "the kubelet has not listed all pods yet"

    async def run(self) -> Never:
        """Follow the kubelet's pods until cancelled."""
        await self._connection.keep(self._use)

    async def _use(self, channel: Channel) -> None:
        tasks = [
            asyncio.create_task(self._get_missing(channel)) for _ in range(_AT_ONCE)
        ]
        try:
            await self._watch(channel)
        finally:
            self._has_listed = False
            await _end(tasks)

    async def _watch(self, channel: Channel) -> None:
        watch = UnaryStreamMethod(channel, WATCH, WatchPodsRequest, WatchPodsEvent)
        async with watch.open() as stream:
            async with asyncio.timeout(_FIRST):
                await stream.send_message(WatchPodsRequest(), end=True)
                event = await stream.recv_message()
            while event is not None:
                self._connection.answered()
                self._take(event)
                # Requests of the runtime come first, however many events wait.
                await asyncio.sleep(0)
                event = await stream.recv_message()

    def _take(self, event: WatchPodsEvent) -> None:
        if event.type == INITIAL_SYNC_COMPLETE:
            self._has_listed = True
            self._on_list()
        elif event.type != DELETED and (pod := read_pod(event.pod)) is not None:
            self._cache.put(pod)

    async def _get_missing(self, channel: Channel) -> Never:
        get = UnaryUnaryMethod(channel, GET, GetPodRequest, GetPodResponse)
        while True:
            await self._cache.wanted.wait()
            uid = self._cache.take_missing()
            if not uid:
                continue
            try:
                answer = await get(GetPodRequest(podUID=uid), timeout=_LONGEST)
            except GRPCError as error:
                if error.status is Status.RESOURCE_EXHAUSTED:
                    await asyncio.sleep(_LIMITED)
                    self._cache.want(uid)
            except BROKEN:
                # The watch has it once it is there; where the connection has broken,
                # the next one begins with all pods.
                await asyncio.sleep(_LIMITED)
            else:
                if (pod := read_pod(answer.pod)) is not None:
                    self._cache.put(pod)


async def _end(tasks: Collection[asyncio.Task[Never]]) -> None:
    """Cancel calls until they have ended.

    grpclib cancels the task of a call whose connection is lost, and makes an error of
    that. A cancellation of ours that comes at the same time is lost with it.
    """
    pending = set(tasks)
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=_LIMITED)
