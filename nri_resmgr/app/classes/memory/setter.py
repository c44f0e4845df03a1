"""Setter of memory QoS classes, NUMA policies and limits of misc resources."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from nri_resmgr.app.classes.setter import ClassSetter, NewContainer, SetterOptions
from nri_resmgr.app.observers.observer import PolicyDecision
from nri_resmgr.config import PolicyConfig
from nri_resmgr.host.cgroups.layout import MISC_CAPACITY, read_cgroup_layout
from nri_resmgr.host.remembered import RememberedTree
from nri_resmgr.log import Logger
from nri_resmgr.stub.adjustment import ContainerAdjustment
from nri_resmgr.stub.runtime_info import RuntimeInfo
from nri_resmgr.stub.update import ContainerUpdate
from nri_resmgr.topology import Machine
from nri_resmgr.values import HostError, ResmgrError

if TYPE_CHECKING:  # few pods have such annotations
    from nri_resmgr.app.classes.memory.requests import ContainerMemory

log = Logger(__name__)


class MemorySetter(ClassSetter):
    """Applies the memory requests of pods with such annotations."""

    annotations = frozenset(
        ("memory-qos.", "memory-policy.", "epc-limit.", "misc-limit.")
    )

    def __init__(
        self,
        config: PolicyConfig,
        runtime: RuntimeInfo,
        machine: Machine,
        tree: RememberedTree | None,
        options: SetterOptions,
    ) -> None:
        self._options = options
        self._config = config
        self._runtime = runtime
        self._machine = machine
        self._tree = tree
        self._last: tuple[NewContainer, ContainerMemory] | None = None
        if config.memory_qos is not None or config.memory_policy is not None:
            _requests_class()
        if tree is not None:
            with suppress(HostError):  # it is reported where a container needs them
                read_cgroup_layout(tree)
                tree.read(MISC_CAPACITY)

    def check(self, new: NewContainer) -> None:
        """Check what does not depend on the container's place."""
        self._requests(new).check()

    def check_placement(self, new: NewContainer, decision: PolicyDecision) -> None:
        """Check the nodes of a NUMA policy against those of the container."""
        self._requests(new).find_nodes(decision.pin, self._machine)

    def add(
        self,
        adjustment: ContainerAdjustment,
        new: NewContainer,
        decision: PolicyDecision,  # noqa: ARG002 - checked before
    ) -> ContainerAdjustment:
        """Add files of cgroup v2, and a NUMA policy."""
        return self._requests(new).add(adjustment)

    def start(
        self,
        new: NewContainer,
        decision: PolicyDecision,  # noqa: ARG002 - does not depend on the place
    ) -> None:
        """Write the misc limits after the first, which the runtime sets."""
        self._requests(new).start()

    def update(
        self,
        update: ContainerUpdate,
        new: NewContainer,
        decision: PolicyDecision,  # noqa: ARG002 - does not depend on the place
    ) -> ContainerUpdate:
        """Add the files that depend on the memory limit."""
        try:
            return self._requests(new).update(update)
        except ResmgrError as error:
            # The values of the earlier limit stay in force.
            log.warning("memory-class.not-applied", why=str(error))
            return update

    def _requests(self, new: NewContainer) -> ContainerMemory:
        # The steps of one creation share what was read.
        if self._last is None or self._last[0] is not new:
            found = _requests_class()(
                new, self._config, self._runtime, self._tree, self._options
            )
            self._last = (new, found)
        return self._last[1]


def _requests_class() -> type[ContainerMemory]:
    # Late: few pods have such annotations.
    from nri_resmgr.app.classes.memory.requests import ContainerMemory

    return ContainerMemory
