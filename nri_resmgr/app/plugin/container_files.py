"""Files that publish a container's resources to it, in a folder mounted into it.

The folders are on the host, in ``--run-dir``; `nri_resmgr.host.resource_files` writes
and removes them. The policy decides by `publishes` which containers have one.
docs/resource-file.md describes the files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Final

from nri_resmgr.app.observers.after_reply import Steps
from nri_resmgr.app.observers.observer import DecisionObserver, PolicyDecision
from nri_resmgr.app.observers.policy_in_force import PolicyInForce
from nri_resmgr.host.resource_files import ResourceFiles, ResourceFileUnwritable
from nri_resmgr.log import Logger
from nri_resmgr.policy.decision import Resources
from nri_resmgr.policy.events import Created, Event, Synchronized
from nri_resmgr.policy.ledger import KnowsContainers
from nri_resmgr.stub.model import Container, Mount
from nri_resmgr.topology import MemoryKind
from nri_resmgr.values import NO_NODES, NodeSet

log = Logger(__name__)

DESTINATION: Final = "/.nri-resource-policy"
"""The folder in a container by default, as in nri-plugins."""

# No propagation option: a mount as slave fails where the host's mount is not shared,
# and the container's creation with it.
_OPTIONS: Final = ("bind", "ro", "nosuid", "nodev")


class ContainerFiles(DecisionObserver):
    """Writes the files: of a new container first, of others with the other observers.

    `fill` comes right after the reply, before the runtime can start the container. What
    observers have to do may take longer, after a Synchronize of a large node.
    """

    def __init__(
        self,
        files: ResourceFiles,
        subject: PolicyInForce,
        destination: str = DESTINATION,
    ) -> None:
        self._files = files
        self._subject = subject
        self._destination = destination
        self._before: KnowsContainers | None = None  # the state that files are of
        self._count = 0  # of the containers after the last decision
        self._written: dict[str, Mapping[str, str]] = {}
        self._unseen: set[str] = set()  # folders that no container has mounted yet
        self._is_failing = False

    def mount_for(self, container: Container) -> Mount | None:
        """Make a new container's folder, and return its mount.

        The files in it come with `fill`, before the runtime can start the container.

        Returns:
            None where the policy publishes nothing to it, the path is in use, or the
            folder cannot be made.
        """
        name, subject = container.id, self._subject
        if not subject.policy.publishes(subject.state, name):
            return None
        if self._destination in [mount.destination for mount in container.mounts]:
            return None
        try:
            # Not after the reply, as all else: no runtime starts a container with a
            # mount of what is not there, and this may fail. It takes 4 µs on tmpfs.
            is_new = self._files.make(name)
        except ResourceFileUnwritable as error:
            self._report(error)
            return None
        self._written[name] = {}
        if is_new:
            self._unseen.add(name)
        folder = self._files.folder_of(name)
        return Mount(self._destination, "bind", folder, _OPTIONS)

    def decided(self, event: Event, decision: PolicyDecision) -> Steps | None:
        """Write the files of containers whose resources have changed."""
        present = self._subject.state.ledger.entries
        before, self._before = self._before, decision.state
        changed = self._changed(event, before, decision) if self._written else []
        gone: Collection[str] = ()
        if isinstance(event, Synchronized):
            gone = self._find(present.keys())
            changed = list(present)
        # A count, not the ids: this runs after each decision.
        elif len(present) != self._count + isinstance(event, Created):
            gone = self._written.keys() - present.keys()
        self._count = len(present)
        return self._follow(gone, changed) if gone or changed else None

    def _changed(
        self, event: Event, before: KnowsContainers | None, decision: PolicyDecision
    ) -> list[str]:
        """Return the containers whose files may have to be written again."""
        after = decision.state
        changed = [update.container for update in decision.updates]
        # Those that fell back and now fit, and the container of the event.
        changed += [reason.container for reason in decision.reasons]
        if before is not None and type(before) is type(after):
            changed += self._subject.policy.republishes(before, after)
        new = event.spec.id if isinstance(event, Created) else ""  # see `fill`
        written = self._written
        return [one for one in dict.fromkeys(changed) if one in written and one != new]

    def fill(self, container: str) -> None:
        """Write the files of a new container, if it has the mount."""
        # A folder without readers needs no atomic replacement of files.
        is_unseen = container in self._unseen
        self._unseen.discard(container)
        files = self._files
        self._write(container, files.write_first if is_unseen else files.write)

    def _follow(self, gone: Iterable[str], changed: Iterable[str]) -> Iterator[None]:
        """Remove folders, and write changes for containers that have the mount."""
        for container in gone:
            # It may have been created again meanwhile.
            if container not in self._subject.state.ledger.entries:
                self._remove(container)
                yield
        for container in changed:
            if container in self._written:
                self._write(container, self._files.write)
                yield

    def _find(self, containers: Collection[str]) -> Collection[str]:
        """Take over folders of an earlier process; return those of other containers.

        Their contents are unknown until they are rewritten.
        """
        with suppress(ResourceFileUnwritable):  # it is reported where one is needed
            self._files.prepare()
        try:
            there = self._files.present()
        except ResourceFileUnwritable as error:
            self._report(error)
            return ()
        self._written = {one: {} for one in there if one in containers}
        return [one for one in there if one not in containers]

    def _write(
        self, container: str, write: Callable[[str, Mapping[str, str]], None]
    ) -> None:
        # A policy that publishes nothing leaves empty files.
        subject = self._subject
        found = subject.policy.resources_of(subject.state, container)
        texts = resource_texts(found or Resources())
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

    def _remove(self, container: str) -> None:
        self._written.pop(container, None)
        try:
            self._files.remove((container,))
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
