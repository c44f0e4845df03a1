"""The kubelet plugin of a DRA driver: registration, claims, and the health of devices.

The kubelet finds the registration socket in a folder that it watches, asks what the
plugin is, and then calls it at its own socket. It prepares the claims of a pod before
it creates the pod's sandbox, and gives each call 45 seconds.
"""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, TypeVar

import msgspec
from grpclib.config import Configuration
from grpclib.const import Cardinality, Handler
from grpclib.server import Server, Stream

from nri_resmgr.kubelet._gen import dra_pb2 as pb
from nri_resmgr.log import Logger
from nri_resmgr.values import HostError, ResmgrError
from nri_resmgr.values.printable import printable
from nri_resmgr.values.shorten import shortened

log = Logger(__name__)

LONGEST_PATH: Final = 107
"""Bytes of the path of a unix socket."""

_TYPE: Final = "DRAPlugin"
_VERSIONS: Final = ("v1", "v1beta1")
_HEALTH_VERSIONS: Final = ("v1", "v1alpha1")
_HEALTH_TIMEOUT: Final = 60  # seconds after which the kubelet takes it as unknown
_HEALTH_INTERVAL: Final = 20.0  # seconds

_PLUGIN: Final = "/k8s.io.kubelet.pkg.apis.dra.{}.DRAPlugin/"
_HEALTH: Final = "/{}.DRAResourceHealth/"
_REGISTRATION: Final = "/pluginregistration.Registration/"

# A request names the claims of one pod.
_WINDOW: Final = 64 << 10

# An event of a pod, which shows it, has 1024.
_LONGEST_ERROR: Final = 1000  # characters


@dataclass(eq=False)
class SocketPathTooLong(HostError):
    """The path of a socket has more bytes than a unix socket can have."""

    path: Path

    def __str__(self) -> str:
        return (
            f"{self.path}: has {len(os.fsencode(self.path))} bytes, and the path of a "
            f"socket at most {LONGEST_PATH}; use a shorter --kubelet-dir"
        )


@dataclass(eq=False)
class SocketUnusable(HostError):
    """A socket cannot be made."""

    path: Path
    why: str

    def __str__(self) -> str:
        return f"{self.path}: {self.why}"


class ClaimName(msgspec.Struct, frozen=True):
    """A claim as the kubelet names it."""

    namespace: str
    name: str
    uid: str


class PreparedDevice(msgspec.Struct, frozen=True):
    """A device of a prepared claim.

    Attributes:
        request: The name of the request in the claim.
        pool: Its pool in the cluster.
        device: Its name in the pool.
        cdi: Names of CDI devices, which the runtime adds to containers.
        share: The id of this share of the device; empty if it is not shared.
    """

    request: str
    pool: str
    device: str
    cdi: tuple[str, ...]
    share: str = ""


class ClaimService(Protocol):
    """What a driver does for the kubelet."""

    async def prepare(self, claim: ClaimName) -> Sequence[PreparedDevice]:
        """Prepare a claim, or return what it has.

        Raises:
            ResmgrError: It cannot be; the kubelet tries again.
        """

    async def unprepare(self, claim: ClaimName) -> None:
        """Take back what a claim has; it may be unknown.

        Raises:
            ResmgrError: It cannot be; the kubelet tries again.
        """

    def devices(self) -> Sequence[tuple[str, str]]:
        """Return the pool and the name of each device."""


class PluginPaths(msgspec.Struct, frozen=True):
    """The sockets of a plugin.

    Attributes:
        endpoint: The plugin's own.
        registration: The one that the kubelet finds.
    """

    endpoint: Path
    registration: Path

    @classmethod
    def of(cls, kubelet: Path, driver: str) -> PluginPaths:
        """Return the sockets below a kubelet's root directory.

        Raises:
            SocketPathTooLong: A path has more bytes than one of a socket can have.
        """
        paths = cls(
            kubelet / "plugins" / driver / "dra.sock",
            kubelet / "plugins_registry" / f"{driver}-reg.sock",
        )
        for path in (paths.endpoint, paths.registration):
            if len(os.fsencode(path)) > LONGEST_PATH:
                raise SocketPathTooLong(path)
        return paths


