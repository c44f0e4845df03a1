"""Device plugins: the node's extended resources, served to its kubelet.

One plugin for each resource, each on a socket of its own beside the kubelet's. A device
is one unit of the resource and nothing more: the CPUs of a container are decided at its
creation.

Source:
    Kubernetes, staging/src/k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias

from grpclib.client import Channel, UnaryUnaryMethod
from grpclib.const import Cardinality, Handler, Status
from grpclib.exceptions import GRPCError, StreamTerminatedError
from grpclib.server import Server, Stream

from nri_resmgr.kubelet._gen import deviceplugin_pb2 as pb
from nri_resmgr.kubelet.offers import Offer
from nri_resmgr.log import Logger

log = Logger(__name__)

FOLDER: Final = "device-plugins"
"""Below the kubelet's folder."""

KUBELET_SOCKET: Final = "kubelet.sock"
VERSION: Final = "v1beta1"
HEALTHY: Final = "Healthy"
UNHEALTHY: Final = "Unhealthy"

REGISTER: Final = f"/{VERSION}.Registration/Register"
SERVICE: Final = f"/{VERSION}.DevicePlugin"

_LOOK: Final = 1.0  # seconds between two looks for a kubelet that has started again
_PATIENCE: Final = 5.0  # seconds for an answer of the kubelet
_END: Final = 1.0  # seconds for the last message to a kubelet
_LAST_PAUSE: Final = 60.0  # seconds between two attempts, at most
_OURS: Final = "nri-resmgr-"
_ID: Final = "unit-"

_Identity: TypeAlias = tuple[int, int, int]


class DevicePlugin:
    """Serves one resource; grpclib calls what `__mapping__` returns.

    Args:
        offer: The resource.
    """

    def __init__(self, offer: Offer) -> None:
        self._offer = offer
        self._changed = asyncio.Event()
        self._watches = 0
        self._is_ended = False

    @property
    def offer(self) -> Offer:
        """The resource as the kubelet gets it."""
        return self._offer

    def change(self, offer: Offer) -> None:
        """Send other devices to the kubelet that watches them."""
        if offer != self._offer:
            self._offer = offer
            self._notify()

    async def end(self) -> None:
        """End the streams to the kubelet, which takes that as the plugin's end."""
        self._is_ended = True
        self._notify()
        # A handler that is cancelled leaves its stream open.
        with suppress(TimeoutError):
            async with asyncio.timeout(_END):
                while self._watches:  # noqa: ASYNC110 - a few rounds of the loop
                    await asyncio.sleep(0)

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def __mapping__(self) -> Mapping[str, Handler]:
        """Return the methods of the service."""
        one, many = Cardinality.UNARY_UNARY, Cardinality.UNARY_STREAM
        rows = (
            ("GetDevicePluginOptions", self._options, one, pb.Empty),
            ("ListAndWatch", self._watch, many, pb.Empty),
            (
                "GetPreferredAllocation",
                self._prefer,
                one,
                pb.PreferredAllocationRequest,
            ),
            ("Allocate", self._allocate, one, pb.AllocateRequest),
            ("PreStartContainer", self._start, one, pb.PreStartContainerRequest),
        )
        answers = {
            "GetDevicePluginOptions": pb.DevicePluginOptions,
            "ListAndWatch": pb.ListAndWatchResponse,
            "GetPreferredAllocation": pb.PreferredAllocationResponse,
            "Allocate": pb.AllocateResponse,
            "PreStartContainer": pb.PreStartContainerResponse,
        }
        return {
            f"{SERVICE}/{name}": Handler(call, cardinality, request, answers[name])
            for name, call, cardinality, request in rows
        }

    async def _options(self, stream: Stream[pb.Empty, pb.DevicePluginOptions]) -> None:
        await stream.recv_message()
        await stream.send_message(options())

    async def _watch(self, stream: Stream[pb.Empty, pb.ListAndWatchResponse]) -> None:
        await stream.recv_message()
        self._watches += 1
        try:
            while not self._is_ended:
                # Before the message is sent: a change meanwhile is not missed.
                changed = self._changed
                await stream.send_message(devices_of(self._offer))
                await changed.wait()
            await stream.send_trailing_metadata()
        finally:
            self._watches -= 1

    async def _prefer(
        self,
        stream: Stream[pb.PreferredAllocationRequest, pb.PreferredAllocationResponse],
    ) -> None:
        request = await stream.recv_message()
        asked = request.container_requests if request else ()
        await stream.send_message(
            pb.PreferredAllocationResponse(
                container_responses=[
                    pb.ContainerPreferredAllocationResponse(deviceIDs=_preferred(one))
                    for one in asked
                ]
            )
        )

    async def _allocate(
        self, stream: Stream[pb.AllocateRequest, pb.AllocateResponse]
    ) -> None:
        """Return the environment of containers; the same devices give the same one."""
        request = await stream.recv_message()
        asked = request.container_requests if request else ()
        for one in asked:
            self._check(one.devices_ids)
        await stream.send_message(
            pb.AllocateResponse(
                container_responses=[
                    pb.ContainerAllocateResponse(
                        envs=self._offer.variables(len(set(one.devices_ids)))
                    )
                    for one in asked
                ]
            )
        )

    async def _start(
        self, stream: Stream[pb.PreStartContainerRequest, pb.PreStartContainerResponse]
    ) -> None:
        # Not asked for by our options.
        await stream.recv_message()
        await stream.send_message(pb.PreStartContainerResponse())

    def _check(self, ids: Iterable[str]) -> None:
        known = {_id(number) for number in range(self._offer.capacity)}
        if unknown := sorted(set(ids) - known):
            why = (
                f"{self._offer.name}: this node has no unit {', '.join(unknown)}, "
                f"but {self._offer.capacity} in all"
            )
            raise GRPCError(Status.INVALID_ARGUMENT, why)


