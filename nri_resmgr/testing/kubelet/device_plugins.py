"""The kubelet's side of device plugins: its registration, and its device manager.

Source:
    Kubernetes, pkg/kubelet/cm/devicemanager.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

import attrs
from grpclib.client import Channel, UnaryStreamMethod, UnaryUnaryMethod
from grpclib.const import Cardinality, Handler, Status
from grpclib.exceptions import GRPCError, StreamTerminatedError
from grpclib.server import Stream

from nri_resmgr.kubelet._gen import deviceplugin_pb2 as pb
from nri_resmgr.kubelet.device_plugin import (
    HEALTHY,
    KUBELET_SOCKET,
    REGISTER,
    SERVICE,
    VERSION,
)
from nri_resmgr.testing.kubelet.server import KubeletServer

# Of the event loop, in which the other end of a closed connection closes it, too.
_ROUNDS: Final = 8

_PATIENCE: Final = 30.0  # seconds; the machine may be busy with other tests


@attrs.define(eq=False)
class DeviceEndpoint:
    """A registered plugin.

    Attributes:
        request: With which it registered.
        devices: Health by id, as the plugin sent it last.
        in_use: Ids by the name of the container that has them.
        is_stopped: Whether its stream has ended.
    """

    request: pb.RegisterRequest
    channel: Channel
    devices: dict[str, str] = attrs.field(factory=dict)
    in_use: dict[str, tuple[str, ...]] = attrs.field(factory=dict)
    is_stopped: bool = False

    @property
    def healthy(self) -> frozenset[str]:
        """Ids of healthy devices: the node's allocatable number."""
        return frozenset(one for one, how in self.devices.items() if how == HEALTHY)


