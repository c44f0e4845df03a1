"""The kubelet's Pods API as a double, with its order of events and its limits.

Source:
    Kubernetes, pkg/kubelet/pods/pods_api.go, 1.36 and the beta of 1.37; KEP-4188.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from time import monotonic
from typing import Final

from grpclib import GRPCError, Status
from grpclib.const import Cardinality, Handler
from grpclib.server import Stream

from nri_resmgr.kubelet._gen import core_pb2 as core
from nri_resmgr.kubelet._gen import pods_pb2 as pb

LIST: Final = "/v1alpha1.Pods/ListPods"
GET: Final = "/v1alpha1.Pods/GetPod"
WATCH: Final = "/v1alpha1.Pods/WatchPods"

_QUEUE: Final = 100  # events of each client, as in the kubelet
_BURST: Final = 10
_RATE: Final = 100.0  # calls a second


class PodsService:
    """Serves pods that a test adds, changes and deletes.

    Args:
        is_young: Whether not all sources of pods have synchronized: a 1.37 kubelet
            answers FAILED_PRECONDITION then.

    Attributes:
        is_limited: Whether calls are limited as the kubelet's.
        loses_events: Whether watches get no events.
    """

    def __init__(self, *, is_young: bool = False) -> None:
        self.is_young = is_young
        self.is_limited = True
        self.loses_events = False
        self._pods: dict[str, core.Pod] = {}
        self._watches: list[asyncio.Queue[pb.WatchPodsEvent | None]] = []
        self._calls: deque[float] = deque()

    def __mapping__(self) -> dict[str, Handler]:
        unary, stream = Cardinality.UNARY_UNARY, Cardinality.UNARY_STREAM
        return {
            LIST: Handler(self._list, unary, pb.ListPodsRequest, pb.ListPodsResponse),
            GET: Handler(self._get, unary, pb.GetPodRequest, pb.GetPodResponse),
            WATCH: Handler(self._watch, stream, pb.WatchPodsRequest, pb.WatchPodsEvent),
        }

    def put(self, *pods: core.Pod) -> None:
        """Add pods, or change them."""
        for pod in pods:
            uid = pod.metadata.uid
            kind = pb.MODIFIED if uid in self._pods else pb.ADDED
            self._pods[uid] = pod
            self.send(pb.WatchPodsEvent(type=kind, pod=self.encoded(pod)))

    def put_later(self, pod: core.Pod, seconds: float) -> None:
        """Add a pod after a while."""
        asyncio.get_running_loop().call_later(seconds, self.put, pod)

    def delete(self, uid: str) -> None:
        """Delete a pod: its event has names only."""
        meta = self._pods.pop(uid).metadata
        gone = core.Pod(metadata=meta).SerializeToString()
        self.send(pb.WatchPodsEvent(type=pb.DELETED, pod=gone))

    def forget_all(self) -> None:
        """Know no pods, as a kubelet that has just started; no event says so."""
        self._pods.clear()

    def encoded(self, one: core.Pod) -> bytes:
        """Encode a pod; a subclass may add what a real one has beside."""
        return one.SerializeToString()

    def send(self, event: pb.WatchPodsEvent) -> None:
        """Send an event to all watches; those that are too slow are ended."""
        for queue in () if self.loses_events else tuple(self._watches):
            if queue.qsize() >= _QUEUE:
                self._watches.remove(queue)
                while not queue.empty():
                    queue.get_nowait()
                queue.put_nowait(None)
            else:
                queue.put_nowait(event)

    async def _list(
        self, stream: Stream[pb.ListPodsRequest, pb.ListPodsResponse]
    ) -> None:
        await stream.recv_message()
        self._check()
        await stream.send_message(
            pb.ListPodsResponse(pods=[self.encoded(one) for one in self._sorted()])
        )

    async def _get(self, stream: Stream[pb.GetPodRequest, pb.GetPodResponse]) -> None:
        request = await stream.recv_message()
        self._check()
        pod = self._pods.get(request.podUID if request else "")
        if pod is None:
            raise GRPCError(Status.NOT_FOUND, "pod not found")
        await stream.send_message(pb.GetPodResponse(pod=self.encoded(pod)))

    async def _watch(
        self, stream: Stream[pb.WatchPodsRequest, pb.WatchPodsEvent]
    ) -> None:
        await stream.recv_message()
        self._check(is_limited=False)
        queue: asyncio.Queue[pb.WatchPodsEvent | None] = asyncio.Queue()
        # Before the list, as in the kubelet: so some pods come twice.
        self._watches.append(queue)
        try:
            for pod in self._sorted():
                event = pb.WatchPodsEvent(type=pb.ADDED, pod=self.encoded(pod))
                await stream.send_message(event)
            await stream.send_message(pb.WatchPodsEvent(type=pb.INITIAL_SYNC_COMPLETE))
            while (next_event := await queue.get()) is not None:
                await stream.send_message(next_event)
        finally:
            if queue in self._watches:
                self._watches.remove(queue)
        raise GRPCError(Status.RESOURCE_EXHAUSTED, "client is too slow")

    def _sorted(self) -> list[core.Pod]:
        return [self._pods[uid] for uid in sorted(self._pods)]

    def _check(self, *, is_limited: bool = True) -> None:
        if self.is_young:
            raise GRPCError(Status.FAILED_PRECONDITION, "pods are not synced")
        if not is_limited or not self.is_limited:
            return
        now = monotonic()
        while self._calls and self._calls[0] < now - _BURST / _RATE:
            self._calls.popleft()
        if len(self._calls) >= _BURST:
            raise GRPCError(Status.RESOURCE_EXHAUSTED, "rejected by rate limit")
        self._calls.append(now)


def pod(
    uid: str,
    *containers: core.Container,
    name: str = "",
    namespace: str = "default",
    priority: int | None = None,
) -> core.Pod:
    """Make a pod; those of *containers* with a restart policy are sidecars."""
    meta = core.ObjectMeta(name=name or uid, namespace=namespace, uid=uid)
    init = [one for one in containers if one.restartPolicy]
    regular = [one for one in containers if not one.restartPolicy]
    spec = core.PodSpec(containers=regular, initContainers=init, priority=priority)
    return core.Pod(metadata=meta, spec=spec)


def container(
    name: str,
    requests: dict[str, str] | None = None,
    limits: dict[str, str] | None = None,
    *,
    restart_policy: str = "",
) -> core.Container:
    """Make a container, as it is in a pod's specification."""
    return core.Container(
        name=name,
        resources=resources(requests, limits),
        restartPolicy=restart_policy,
    )


def resources(
    requests: dict[str, str] | None = None, limits: dict[str, str] | None = None
) -> core.ResourceRequirements:
    """Make requests and limits; as in the API, a request defaults to its limit."""
    found = core.ResourceRequirements()
    for name, text in (limits or {}).items():
        found.limits[name].string = text
    for name, text in {**(limits or {}), **(requests or {})}.items():
        found.requests[name].string = text
    return found


def status(
    name: str,
    requests: dict[str, str] | None = None,
    limits: dict[str, str] | None = None,
    *,
    allocated: Iterable[tuple[str, str]] = (),
) -> core.ContainerStatus:
    """Make the status of a container: what is in force."""
    found = core.ContainerStatus(name=name, resources=resources(requests, limits))
    for resource, text in allocated:
        found.allocatedResources[resource].string = text
    return found
