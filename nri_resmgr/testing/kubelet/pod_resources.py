"""PodResources of a kubelet, for tests: devices and claims of pods."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Iterable, Mapping, Sequence
from time import monotonic
from typing import Final

import msgspec
from grpclib import GRPCError, Status
from grpclib.const import Cardinality, Handler
from grpclib.server import Stream

from nri_resmgr.kubelet._gen import podresources_pb2 as pb

LIST: Final = "/v1.PodResourcesLister/List"
GET: Final = "/v1.PodResourcesLister/Get"

# Source: Kubernetes, pkg/kubelet/apis/grpc/ratelimit.go.
_BURST: Final = 10
_PER_SECOND: Final = 100.0


class GetLevel(enum.Enum):
    """What a kubelet answers to Get, by its version.

    `NONE` is one before 1.27, `OFF` one whose feature gate is off.
    """

    SERVED = enum.auto()
    OFF = enum.auto()
    NONE = enum.auto()


class FakeDevice(msgspec.Struct, frozen=True):
    """Devices of a resource that are close to the same nodes; none if unknown."""

    resource: str
    ids: tuple[str, ...]
    nodes: tuple[int, ...] = ()


class FakeClaim(msgspec.Struct, frozen=True):
    """A prepared claim of a container: as dra-driver-cpu has it by default.

    Attributes:
        cdi: Its CDI device; by default that of the UID.
    """

    uid: str
    driver: str = "dra.cpu"
    name: str = "cpus"
    namespace: str = "default"
    cdi: str | None = None


class FakePod(msgspec.Struct, frozen=True):
    """A pod of the kubelet: the devices and claims of its containers by name."""

    namespace: str
    name: str
    devices: Mapping[str, tuple[FakeDevice, ...]] = {}
    claims: Mapping[str, tuple[FakeClaim, ...]] = {}
    containers: tuple[str, ...] = ()


class FakePodResources:
    """Serves ``v1.PodResourcesLister``; see `nri_resmgr.testing.kubelet.server`.

    Args:
        pods: The pods that it knows.

    Attributes:
        level: Whether it serves Get.
        hangs: Whether calls are never answered; may be set at any time.
        exhausted: How many calls exceeded the kubelet's rate limit.
    """

    def __init__(self, pods: Sequence[FakePod] = ()) -> None:
        self.level = GetLevel.SERVED
        self.hangs = False
        self.exhausted = 0
        self._pods = {(one.namespace, one.name): one for one in pods}
        self._tokens, self._at = float(_BURST), monotonic()

    def put(self, pod: FakePod) -> None:
        """Admit a pod, or replace it."""
        self._pods[pod.namespace, pod.name] = pod

    def drop(self, namespace: str, name: str) -> None:
        """Forget a pod that has ended."""
        self._pods.pop((namespace, name), None)

    def __mapping__(self) -> dict[str, Handler]:
        """Return the handlers as grpclib takes them."""
        found = {
            LIST: Handler(
                self._list,
                Cardinality.UNARY_UNARY,
                pb.ListPodResourcesRequest,
                pb.ListPodResourcesResponse,
            )
        }
        if self.level is not GetLevel.NONE:
            found[GET] = Handler(
                self._get,
                Cardinality.UNARY_UNARY,
                pb.GetPodResourcesRequest,
                pb.GetPodResourcesResponse,
            )
        return found

    async def _list(
        self,
        stream: Stream[pb.ListPodResourcesRequest, pb.ListPodResourcesResponse],
    ) -> None:
        await stream.recv_message()
        await self._limit()
        pods = [message_of(one) for one in self._pods.values()]
        await stream.send_message(pb.ListPodResourcesResponse(pod_resources=pods))

    async def _get(
        self, stream: Stream[pb.GetPodResourcesRequest, pb.GetPodResourcesResponse]
    ) -> None:
        request = await stream.recv_message()
        await self._limit()
        if self.level is GetLevel.OFF:
            raise GRPCError(Status.UNKNOWN, "PodResources API Get method disabled")
        if request is None:
            return
        pod = self._pods.get((request.pod_namespace, request.pod_name))
        if pod is None:
            name = f"{request.pod_name} in namespace {request.pod_namespace}"
            raise GRPCError(Status.UNKNOWN, f"pod {name} not found")
        await stream.send_message(
            pb.GetPodResourcesResponse(pod_resources=message_of(pod))
        )

    async def _limit(self) -> None:
        if self.hangs:
            await asyncio.Event().wait()
        now = monotonic()
        earned = (now - self._at) * _PER_SECOND
        self._tokens, self._at = min(self._tokens + earned, float(_BURST)), now
        if self._tokens < 1:
            self.exhausted += 1
            raise GRPCError(Status.RESOURCE_EXHAUSTED, "rejected by rate limit")
        self._tokens -= 1


def message_of(pod: FakePod) -> pb.PodResources:
    """Make the message about a pod."""
    names = dict.fromkeys((*pod.containers, *pod.devices, *pod.claims))
    return pb.PodResources(
        name=pod.name,
        namespace=pod.namespace,
        containers=[
            pb.ContainerResources(
                name=name,
                devices=map(_device, pod.devices.get(name, ())),
                dynamic_resources=_claims(pod.claims.get(name, ())),
            )
            for name in names
        ],
    )


def _device(one: FakeDevice) -> pb.ContainerDevices:
    nodes = [pb.NUMANode(ID=node) for node in one.nodes]
    return pb.ContainerDevices(
        resource_name=one.resource,
        device_ids=one.ids,
        topology=pb.TopologyInfo(nodes=nodes) if nodes else None,
    )


def _claims(claims: Iterable[FakeClaim]) -> list[pb.DynamicResource]:
    return [
        pb.DynamicResource(
            claim_name=one.name,
            claim_namespace=one.namespace,
            claim_resources=[
                pb.ClaimResource(
                    driver_name=one.driver,
                    pool_name="node",
                    device_name="cpudevnuma000",
                    cdi_devices=[
                        pb.CDIDevice(
                            name=f"dra.k8s.io/cpu=claim-{one.uid}"
                            if one.cdi is None
                            else one.cdi
                        )
                    ],
                )
            ],
        )
        for one in claims
    ]
