"""Memory classes and limits of misc resources, of containers that ask for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nri_resmgr.app.classes.setter import ClassSetter, NewContainer
from nri_resmgr.config import PolicyConfig
from nri_resmgr.host.tree import Tree
from nri_resmgr.log import Logger
from nri_resmgr.policy.decision import Decision
from nri_resmgr.stub.adjustment import ContainerAdjustment
from nri_resmgr.stub.runtime_info import RuntimeInfo
from nri_resmgr.stub.update import ContainerUpdate
from nri_resmgr.topology import Machine
from nri_resmgr.values import ResmgrError

log = Logger(__name__)

# What all keys have in common, and few pods have in theirs; and what tells them from
# those of other kinds.
_COMMON: Final = ".nri.io"
_OURS: Final = ("memory-qos.", "memory-policy.", "epc-limit.", "misc-limit.")


class MemorySetter(ClassSetter):
    """Asks those who know of one kind each, where a pod has annotations of ours.

    Args:
        config: Which classes there are.
        runtime: To reference adjustments are sent.
        machine: Where the containers are.
        tree: The host; None where there is nothing to look up.
    """

    def __init__(
        self,
        config: PolicyConfig,
        runtime: RuntimeInfo,
        machine: Machine,
        tree: Tree | None,
    ) -> None:
        self._config = config
        self._runtime = runtime
        self._machine = machine
        self._tree = tree
        self._last: tuple[Any, Any] = (None, None)

    def concerns(self, new: NewContainer) -> bool:
        """Tell whether its pod has annotations of ours."""
        return _is_ours(new.pod.annotations)

    def check(self, new: NewContainer) -> None:
        """Judge what the annotations say, without regard to the place."""
        self._asked(new).check()

    def check_placement(self, new: NewContainer, decision: Decision[Any]) -> None:
        """Judge whether the nodes of a policy are any that it may use."""
        self._asked(new).find_nodes(decision.pin, self._machine)

    def add(
        self,
        adjustment: ContainerAdjustment,
        new: NewContainer,
        decision: Decision[Any],  # noqa: ARG002 - was judged before
    ) -> ContainerAdjustment:
        """Add files of cgroup v2, and a memory policy."""
        told: ContainerAdjustment = self._asked(new).add(adjustment)
        return told

    def start(
        self,
        begun: NewContainer,
        decision: Decision[Any],  # noqa: ARG002 - does not depend on the place
    ) -> None:
        """Write limits of which the runtime can set one only."""
        if self._config.misc_limits:
            from nri_resmgr.app.classes.memory.misc_limits import (
                write_rest,  # few pods limit any
            )

            write_rest(begun, self._tree)

    def update(
        self,
        update: ContainerUpdate,
        resized: NewContainer,
        decision: Decision[Any],  # noqa: ARG002 - does not depend on the place
    ) -> ContainerUpdate:
        """Share out another memory limit."""
        try:
            told: ContainerUpdate = self._asked(resized).follow(update)
        except ResmgrError as error:
            # It was fine with the amounts before, which hold until the next ones.
            log.warning("memory-class.not-applied", why=str(error))
            return update
        return told

    def _asked(self, new: NewContainer) -> Any:
        if self._last[0] is not new:
            # Late: few pods have annotations of ours.
            from nri_resmgr.app.classes.memory.requests import ContainerMemory

            asked = ContainerMemory(new, self._config, self._runtime, self._tree)
            self._last = (new, asked)
        return self._last[1]


def _is_ours(annotations: Mapping[str, str]) -> bool:
    keys = "\n".join(annotations)  # one search instead of one for each key
    return _COMMON in keys and any(one in keys for one in _OURS)
