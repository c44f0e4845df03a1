"""A kubelet's plugin manager, and its calls of DRA drivers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec
from grpclib.client import Channel, UnaryStreamMethod, UnaryUnaryMethod

from nri_resmgr.kubelet._gen import dra_pb2 as pb

CALL_TIMEOUT: Final = 45.0
"""Seconds that a kubelet gives a driver for a call."""

_REGISTRATION: Final = "/pluginregistration.Registration/"
_LOOK_AGAIN: Final = 0.02  # seconds


class PluginRefused(Exception):
    """A plugin does not say what a kubelet needs to know of it."""


class KubeletClaim(msgspec.Struct, frozen=True):
    """A claim as a kubelet names it."""

    namespace: str
    name: str
    uid: str


class DraCalls:
    """Calls a registered driver.

    Args:
        endpoint: The driver's socket.
        version: Of its service: ``v1`` or ``v1beta1``.
    """

    def __init__(self, endpoint: Path, version: str = "v1") -> None:
        self._endpoint = endpoint
        self._plugin = f"/k8s.io.kubelet.pkg.apis.dra.{version}.DRAPlugin/"

    async def prepare(
        self, *claims: KubeletClaim
    ) -> Mapping[str, pb.NodePrepareResourceResponse]:
        """Prepare the claims of a pod; return the answers by UID."""
        async with _channel(self._endpoint) as channel:
            method = UnaryUnaryMethod(
                channel,
                f"{self._plugin}NodePrepareResources",
                pb.NodePrepareResourcesRequest,
                pb.NodePrepareResourcesResponse,
            )
            request = pb.NodePrepareResourcesRequest(claims=_messages(claims))
            return (await method(request, timeout=CALL_TIMEOUT)).claims

    async def unprepare(
        self, *claims: KubeletClaim
    ) -> Mapping[str, pb.NodeUnprepareResourceResponse]:
        """Give claims back; return the answers by UID."""
        async with _channel(self._endpoint) as channel:
            method = UnaryUnaryMethod(
                channel,
                f"{self._plugin}NodeUnprepareResources",
                pb.NodeUnprepareResourcesRequest,
                pb.NodeUnprepareResourcesResponse,
            )
            request = pb.NodeUnprepareResourcesRequest(claims=_messages(claims))
            return (await method(request, timeout=CALL_TIMEOUT)).claims

    async def health(self, version: str = "v1") -> pb.NodeWatchResourcesResponse:
        """Return the first message about the health of the devices."""
        async with _channel(self._endpoint) as channel:
            method = UnaryStreamMethod(
                channel,
                f"/{version}.DRAResourceHealth/NodeWatchResources",
                pb.NodeWatchResourcesRequest,
                pb.NodeWatchResourcesResponse,
            )
            async with method.open(timeout=CALL_TIMEOUT) as stream:
                await stream.send_message(pb.NodeWatchResourcesRequest(), end=True)
                found = await stream.recv_message()
                await stream.cancel()
        if found is None:
            raise PluginRefused("the stream of health ends at once")
        return found


class PluginManager:
    """Finds plugins by their sockets and registers them, as a kubelet does.

    Args:
        folder: The kubelet's root directory.
    """

    def __init__(self, folder: Path) -> None:
        self._registry = folder / "plugins_registry"

    async def registered(self, driver: str) -> pb.PluginInfo:
        """Wait for the socket of a driver, and register it.

        Raises:
            PluginRefused: It is no driver of DRA that a kubelet can call.
        """
        info = await self.info(driver)
        if info.type != "DRAPlugin" or info.name != driver:
            await self.notify(driver, error="an unexpected plugin")
            raise PluginRefused(f"{info.type} {info.name}")
        if not _is_socket(info.endpoint):
            raise PluginRefused(f"{info.endpoint} is no socket")
        await self.notify(driver)
        return info

    def calls(self, info: pb.PluginInfo) -> DraCalls:
        """Return the calls of a driver, in the newest version that it serves."""
        version = info.supported_versions[0].partition(".")[0]
        return DraCalls(Path(info.endpoint), version)

    async def info(self, driver: str) -> pb.PluginInfo:
        """Wait for the socket of a plugin, and ask what it is."""
        while True:
            path = await self._socket(driver)
            async with _channel(path) as channel:
                method = UnaryUnaryMethod(
                    channel, f"{_REGISTRATION}GetInfo", pb.InfoRequest, pb.PluginInfo
                )
                try:
                    return await method(pb.InfoRequest(), timeout=CALL_TIMEOUT)
                except OSError:  # of a plugin that was killed
                    await asyncio.sleep(_LOOK_AGAIN)

    async def notify(self, driver: str, error: str = "") -> None:
        """Say whether a plugin was registered."""
        path = await self._socket(driver)
        async with _channel(path) as channel:
            method = UnaryUnaryMethod(
                channel,
                f"{_REGISTRATION}NotifyRegistrationStatus",
                pb.RegistrationStatus,
                pb.RegistrationStatusResponse,
            )
            status = pb.RegistrationStatus(plugin_registered=not error, error=error)
            await method(status, timeout=CALL_TIMEOUT)

    async def _socket(self, driver: str) -> Path:
        # A kubelet finds any name in its folder, except for those with a dot in front.
        path = self._registry / f"{driver}-reg.sock"
        while not path.is_socket():  # noqa: ASYNC110 - a file that others make
            await asyncio.sleep(_LOOK_AGAIN)
        return path


def _messages(claims: Iterable[KubeletClaim]) -> list[pb.Claim]:
    return [
        pb.Claim(namespace=one.namespace, name=one.name, uid=one.uid) for one in claims
    ]


def _is_socket(path: str) -> bool:
    return Path(path).is_socket()


@asynccontextmanager
async def _channel(path: Path) -> AsyncIterator[Channel]:
    channel = Channel(path=str(path))
    try:
        yield channel
    finally:
        channel.close()