class Registration(msgspec.Struct, frozen=True):
    """What the kubelet says of the registration.

    Attributes:
        is_registered: Whether it has registered the plugin.
        why_not: Why not.
    """

    is_registered: bool = False
    why_not: str = "the kubelet has not asked yet"


class DraPlugin:
    """Serves a driver to the kubelet.

    Args:
        driver: Name of the driver.
        paths: Its sockets.
        claims: What it does.

    Attributes:
        registration: What the kubelet says of it.
    """

    def __init__(self, driver: str, paths: PluginPaths, claims: ClaimService) -> None:
        self.registration = Registration()
        self._driver = driver
        self._paths = paths
        self._claims = claims

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Serve; a kubelet registers the plugin soon, and after its own restart again.

        Raises:
            SocketUnusable: A socket cannot be made.
        """
        plugin = _ClaimHandlers(self._claims)
        # The kubelet calls the endpoint as soon as it finds the other one.
        async with (
            _served(self._paths.endpoint, plugin),
            _served(self._paths.registration, _RegistrationHandlers(self)),
        ):
            yield

    def info(self) -> pb.PluginInfo:
        """Return the answer to the kubelet's first question."""
        return pb.PluginInfo(
            type=_TYPE,
            name=self._driver,
            endpoint=str(self._paths.endpoint),
            supported_versions=[f"{one}.{_TYPE}" for one in _VERSIONS],
        )

    def note(self, status: pb.RegistrationStatus) -> None:
        """Note whether the kubelet has registered the plugin."""
        self.registration = Registration(status.plugin_registered, status.error)
        if status.plugin_registered:
            log.info("dra.registered", driver=self._driver)
        else:
            log.error("dra.not-registered", driver=self._driver, why=status.error)


class _RegistrationHandlers:
    def __init__(self, plugin: DraPlugin) -> None:
        self._plugin = plugin

    def __mapping__(self) -> Mapping[str, Handler]:
        return {
            f"{_REGISTRATION}GetInfo": _unary(
                self._info, pb.InfoRequest, pb.PluginInfo
            ),
            f"{_REGISTRATION}NotifyRegistrationStatus": _unary(
                self._noted, pb.RegistrationStatus, pb.RegistrationStatusResponse
            ),
        }

    async def _info(self, _: pb.InfoRequest) -> pb.PluginInfo:
        return self._plugin.info()

    async def _noted(
        self, status: pb.RegistrationStatus
    ) -> pb.RegistrationStatusResponse:
        self._plugin.note(status)
        return pb.RegistrationStatusResponse()


class _ClaimHandlers:
    def __init__(self, claims: ClaimService) -> None:
        self._claims = claims

    def __mapping__(self) -> Mapping[str, Handler]:
        found: dict[str, Handler] = {}
        for version in _VERSIONS:
            path = _PLUGIN.format(version)
            found[f"{path}NodePrepareResources"] = _unary(
                self._prepare,
                pb.NodePrepareResourcesRequest,
                pb.NodePrepareResourcesResponse,
            )
            found[f"{path}NodeUnprepareResources"] = _unary(
                self._unprepare,
                pb.NodeUnprepareResourcesRequest,
                pb.NodeUnprepareResourcesResponse,
            )
        for version in _HEALTH_VERSIONS:
            found[f"{_HEALTH.format(version)}NodeWatchResources"] = Handler(
                self._watch,
                Cardinality.UNARY_STREAM,
                pb.NodeWatchResourcesRequest,
                pb.NodeWatchResourcesResponse,
            )
        return found

    async def _prepare(
        self, request: pb.NodePrepareResourcesRequest
    ) -> pb.NodePrepareResourcesResponse:
        names = [_name_of(one) for one in request.claims]
        # Together: each may wait for the cluster, and all have the same time.
        answers = await asyncio.gather(*map(self._prepared, names))
        found = {one.uid: answer for one, answer in zip(names, answers, strict=True)}
        return pb.NodePrepareResourcesResponse(claims=found)

    async def _prepared(self, claim: ClaimName) -> pb.NodePrepareResourceResponse:
        try:
            devices = await self._claims.prepare(claim)
        except ResmgrError as error:
            log.warning("claim.not-prepared", **_failure(claim, error))
            return pb.NodePrepareResourceResponse(error=_shown(error))
        return pb.NodePrepareResourceResponse(devices=map(_device_of, devices))

    async def _unprepare(
        self, request: pb.NodeUnprepareResourcesRequest
    ) -> pb.NodeUnprepareResourcesResponse:
        names = [_name_of(one) for one in request.claims]
        answers = await asyncio.gather(*map(self._unprepared, names))
        found = {one.uid: answer for one, answer in zip(names, answers, strict=True)}
        return pb.NodeUnprepareResourcesResponse(claims=found)

    async def _unprepared(self, claim: ClaimName) -> pb.NodeUnprepareResourceResponse:
        try:
            await self._claims.unprepare(claim)
        except ResmgrError as error:
            log.warning("claim.not-returned", **_failure(claim, error))
            return pb.NodeUnprepareResourceResponse(error=_shown(error))
        return pb.NodeUnprepareResourceResponse()

    async def _watch(
        self,
        stream: Stream[pb.NodeWatchResourcesRequest, pb.NodeWatchResourcesResponse],
    ) -> None:
        await stream.recv_message()
        while True:
            now = int(time.time())
            found = [_healthy(*one, now) for one in self._claims.devices()]
            await stream.send_message(pb.NodeWatchResourcesResponse(devices=found))
            await asyncio.sleep(_HEALTH_INTERVAL)