def options() -> pb.DevicePluginOptions:
    """Return what our plugins can do."""
    return pb.DevicePluginOptions(get_preferred_allocation_available=True)


def devices_of(offer: Offer) -> pb.ListAndWatchResponse:
    """Return the units of a resource: the last ones are those that are not grantable.

    Units are allocated from the first one (`GetPreferredAllocation`), so that those in
    use stay healthy.
    """
    devices = [
        pb.Device(ID=_id(number), health=HEALTHY if number < offer.value else UNHEALTHY)
        for number in range(offer.capacity)
    ]
    return pb.ListAndWatchResponse(devices=devices)


def _id(number: int) -> str:
    return f"{_ID}{number}"


def _preferred(request: pb.ContainerPreferredAllocationRequest) -> list[str]:
    must = list(request.must_include_deviceIDs)
    others = sorted(set(request.available_deviceIDs) - set(must), key=_order)
    return [*must, *others][: max(request.allocation_size, 0)]


def _order(name: str) -> tuple[int, str]:
    return len(name), name


class _Served:
    """A plugin with its socket."""

    def __init__(self, offer: Offer, folder: Path) -> None:
        digest = hashlib.sha256(offer.name.encode()).hexdigest()
        # A name of a resource may be longer than a socket's path.
        self.path = folder / f"{_OURS}{digest[:12]}.sock"
        self.plugin = DevicePlugin(offer)
        self.kubelet: _Identity | None = None  # that it is registered with
        self._server: Server | None = None

    @property
    def is_there(self) -> bool:
        return self._server is not None and self.path.exists()

    async def serve(self) -> None:
        """Begin to serve; a kubelet that starts removes the socket."""
        await self.close()
        self.plugin = DevicePlugin(self.plugin.offer)
        server = Server([self.plugin])
        await server.start(path=str(self.path))
        self._server = server
        self.path.chmod(0o600)

    async def close(self) -> None:
        """End streams to the kubelet, which then grants nothing of the resource."""
        self.kubelet = None
        if self._server is not None:
            await self.plugin.end()
            # Not `wait_closed`: Python 3.12 waits there for the kubelet to hang up.
            self._server.close()
            self._server = None
        with suppress(FileNotFoundError):
            self.path.unlink()


