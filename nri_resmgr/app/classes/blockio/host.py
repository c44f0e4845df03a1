"""State of block I/O classes on this host: devices, and files of each container."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from typing import Final

from nri_resmgr.app.classes.problems import ClassProblems
from nri_resmgr.classes.blockio import (
    BlockIoClass,
    BlockIoConfig,
    Features,
    Files,
    Notice,
    patterns_of,
    resolve,
)
from nri_resmgr.host.block_devices import find_block_devices, find_features
from nri_resmgr.host.cgroups.layout import CGROUP_ROOT, read_cgroup_layout
from nri_resmgr.host.tree import Tree
from nri_resmgr.log import Logger
from nri_resmgr.topology import CgroupLayout
from nri_resmgr.values import HostError

log = Logger(__name__)

_V1_TOP: Final = f"{CGROUP_ROOT}/blkio"
_NO_FEATURES: Final = Features(is_v2=True, has_throttles=False)


class BlockIoHost:
    """Classes on the devices of this host. Safe for use by several threads.

    Attributes:
        features: The files that cgroups have.
        applied: The files that this daemon has set, by the id of the container.
        rest: Lines for new containers that their runtime cannot write, by id.
    """

    def __init__(self, tree: Tree | None) -> None:
        self._tree = tree
        self._config: BlockIoConfig = {}
        self._classes: Mapping[str, BlockIoClass] | None = None
        self._looking = threading.Lock()
        self.features = _NO_FEATURES
        self.applied: dict[str, Files] = {}
        self.rest: dict[str, Files] = {}
        self.problems = ClassProblems("blockio")

    @property
    def top(self) -> str:
        """Root of the cgroups that have the files."""
        return CGROUP_ROOT if self.features.is_v2 else _V1_TOP

    def classes(self, config: BlockIoConfig) -> Mapping[str, BlockIoClass]:
        """Return the classes on the devices found by the last search."""
        found = self._classes if config == self._config else None
        return self.look(config) if found is None else found

    def look(self, config: BlockIoConfig) -> Mapping[str, BlockIoClass]:
        """Search for devices, and return the classes on them."""
        # The event loop searches for new containers, the applier's thread for others.
        with self._looking:
            found = self._resolved(config)
            if self._classes is not None and found != self._classes:
                for name, one in found.items():
                    notices = [str(n) for n in self.notices(one)]
                    if notices:
                        log.warning("blockio.class-lacks", name=name, notices=notices)
            self._config, self._classes = config, found
        return found

    def current(self, config: BlockIoConfig, name: str) -> BlockIoClass | None:
        """Return a class on devices that are all present right now."""
        found = self.classes(config).get(name)
        tree = self._tree
        if found and tree and found.devices:
            numbers = (one.device.number for one in found.devices)
            # The kernel refuses missing devices, and then the runtime the container.
            if any(tree.target(f"/sys/dev/block/{n}") is None for n in numbers):
                found = self.look(config).get(name)
        return found

    def note_applied(self, container: str, files: Files) -> None:
        """Note the files that a container has now."""
        if files:
            self.applied[container] = files
        else:
            self.applied.pop(container, None)

    def note_new(self, container: str, files: Files, rest: Files) -> None:
        """Note what a new container was created with.

        Args:
            container: Its id.
            files: The files that it has once it starts.
            rest: The lines of these that its runtime cannot write.
        """
        self.note_applied(container, files)
        if rest:
            self.rest[container] = rest

    def notices(self, one: BlockIoClass) -> tuple[Notice, ...]:
        """Return what a class asks for and this host does not have."""
        return (*one.notices, *one.left_out(self.features))

    def keep_only(self, containers: Collection[str]) -> None:
        """Remove all but these containers."""
        for kept in (self.applied, self.rest):
            for key in kept.keys() - set(containers):
                kept.pop(key, None)

    def _resolved(self, config: BlockIoConfig) -> Mapping[str, BlockIoClass]:
        if self._tree is None:
            return resolve(config, {})
        try:
            is_v2 = read_cgroup_layout(self._tree) is CgroupLayout.V2
            top = CGROUP_ROOT if is_v2 else _V1_TOP
            self.features = find_features(self._tree, top, is_v2=is_v2)
            found = find_block_devices(self._tree, patterns_of(config))
        except HostError as error:
            self.problems.fail("devices", str(error))
            return resolve(config, {})
        self.problems.clear("devices")
        return resolve(config, found)
