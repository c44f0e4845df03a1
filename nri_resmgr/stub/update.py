"""The update of an existing container."""

from __future__ import annotations

from typing import Self

import msgspec

from nri_resmgr.stub.model import LinuxContainerUpdate, LinuxResources
from nri_resmgr.stub.setters import ResourceSetters


class ContainerUpdate(ResourceSetters, frozen=True):
    """Changes to one existing container: Linux resources and nothing else.

    Set only fields that change: a full set of resources conflicts with other plugins.

    Attributes:
        container_id: The container to update.
        linux: The changes; set them with the ``set_`` methods.
        ignore_failure: Whether the runtime ignores a conflict or a failure to apply.

    >>> ContainerUpdate("c0ffee").set_cpus("0-3").set_mems("0").resources.cpu
    LinuxCpu(cpus='0-3', mems='0')
    """

    container_id: str = ""
    linux: LinuxContainerUpdate | None = None
    ignore_failure: bool = False

    @property
    def resources(self) -> LinuxResources:
        """The Linux resources to set; all absent in an empty update."""
        return (self.linux and self.linux.resources) or LinuxResources()

    def ignoring_failure(self) -> Self:
        """Return this update with `ignore_failure` set."""
        return msgspec.structs.replace(self, ignore_failure=True)

    def _with_resources(self, resources: LinuxResources) -> Self:
        return msgspec.structs.replace(self, linux=LinuxContainerUpdate(resources))
