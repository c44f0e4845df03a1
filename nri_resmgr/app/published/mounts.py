"""Tells containers what they have, by a folder that is mounted into each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final

from nri_resmgr.app.published.texts import resource_texts
from nri_resmgr.host.resource_files import ResourceFiles, ResourceFileUnwritable
from nri_resmgr.log import Logger
from nri_resmgr.policy.decision import Resources
from nri_resmgr.stub.model import Container, Mount

log = Logger(__name__)

DESTINATION: Final = "/.nri-resource-policy"

# Nothing about propagation: a mount that wants to be a slave fails, and the container
# with it, where the host's is not shared.
_OPTIONS: Final = ("bind", "ro", "nosuid", "nodev")


class ResourceMounts:
    """Keeps the files of containers as their resources are.

    Args:
        files: Where they are.
        resources_of: Says what a container has; None for one that is not told.
    """

    def __init__(
        self, files: ResourceFiles, resources_of: Callable[[str], Resources | None]
    ) -> None:
        self._files = files
        self._resources_of = resources_of
        self._written: dict[str, Mapping[str, str]] = {}
        self._unseen: set[str] = set()  # whose folders no container has yet
        self._is_failing = False

    def mount_for(self, container: Container) -> Mount | None:
        """Make a new container's folder, and say how it gets into the container.

        The files in it come with `fill`, before the runtime can start the container.

        Returns:
            None where it has something else there, or cannot be told.
        """
        name = container.id
        if DESTINATION in [mount.destination for mount in container.mounts]:
            return None
        try:
            is_new = self._files.make(name)
        except ResourceFileUnwritable as error:
            self._report(error)
            return None
        self._written[name] = {}
        if is_new:
            self._unseen.add(name)
        return Mount(DESTINATION, "bind", self._files.folder_of(name), _OPTIONS)

    def fill(self, container: str) -> None:
        """Write the files of a new container, if it has the mount."""
        is_unseen = container in self._unseen
        self._unseen.discard(container)
        files = self._files
        self._write(container, files.write_first if is_unseen else files.write)

    def rewritten(self, containers: Iterable[str]) -> Iterator[str]:
        """Write what changed for containers that have the mount.

        Yields:
            The id of each, once its files are as its resources are by then.
        """
        for container in containers:
            if container in self._written:
                self._rewrite(container)
                yield container

    def keep_only(self, containers: Collection[str]) -> None:
        """Remove the folders of those that are gone, as far as we know of them."""
        if gone := self._written.keys() - containers:
            self._remove(gone)

    def find(self, containers: Collection[str]) -> None:
        """Take over what is there from an earlier life of ours, and clean up.

        What is there says nothing any more until it is `rewritten`.

        Args:
            containers: The ids of all that there are.
        """
        try:
            there = self._files.present()
        except ResourceFileUnwritable as error:
            self._report(error)
            return
        self._written = {one: {} for one in there if one in containers}
        self._remove([one for one in there if one not in containers])

    def _rewrite(self, container: str) -> None:
        self._write(container, self._files.write)

    def _write(
        self, container: str, write: Callable[[str, Mapping[str, str]], None]
    ) -> None:
        # Of a policy that tells nothing, the files are left empty.
        texts = resource_texts(self._resources_of(container) or Resources())
        # None: it came and went in one breath.
        if self._written.get(container) in (None, texts):
            return
        try:
            write(container, texts)
        except ResourceFileUnwritable as error:
            self._report(error)
        else:
            self._written[container] = texts
            self._is_failing = False

    def _remove(self, containers: Collection[str]) -> None:
        for container in containers:
            self._written.pop(container, None)
        try:
            self._files.remove(containers)
        except ResourceFileUnwritable as error:
            self._report(error)

    def _report(self, error: ResourceFileUnwritable) -> None:
        if not self._is_failing:  # once, not for every container
            self._is_failing = True
            log.warning("resource-files.unwritable", path=error.path, why=error.why)
