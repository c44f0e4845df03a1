"""Files that publish a container's resources to it, in a folder mounted into it."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final, Protocol

from nri_resmgr.app.observers.after_reply import after_replies
from nri_resmgr.app.observers.observer import DecisionObserver, PolicyDecision
from nri_resmgr.host.resource_files import ResourceFiles, ResourceFileUnwritable
from nri_resmgr.log import Logger
from nri_resmgr.policy.decision import Resources
from nri_resmgr.policy.events import Created, Event, Synchronized, Updated
from nri_resmgr.policy.ledger import KnowsContainers
from nri_resmgr.stub.model import Container, Mount
from nri_resmgr.topology import MemoryKind
from nri_resmgr.values import NO_NODES, NodeSet

log = Logger(__name__)

DESTINATION: Final = "/.nri-resource-policy"

# No propagation option: a mount as slave fails where the host's mount is not shared,
# and the container's creation with it.
_OPTIONS: Final = ("bind", "ro", "nosuid", "nodev")


class Publisher(Protocol):
    """The state of a policy, and which parts are published; an `Engine` is one."""

    state: KnowsContainers

    def publishes(self, container: str) -> bool:
        """Return whether the policy publishes a container's resources to it."""

    def resources_of(self, container: str) -> Resources | None:
        """Return the resources to publish to a container; None for none."""


class ContainerFiles(DecisionObserver):
    """Writes the files: of a new container at once, of others after the reply.

    Args:
        run_dir: The folder of all files.
        publisher: Returns the resources to publish.
    """

    def __init__(self, run_dir: str, publisher: Publisher) -> None:
        self._publisher = publisher
        self._mounts = ResourceMounts(ResourceFiles(run_dir), publisher.resources_of)
        self._count = 0  # of the containers after the last decision

    def mount_for(self, container: Container) -> Mount | None:
        """Make a new container's folder; return its mount, None for none."""
        if not self._publisher.publishes(container.id):
            return None
        return self._mounts.mount_for(container)

    def decided(self, event: Event, decision: PolicyDecision) -> None:
        """Write the files of containers whose resources have changed."""
        mounts, present = self._mounts, self._publisher.state.ledger.entries
        changed = [update.container for update in decision.updates]
        if isinstance(event, Created):
            mounts.fill(event.spec.id)
        if isinstance(event, Synchronized):
            mounts.find(present.keys())
            changed = list(present)
        # A count, not the ids: this runs after each decision.
        elif len(present) != self._count + isinstance(event, Created):
            mounts.keep_only(present.keys())  # a container was removed
        self._count = len(present)
        if isinstance(event, Updated):
            changed.append(event.spec.id)
        if changed:
            after_replies(mounts.rewritten(changed))


class ResourceMounts:
    """Keeps the files of containers up to date.

    Args:
        files: The files on disk.
        resources_of: Returns the resources to publish to a container; None for none.
    """

    def __init__(
        self, files: ResourceFiles, resources_of: Callable[[str], Resources | None]
    ) -> None:
        self._files = files
        self._resources_of = resources_of
        self._written: dict[str, Mapping[str, str]] = {}
        self._unseen: set[str] = set()  # folders that no container has mounted yet
        self._is_failing = False

    def mount_for(self, container: Container) -> Mount | None:
        """Make a new container's folder, and return its mount.

        The files in it come with `fill`, before the runtime can start the container.

        Returns:
            None where the path is in use or the folder cannot be made.
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
        # A folder without readers needs no atomic replacement of files.
        is_unseen = container in self._unseen
        self._unseen.discard(container)
        files = self._files
        self._write(container, files.write_first if is_unseen else files.write)

    def rewritten(self, containers: Iterable[str]) -> Iterator[str]:
        """Write changes for containers that have the mount.

        Yields:
            The id of each container, once its files match its resources.
        """
        for container in containers:
            if container in self._written:
                self._write(container, self._files.write)
                yield container

    def keep_only(self, containers: Collection[str]) -> None:
        """Remove the known folders of all other containers."""
        if gone := self._written.keys() - containers:
            self._remove(gone)

    def find(self, containers: Collection[str]) -> None:
        """Take over folders of an earlier process; remove those of other containers.

        Their contents are unknown until they are `rewritten`.

        Args:
            containers: The ids of all containers.
        """
        try:
            there = self._files.present()
        except ResourceFileUnwritable as error:
            self._report(error)
            return
        self._written = {one: {} for one in there if one in containers}
        self._remove([one for one in there if one not in containers])

    def _write(
        self, container: str, write: Callable[[str, Mapping[str, str]], None]
    ) -> None:
        # A policy that publishes nothing leaves empty files.
        texts = resource_texts(self._resources_of(container) or Resources())
        # None: removed before its files were due.
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


@lru_cache(maxsize=256)  # containers of a shared pool have the same
def resource_texts(resources: Resources) -> Mapping[str, str]:
    """Return the texts of a container's files, by name.

    Empty values are left out. Lists have the kernel's format: digits, commas and
    dashes need no quoting in a shell.

    Source:
        nri-plugins, ``resources.sh``; CRI Resource Manager, the same file.
    """
    values = dict(_values(resources))
    lines = "".join(f'{name}="{value}"\n' for name, value in values.items())
    return {"resources.sh": lines, "resources.json": f"{json.dumps(values)}\n"}


def _values(resources: Resources) -> Iterator[tuple[str, str]]:
    for name, cpus in (
        ("SHARED_CPUS", resources.shared),
        ("ISOLATED_CPUS", resources.isolated),
        ("EXCLUSIVE_CPUS", resources.exclusive),
    ):
        if cpus:
            yield name, str(cpus)
    mems = resources.mems
    if every := NodeSet.union(mems.values()):
        yield "ALL_MEMS", str(every)
    for kind in (MemoryKind.DRAM, MemoryKind.PMEM, MemoryKind.HBM, MemoryKind.CXL):
        if nodes := mems.get(kind, NO_NODES):
            yield f"{kind.upper()}_MEMS", str(nodes)
