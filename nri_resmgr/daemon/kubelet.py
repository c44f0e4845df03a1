"""Connections of the daemon to services of the kubelet."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs

from nri_resmgr.app.background.threads import in_thread
from nri_resmgr.kubelet.sockets import POD_RESOURCES, PODS_API, KubeletService
from nri_resmgr.log import Logger
from nri_resmgr.process.tls import import_without_tls

if TYPE_CHECKING:
    # Both need the extra "kubelet".
    from nri_resmgr.daemon.pods_api import KubeletPods
    from nri_resmgr.kubelet.connection import KubeletConnection

log = Logger(__name__)

# Most nodes have the socket when the daemon starts, or never.
_POLL: Final = 5.0  # seconds

NOT_INSTALLED: Final = "grpclib is not installed: pip install 'nri-resmgr[kubelet]'"


@attrs.define(eq=False)
class KubeletUse:
    """The use of a service of the kubelet.

    Attributes:
        service: The service.
        folder: The kubelet's root directory; None where no socket of it is used.
        why_not: Why there is no connection.
        connection: Once the socket was there and grpclib is imported.
        details: Returns what is known by it, for people.
    """

    service: KubeletService
    folder: Path | None
    why_not: str = attrs.field(default="", init=False)
    connection: KubeletConnection | None = attrs.field(default=None, init=False)
    details: Callable[[], str] = attrs.field(default=str, init=False)

    @property
    def problem(self) -> str:
        """Why the service is not in use; empty while it answers."""
        if self.folder is None:
            return "off, by --kubelet-dir"
        return self.connection.problem if self.connection else self.why_not

    async def connect(self) -> KubeletConnection | None:
        """Wait for the socket, and import what connects to it.

        Returns:
            None where the kubelet's sockets are not used, or the extra is missing.
        """
        if self.folder is None:
            return None
        if self.connection is None:
            path = self.folder / self.service.socket
            self.why_not = f"{path}: no such socket; {self.service.remedy}"
            # As memory of grpclib is for those that use it. A watch of the folder would
            # be one of its parents', of which any may be missing.
            # In a thread: the kubelet's file system may hang.
            while not await in_thread(path.exists):  # noqa: ASYNC110 - see above
                await asyncio.sleep(_POLL)
            name = "nri_resmgr.kubelet.connection"
            try:
                module = await in_thread(lambda: import_without_tls(name))
            except ImportError:
                self.why_not = f"{path}: {NOT_INSTALLED}"
                log.warning("kubelet.unavailable", socket=str(path), why=self.why_not)
                return None
            self.connection = module.KubeletConnection(self.service, self.folder)
        return self.connection


class KubeletServices:
    """The services of the kubelet that the daemon uses.

    Args:
        folder: The kubelet's root directory; None where no socket of it is used.

    Attributes:
        pods_api: The pods of the node, for their requests.
        pod_resources: The devices and claims of their containers.
        pods: What the Pods API has said; None until its socket was there.
    """

    def __init__(self, folder: Path | None) -> None:
        self.pods_api = KubeletUse(PODS_API, folder)
        self.pod_resources = KubeletUse(POD_RESOURCES, folder)
        self.pods: KubeletPods | None = None

    @property
    def uses(self) -> tuple[KubeletUse, ...]:
        """Return all of them."""
        return (self.pods_api, self.pod_resources)
