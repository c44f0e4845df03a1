"""The update of an existing container."""

from __future__ import annotations

from typing import ClassVar, Self

from nri_resmgr.stub.discarded import has_builders
from nri_resmgr.stub.model import LinuxContainerUpdate
from nri_resmgr.stub.setters import RESOURCE_PARTS, ResourceSetters

has_builders(__name__)


class ContainerUpdate(ResourceSetters, frozen=True):
    """Changes to one existing container: Linux resources and nothing else.

    Updates are immutable, as adjustments are: each method returns a new one.

    Set only fields that change: a full set of resources conflicts with other plugins.

    Attributes:
        container_id: The container to update.
        linux: The changes; set them with the ``set_`` methods.
        ignore_failure: Whether the runtime ignores a conflict or a failure to apply.

    >>> ContainerUpdate("c0ffee").set_cpus("0-3").set_mems("0").resources.cpu
    LinuxCpu(cpus='0-3', mems='0')
    """

    _parts: ClassVar = {**RESOURCE_PARTS, "linux": LinuxContainerUpdate}

    container_id: str = ""
    linux: LinuxContainerUpdate | None = None
    ignore_failure: bool = False

    def ignoring_failure(self) -> Self:
        """Return this update with `ignore_failure` set."""
        return self._with("ignore_failure", True)
