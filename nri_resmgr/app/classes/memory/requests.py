"""What the annotations of one container say about its memory, and what comes of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from nri_proto import Level
from nri_resmgr.app.classes.memory.misc_limits import misc_unified
from nri_resmgr.app.classes.setter import NewContainer
from nri_resmgr.app.classes.unified import check_version, with_unified
from nri_resmgr.classes.memory import (
    MemoryPlace,
    NumaPolicy,
    ResolvedPolicy,
    chosen_numa_policy,
    memory_qos_request,
    memory_qos_unified,
    numa_policy_request,
    resolve_numa_policy,
)
from nri_resmgr.config import PolicyConfig
from nri_resmgr.config.memory_classes import parse_numa_policy
from nri_resmgr.host.tree import Tree
from nri_resmgr.policy.events import Pin
from nri_resmgr.stub.adjustment import ContainerAdjustment
from nri_resmgr.stub.model import MemoryPolicy, MemoryPolicyFlag, MemoryPolicyMode
from nri_resmgr.stub.runtime_info import RuntimeInfo
from nri_resmgr.stub.update import ContainerUpdate
from nri_resmgr.topology import Machine
from nri_resmgr.values import PolicyError

POLICY_LEVEL: Final = Level(0, 12)
"""The first release whose runtimes set memory policies; older ones drop them."""


@dataclass(eq=False)
class RuntimeSetsNoPolicies(PolicyError):
    """A container asks for a memory policy that nobody would set.

    Attributes:
        title: The container, for people.
        runtime: The runtime, for people.
        level: Its NRI release.
    """

    title: str
    runtime: str
    level: Level

    def __str__(self) -> str:
        return (
            f"{self.title} asks for a memory policy, which NRI {self.level} of "
            f"{self.runtime} cannot set, {POLICY_LEVEL} could; to help, leave the "
            "annotation out, or upgrade the runtime"
        )


class ContainerMemory:
    """Read as late as something is asked of it, and once.

    Args:
        new: The container.
        config: What may be asked for.
        runtime: To reference adjustments are sent. Where it does not tell its NRI level, a
            policy is sent: what it does not know does no harm.
        tree: The host; None where there is nothing to look up.
    """

    def __init__(
        self,
        new: NewContainer,
        config: PolicyConfig,
        runtime: RuntimeInfo,
        tree: Tree | None,
    ) -> None:
        self._new = new
        self._config = config
        self._runtime = runtime
        self._tree = tree
        self._found: ResolvedPolicy | None = None

    def check(self) -> None:
        """Judge everything but the nodes of a policy.

        Raises:
            ResmgrError: Something cannot be had.
        """
        check_version((*self._qos, *self._misc), self._tree, self._title)
        level = self._runtime.level
        if self._policy is not None and level is not None and level < POLICY_LEVEL:
            raise RuntimeSetsNoPolicies(self._title, str(self._runtime), level)

    def find_nodes(self, pin: Pin, machine: Machine) -> None:
        """Work out the nodes of its policy, if it has one.

        Args:
            pin: Where it is put.
            machine: Of which it is a part.

        Raises:
            NoSuchNodes: None of them has memory that it may use.
        """
        if self._policy is not None:
            place = MemoryPlace(pin.cpus, pin.mems)
            self._found = resolve_numa_policy(self._policy, place, machine, self._title)

    def add(self, adjustment: ContainerAdjustment) -> ContainerAdjustment:
        """Add what the runtime is to set; all was judged before."""
        told = with_unified(adjustment, self._misc | self._qos)
        return told if self._found is None else _with_policy(told, self._found)

    def follow(self, update: ContainerUpdate) -> ContainerUpdate:
        """Add what depends on the memory limit.

        Raises:
            ResmgrError: With this limit nothing can be had.
        """
        check_version(self._qos, self._tree, self._title)
        return with_unified(update, self._qos)

    @property
    def _title(self) -> str:
        return self._new.spec.title

    @property
    def _name(self) -> str:
        return self._new.spec.name

    @cached_property
    def _qos(self) -> dict[str, str]:
        config = self._config.memory_qos
        if config is None:
            return {}
        request = memory_qos_request(self._new.pod.annotations, self._name)
        limit = self._new.spec.memory_limit
        return memory_qos_unified(request, config, limit, self._title)

    @cached_property
    def _misc(self) -> dict[str, str]:
        if not self._config.misc_limits:
            return {}
        annotations = self._new.pod.annotations
        return misc_unified(annotations, self._name, self._tree, self._title)

    @cached_property
    def _policy(self) -> NumaPolicy | None:
        config = self._config.memory_policy
        if config is None:
            return None
        request = numa_policy_request(self._new.pod.annotations, self._name)
        if request is None:
            return None
        return chosen_numa_policy(
            request, config.classes, parse_numa_policy, self._title
        )


def _with_policy(
    told: ContainerAdjustment, found: ResolvedPolicy
) -> ContainerAdjustment:
    policy = MemoryPolicy(
        MemoryPolicyMode[found.mode.name],
        str(found.nodes),
        tuple(MemoryPolicyFlag[flag.name] for flag in found.flags),
    )
    return told.set_memory_policy(policy)