class DevicePlugins:
    """Keeps one plugin for each offered resource registered with the kubelet.

    Args:
        folder: Of the sockets of device plugins, the kubelet's among these.

    Attributes:
        why: Why resources are not registered; empty if all are.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._offers: tuple[Offer, ...] = ()
        self._served: dict[str, _Served] = {}
        self._changed = asyncio.Event()
        self.why = ""

    def offer(self, offers: Sequence[Offer]) -> None:
        """Replace all resources; those that are not among *offers* are withdrawn."""
        if tuple(offers) == self._offers:
            return
        self._offers = tuple(offers)
        for one in offers:
            if served := self._served.get(one.name):
                served.plugin.change(one)
        self._changed.set()

    @property
    def registered(self) -> tuple[str, ...]:
        """Names of the resources that the present kubelet has accepted."""
        return tuple(name for name, one in self._served.items() if one.kubelet)

    async def run(self) -> None:
        """Serve and register until cancelled; sockets are removed at the end."""
        pause = _LOOK
        try:
            while True:
                self._changed.clear()
                failed = await self._reconcile()
                pause = min(pause * 2, _LAST_PAUSE) if failed else _LOOK
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._changed.wait()
        finally:
            for one in self._served.values():
                await one.close()
            self._served.clear()

    async def _reconcile(self) -> bool:
        """Do what is missing; return whether the kubelet refused something."""
        wanted = {one.name: one for one in self._offers}
        for name in self._served.keys() - wanted.keys():
            await self._served.pop(name).close()
            log.info("device-plugin.withdrawn", resource=name)
        kubelet = identity_of(self._folder / KUBELET_SOCKET)
        if kubelet is None or not wanted:
            # A kubelet that starts removes all sockets first.
            self._report(f"no {self._folder / KUBELET_SOCKET}" if wanted else "")
            return False
        problems = [
            why
            async for why in self._registrations(tuple(wanted.values()), kubelet)
            if why
        ]
        self._report("; ".join(problems))
        return bool(problems)

    async def _registrations(
        self, offers: Sequence[Offer], kubelet: _Identity
    ) -> AsyncIterator[str]:
        for offer in offers:
            if (served := self._served.get(offer.name)) is None:
                served = self._served[offer.name] = _Served(offer, self._folder)
            if served.kubelet == kubelet and served.is_there:
                continue
            try:
                if served.kubelet is not None or not served.is_there:
                    await served.serve()
                await self._register(served)
            except (GRPCError, StreamTerminatedError, TimeoutError, OSError) as error:
                text = error.message if isinstance(error, GRPCError) else str(error)
                yield f"{offer.name}: {text or type(error).__name__}"
            else:
                served.kubelet = kubelet
                log.info(
                    "device-plugin.registered", resource=offer.name, units=offer.value
                )

    async def _register(self, served: _Served) -> None:
        channel = Channel(path=str(self._folder / KUBELET_SOCKET))
        register = UnaryUnaryMethod(channel, REGISTER, pb.RegisterRequest, pb.Empty)
        request = pb.RegisterRequest(
            version=VERSION,
            endpoint=served.path.name,
            resource_name=served.plugin.offer.name,
            options=options(),
        )
        try:
            await register(request, timeout=_PATIENCE)
        finally:
            channel.close()

    def _report(self, why: str) -> None:
        if why != self.why:
            self.why = why
            if why:
                log.warning("device-plugin.not-registered", why=why)


def identity_of(path: Path) -> _Identity | None:
    """Return the identity of a socket, which changes with each bind; None for none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_ctime_ns