class DevicePluginManager:
    """A kubelet that knows device plugins only; an asynchronous context manager.

    Args:
        folder: Its ``device-plugins``.
        version: That it supports.

    Attributes:
        refuses: Answer to registrations; empty to accept them.
        endpoints: Registered plugins by resource; those of a restart are forgotten.
        server: Serves the registration; it can fail and delay.
        registrations: Names of resources in the order of their registrations.
    """

    def __init__(self, folder: Path, version: str = VERSION) -> None:
        self._folder = folder
        self.version = version
        self.refuses = ""
        self.endpoints: dict[str, DeviceEndpoint] = {}
        self.registrations: list[str] = []
        self._allocated: dict[str, dict[str, tuple[str, ...]]] = {}
        self.server = KubeletServer(folder / KUBELET_SOCKET, self)
        self._watches: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Condition()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self, *, removes: bool = True) -> None:
        """Remove all sockets, as a kubelet does, and serve."""
        if removes:
            shutil.rmtree(self._folder, ignore_errors=True)
        await self.server.start()

    async def stop(self) -> None:
        """Hang up; the sockets stay, as after a crash."""
        await self.server.stop(leaves_socket=True)
        for task in self._watches:
            task.cancel()
        await asyncio.gather(*self._watches, return_exceptions=True)
        for one in self.endpoints.values():
            one.channel.close()
        self.endpoints.clear()
        for _ in range(_ROUNDS):
            await asyncio.sleep(0)

    async def restart(self, *, removes: bool = True) -> None:
        """End, and start with the allocations of before, as from its checkpoint.

        Args:
            removes: Whether it removes the sockets of plugins.
        """
        await self.stop()
        await self.start(removes=removes)

    async def until(
        self, resource: str, *, allocatable: int, capacity: int | None = None
    ) -> DeviceEndpoint:
        """Wait until a resource has so many healthy devices, and so many in all."""

        def is_there() -> bool:
            found = self.endpoints.get(resource)
            return (
                found is not None
                and not found.is_stopped
                and len(found.healthy) == allocatable
                and capacity in (None, len(found.devices))
            )

        async with asyncio.timeout(_PATIENCE), self._changed:
            await self._changed.wait_for(is_there)
        return self.endpoints[resource]

    async def until_stopped(self, endpoint: DeviceEndpoint) -> None:
        """Wait until a plugin has ended its stream."""
        async with asyncio.timeout(_PATIENCE), self._changed:
            await self._changed.wait_for(lambda: endpoint.is_stopped)

    async def allocate(
        self, resource: str, container: str, count: int
    ) -> Mapping[str, str]:
        """Admit a container; return the environment that it gets.

        Raises:
            ValueError: The node has too few; the pod would be refused.
            GRPCError: The plugin refuses.
        """
        endpoint = self.endpoints[resource]
        used = endpoint.in_use
        chosen = used.get(container)  # the same again after a restart of the kubelet
        if chosen is None:
            free = endpoint.healthy - {one for ids in used.values() for one in ids}
            if len(free) < count:
                raise ValueError(
                    f"{resource}: {count} requested, {len(free)} available"
                )
            chosen = await self._preferred(endpoint, free, count)
        request = pb.AllocateRequest(
            container_requests=[pb.ContainerAllocateRequest(devices_ids=chosen)]
        )
        allocate = UnaryUnaryMethod(
            endpoint.channel,
            f"{SERVICE}/Allocate",
            pb.AllocateRequest,
            pb.AllocateResponse,
        )
        answer = await allocate(request, timeout=_PATIENCE)
        endpoint.in_use[container] = chosen
        (response,) = answer.container_responses
        return dict(response.envs)

    async def allocate_ids(self, resource: str, *ids: str) -> pb.AllocateResponse:
        """Send an allocation as it is.

        Raises:
            GRPCError: The plugin refuses.
        """
        allocate = UnaryUnaryMethod(
            self.endpoints[resource].channel,
            f"{SERVICE}/Allocate",
            pb.AllocateRequest,
            pb.AllocateResponse,
        )
        asked = [pb.ContainerAllocateRequest(devices_ids=ids)]
        return await allocate(pb.AllocateRequest(container_requests=asked))

    async def options_of(self, resource: str) -> pb.DevicePluginOptions:
        """Ask a plugin for its options."""
        call = UnaryUnaryMethod(
            self.endpoints[resource].channel,
            f"{SERVICE}/GetDevicePluginOptions",
            pb.Empty,
            pb.DevicePluginOptions,
        )
        return await call(pb.Empty(), timeout=_PATIENCE)

    async def start_container(self, resource: str, *ids: str) -> None:
        """Call ``PreStartContainer``."""
        call = UnaryUnaryMethod(
            self.endpoints[resource].channel,
            f"{SERVICE}/PreStartContainer",
            pb.PreStartContainerRequest,
            pb.PreStartContainerResponse,
        )
        request = pb.PreStartContainerRequest(devices_ids=ids)
        await call(request, timeout=_PATIENCE)

    def free(self, resource: str, container: str) -> None:
        """Take the devices of a container back; no plugin is asked."""
        self.endpoints[resource].in_use.pop(container)

    async def preferred(
        self, resource: str, available: set[str], must: tuple[str, ...], count: int
    ) -> tuple[str, ...]:
        """Ask a plugin which devices it prefers."""
        endpoint = self.endpoints[resource]
        return await self._preferred(endpoint, frozenset(available), count, must)

    def __mapping__(self) -> Mapping[str, Handler]:
        """Return the methods of the registration service."""
        cardinality = Cardinality.UNARY_UNARY
        handler = Handler(self._register, cardinality, pb.RegisterRequest, pb.Empty)
        return {REGISTER: handler}

    async def _preferred(
        self,
        endpoint: DeviceEndpoint,
        free: frozenset[str],
        count: int,
        must: tuple[str, ...] = (),
    ) -> tuple[str, ...]:
        call = UnaryUnaryMethod(
            endpoint.channel,
            f"{SERVICE}/GetPreferredAllocation",
            pb.PreferredAllocationRequest,
            pb.PreferredAllocationResponse,
        )
        asked = pb.ContainerPreferredAllocationRequest(
            available_deviceIDs=sorted(free),
            must_include_deviceIDs=must,
            allocation_size=count,
        )
        answer = await call(
            pb.PreferredAllocationRequest(container_requests=[asked]),
            timeout=_PATIENCE,
        )
        return tuple(answer.container_responses[0].deviceIDs)

    async def _register(self, stream: Stream[pb.RegisterRequest, pb.Empty]) -> None:
        request = await stream.recv_message()
        if request is None:
            return
        if request.version != self.version:
            why = f"requested API version {request.version!r} is not supported"
            raise GRPCError(Status.UNKNOWN, why)
        if self.refuses:
            raise GRPCError(Status.UNKNOWN, self.refuses)
        await stream.send_message(pb.Empty())
        self.registrations.append(request.resource_name)
        # A plugin that registers again replaces itself; containers keep their devices.
        name = request.resource_name
        kept = self._allocated.setdefault(name, {})
        channel = Channel(path=str(self._folder / request.endpoint))
        endpoint = DeviceEndpoint(request, channel, in_use=kept)
        self.endpoints[name] = endpoint
        task = asyncio.create_task(self._watch(endpoint))
        self._watches.add(task)
        task.add_done_callback(self._watches.discard)

    async def _watch(self, endpoint: DeviceEndpoint) -> None:
        method = UnaryStreamMethod(
            endpoint.channel,
            f"{SERVICE}/ListAndWatch",
            pb.Empty,
            pb.ListAndWatchResponse,
        )
        with suppress(GRPCError, StreamTerminatedError, OSError):
            async with method.open() as stream:
                await stream.send_message(pb.Empty(), end=True)
                async for answer in stream:
                    endpoint.devices = {one.ID: one.health for one in answer.devices}
                    await self._notify()
        endpoint.is_stopped = True
        endpoint.channel.close()
        await self._notify()

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()