def _failure(claim: ClaimName, error: ResmgrError) -> dict[str, str]:
    title = f"claim {claim.namespace}/{claim.name}"
    return {"title": title, "uid": claim.uid, "why": str(error)}


def _shown(error: ResmgrError) -> str:
    return shortened(printable(str(error)), _LONGEST_ERROR)


def _name_of(claim: pb.Claim) -> ClaimName:
    return ClaimName(claim.namespace, claim.name, claim.uid)


def _device_of(device: PreparedDevice) -> pb.Device:
    return pb.Device(
        request_names=[device.request] if device.request else [],
        pool_name=device.pool,
        device_name=device.device,
        cdi_device_ids=device.cdi,
        share_id=device.share or None,
    )


def _healthy(pool: str, device: str, now: int) -> pb.DeviceHealth:
    return pb.DeviceHealth(
        device=pb.DeviceIdentifier(pool_name=pool, device_name=device),
        health=pb.HEALTHY,
        last_updated_time=now,
        health_check_timeout_seconds=_HEALTH_TIMEOUT,
    )


_RequestT = TypeVar("_RequestT")
_ResponseT = TypeVar("_ResponseT")


def _unary(
    answer: Callable[[_RequestT], Awaitable[_ResponseT]],
    request: type[_RequestT],
    response: type[_ResponseT],
) -> Handler:
    async def serve(stream: Stream[_RequestT, _ResponseT]) -> None:
        if (received := await stream.recv_message()) is not None:
            await stream.send_message(await answer(received))

    return Handler(serve, Cardinality.UNARY_UNARY, request, response)


class _Handlers(Protocol):
    def __mapping__(self) -> Mapping[str, Handler]: ...


@asynccontextmanager
async def _served(path: Path, handlers: _Handlers) -> AsyncIterator[None]:
    """Serve at a socket that only this user reaches, and remove it at the end."""
    config = Configuration(
        http2_connection_window_size=_WINDOW, http2_stream_window_size=_WINDOW
    )
    server = Server([handlers], config=config)
    try:
        listener = _listening(path)
    except OSError as error:
        raise SocketUnusable(path, error.strerror or str(error)) from None
    inode = _inode(path)
    try:
        await server.start(sock=listener)
        yield
    finally:
        # The next process may have put its own there already.
        if inode and _inode(path) == inode:
            _remove_socket(path)
        server.close()
        listener.close()


def _listening(path: Path) -> socket.socket:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _remove_socket(path)
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(str(path))
        path.chmod(0o600)  # before it listens
        listener.listen()
    except BaseException:
        listener.close()
        raise
    return listener


def _inode(path: Path) -> int:
    try:
        return path.lstat().st_ino
    except FileNotFoundError:
        return 0


def _remove_socket(path: Path) -> None:
    """Remove what an earlier process has left; anything else stays."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise SocketUnusable(path, f"is no socket; remove {path}")
    path.unlink(missing_ok=True)
