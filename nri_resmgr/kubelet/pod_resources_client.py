"""The client of the kubelet's PodResources API.

It needs grpclib, and is imported as late as `nri_resmgr.kubelet.connection`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from time import monotonic
from typing import Final

from grpclib import GRPCError, Status
from grpclib.client import Channel, UnaryUnaryMethod

from nri_resmgr.kubelet._gen import podresources_pb2 as pb
from nri_resmgr.kubelet.connection import KubeletConnection
from nri_resmgr.kubelet.pod_resources import (
    Answer,
    AssignedDevice,
    ClaimedDevice,
    ContainerResources,
    PodName,
    PodResources,
    Wish,
)
from nri_resmgr.values import NodeSet

LIST: Final = "/v1.PodResourcesLister/List"
GET: Final = "/v1.PodResourcesLister/Get"

# Source: Kubernetes, pkg/kubelet/apis/grpc/ratelimit.go: a limiter for all clients
# together. Half of it leaves room for others.
_BURST: Final = 5
_PER_SECOND: Final = 50.0

_TIMEOUT: Final = 5.0  # seconds
_BUSY: Final = 0.2  # seconds

# A kubelet that was just started learns of pods from the API server.
_NOT_FOUND: Final = (0.1, 0.5, 2.0, 5.0, 15.0, 60.0)  # seconds until the next question

# Without Get, one List answers for all pods that are waiting by then.
_LISTS: Final = 1.0  # seconds between them

# Bounds for a kubelet out of order: nodes of 64 sockets, devices of a container.
_MOST_NODES: Final = 1024
_MOST_DEVICES: Final = 256


class PodResourcesClient:
    """Asks the kubelet about pods: all at once after connecting, then one by one.

    Args:
        connection: To the service.
        book: The pods to ask about, and the answers.
    """

    def __init__(self, connection: KubeletConnection, book: PodResources) -> None:
        self._connection = connection
        self._book = book
        self._tokens, self._at = float(_BURST), monotonic()
        self._has_get = True
        self._misses: Counter[Wish] = Counter()

    async def run(self) -> None:
        """Ask until cancelled."""
        await self._connection.keep(self._use)

    async def _use(self, channel: Channel) -> None:
        get = UnaryUnaryMethod(
            channel, GET, pb.GetPodResourcesRequest, pb.GetPodResourcesResponse
        )
        self._has_get = True  # the kubelet may have been replaced
        await self._list(channel)
        self._connection.answered()
        for wish in self._book.wishes():
            self._book.ask(wish)
        while True:
            wish = await self._book.next_wish()
            if not self._has_get:
                await asyncio.sleep(_LISTS)
                await self._list(channel)
                self._missing(wish)
                continue
            try:
                await self._limit()
                request = pb.GetPodResourcesRequest(
                    pod_name=wish.pod.name, pod_namespace=wish.pod.namespace
                )
                reply = await get(request, timeout=_TIMEOUT)
            except GRPCError as error:
                self._refused(wish, error)
            except BaseException:
                self._book.ask_later(wish, 0.0)
                raise
            else:
                self._misses.pop(wish, None)
                self._book.answered(wish, answer_of(reply.pod_resources))

    async def _list(self, channel: Channel) -> None:
        wishes = self._book.wishes()
        method = UnaryUnaryMethod(
            channel, LIST, pb.ListPodResourcesRequest, pb.ListPodResourcesResponse
        )
        await self._limit()
        reply = await method(pb.ListPodResourcesRequest(), timeout=_TIMEOUT)
        found = {PodName(one.namespace, one.name): one for one in reply.pod_resources}
        for wish in wishes:
            if wish.pod in found:
                self._book.answered(wish, answer_of(found[wish.pod]))

    def _refused(self, wish: Wish, error: GRPCError) -> None:
        """Decide what follows on an error.

        Raises:
            GRPCError: It is about the connection, not about the pod.
        """
        text = (error.message or "").lower()
        match error.status:
            case Status.NOT_FOUND:
                self._missing(wish)
            case Status.UNKNOWN if "not found" in text:
                self._missing(wish)
            case Status.RESOURCE_EXHAUSTED:
                self._tokens = 0.0
                self._book.ask_later(wish, _BUSY)
            # By the feature gate KubeletPodResourcesGet.
            case Status.UNKNOWN if "disabled" in text:
                self._without_get(wish)
            case Status.UNIMPLEMENTED:
                self._without_get(wish)
            case _:
                self._book.ask_later(wish, 0.0)
                raise error

    def _without_get(self, wish: Wish) -> None:
        self._has_get = False
        self._book.ask_later(wish, 0.0)

    def _missing(self, wish: Wish) -> None:
        present = set(self._book.wishes())
        for gone in self._misses.keys() - present:
            del self._misses[gone]
        if wish not in present:
            return
        self._misses[wish] += 1
        times = self._misses[wish]
        if times <= len(_NOT_FOUND):  # else it is asked about after a reconnection
            self._book.ask_later(wish, _NOT_FOUND[times - 1])

    async def _limit(self) -> None:
        """Wait for a token."""
        while True:
            now = monotonic()
            earned = (now - self._at) * _PER_SECOND
            self._tokens, self._at = min(self._tokens + earned, float(_BURST)), now
            if self._tokens >= 1:
                self._tokens -= 1
                return
            await asyncio.sleep((1 - self._tokens) / _PER_SECOND)


def answer_of(found: pb.PodResources) -> Answer:
    """Convert the message about a pod."""
    return {
        one.name: ContainerResources(
            tuple(_devices(one.devices))[:_MOST_DEVICES],
            tuple(_claimed(one.dynamic_resources))[:_MOST_DEVICES],
        )
        for one in found.containers
    }


def _devices(found: Iterable[pb.ContainerDevices]) -> Iterable[AssignedDevice]:
    for one in found:
        ids = (node.ID for node in one.topology.nodes)
        nodes = NodeSet.from_iterable(key for key in ids if 0 <= key < _MOST_NODES)
        for key in one.device_ids:
            yield AssignedDevice(one.resource_name, key, nodes)


def _claimed(found: Iterable[pb.DynamicResource]) -> Iterable[ClaimedDevice]:
    for claim in found:
        for one in claim.claim_resources:
            yield ClaimedDevice(
                one.driver_name,
                f"{claim.claim_namespace}/{claim.claim_name}",
                one.device_name,
                tuple(device.name for device in one.cdi_devices),
            )
