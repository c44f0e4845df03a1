"""Merges the updates of several plugins in one request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nri_proto import nri_pb2
from nri_resmgr.testing.errors import FieldConflict, UpdateDuringCreation
from nri_resmgr.testing.merge.owners import Owners
from nri_resmgr.testing.merge.resources import Claimant, merge_resources


class UpdateMerge:
    """Merges updates to one per container.

    Attributes:
        requested: The resources of a pending UpdateContainer with the changes of
            plugins, as the next plugin sees them; empty without one.
    """

    def __init__(
        self,
        owners: Owners,
        *,
        creating: str = "",
        updating: str = "",
        requested: nri_pb2.LinuxResources | None = None,
    ) -> None:
        self.requested = nri_pb2.LinuxResources()
        if requested is not None:
            self.requested.CopyFrom(requested)
        self._owners = owners
        self._creating = creating
        self._updating = updating
        self._updates: dict[str, nri_pb2.ContainerUpdate] = {}

    @property
    def updates(self) -> Sequence[nri_pb2.ContainerUpdate]:
        """All updates; that of the requested container, if plugins changed it, last."""
        updates = self._updates.values()
        return sorted(updates, key=lambda one: one.container_id == self._updating)

    @property
    def applied(self) -> nri_pb2.LinuxResources:
        """The resources that the runtime applies to the requested container.

        Empty if a plugin updates it without any resources and none with some: Go has
        that update take the place of the request.
        """
        entry = self._updates.get(self._updating)
        return self.requested if entry is None else entry.linux.resources

    def apply(self, plugin: str, updates: Iterable[nri_pb2.ContainerUpdate]) -> None:
        """Merge the updates of one plugin's reply.

        Raises:
            FieldConflict: Another update sets the same field, and this one does not
                ignore failures.
            UpdateDuringCreation: It is for the container that is being created.
        """
        for update in updates:
            entry = self._entry(plugin, update)
            try:
                self._merge(plugin, entry, update)
            except FieldConflict:
                if not update.ignore_failure:
                    raise

    def _entry(
        self, plugin: str, update: nri_pb2.ContainerUpdate
    ) -> nri_pb2.ContainerUpdate:
        container_id = update.container_id
        if self._creating and container_id == self._creating:
            raise UpdateDuringCreation(plugin, container_id)
        empty = nri_pb2.ContainerUpdate(container_id=container_id, ignore_failure=True)
        entry = self._updates.setdefault(container_id, empty)
        entry.ignore_failure = entry.ignore_failure and update.ignore_failure
        return entry

    def _merge(
        self,
        plugin: str,
        entry: nri_pb2.ContainerUpdate,
        update: nri_pb2.ContainerUpdate,
    ) -> None:
        if not update.linux.HasField("resources"):
            return
        changes = nri_pb2.LinuxResources()
        changes.CopyFrom(update.linux.resources)
        # Go reads the wrong variable for pids, and ignores device rules.
        changes.ClearField("pids")
        changes.ClearField("devices")
        is_requested = bool(self._updating) and update.container_id == self._updating
        # A conflict must not leave parts of this update, so merge into a copy.
        merged = nri_pb2.LinuxResources()
        merged.CopyFrom(self.requested if is_requested else entry.linux.resources)
        claimant = Claimant(self._owners, update.container_id, plugin)
        merge_resources(claimant, changes, merged)
        entry.linux.resources.CopyFrom(merged)
        if is_requested:
            self.requested.CopyFrom(merged)
