"""Results of requests about containers."""

from __future__ import annotations

import msgspec

from nri_resmgr.stub.adjustment import ContainerAdjustment
from nri_resmgr.stub.model import Container, OwningPlugins
from nri_resmgr.stub.update import ContainerUpdate


class CreateResult(msgspec.Struct, frozen=True):
    """The result of creating a container.

    Attributes:
        container: The container with its adjustments.
        adjustment: The adjustments of all plugins, merged.
        updates: The updates of other containers, merged; they are already applied.
        owners: The plugin that set each field.
    """

    container: Container
    adjustment: ContainerAdjustment
    updates: tuple[ContainerUpdate, ...]
    owners: OwningPlugins


class UpdateResult(msgspec.Struct, frozen=True):
    """The result of updating or stopping a container.

    Attributes:
        container: The container in its present state.
        updates: The updates of all plugins, merged; those of other containers first.
    """

    container: Container
    updates: tuple[ContainerUpdate, ...]
