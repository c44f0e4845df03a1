"""Requests of one container about its memory: read, checked, and added to messages."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from nri_proto import NriLevel
from nri_resmgr.app.classes.memory.injection import MPOLSET, injected
from nri_resmgr.app.classes.memory.misc_limits import misc_unified, write_rest
from nri_resmgr.app.classes.setter import NewContainer, SetterOptions
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
from nri_resmgr.host.mpolset import MpolsetProgram
from nri_resmgr.host.remembered import RememberedTree
from nri_resmgr.policy.events import Pin
from nri_resmgr.stub.adjustment import ContainerAdjustment
from nri_resmgr.stub.model import MemoryPolicy, MemoryPolicyFlag, MemoryPolicyMode
from nri_resmgr.stub.runtime_info import RuntimeInfo
from nri_resmgr.stub.update import ContainerUpdate
from nri_resmgr.topology import Machine
from nri_resmgr.values import InputError, PolicyError

POLICY_LEVEL: Final = NriLevel(0, 12)
"""First NRI release with memory policies; older runtimes drop them."""

ARGS_LEVEL: Final = NriLevel(0, 10)
"""First NRI release where plugins change command lines; older ones drop changes."""


@dataclass(eq=False)
class RuntimeSetsNoPolicies(PolicyError):
    """A container asks for a memory policy, which the runtime cannot set."""

    title: str
    runtime: str
    level: NriLevel

    def __str__(self) -> str:
        if self.level < ARGS_LEVEL:
            help_text = (
                "leave the annotation out, or upgrade the runtime (memoryPolicy."
                f"injectMpolset would need NRI {ARGS_LEVEL})"
            )
        else:
            help_text = (
                "set memoryPolicy.injectMpolset: true in the configuration, leave the "
                "annotation out, or upgrade the runtime"
            )
        return (
            f"{self.title} asks for a memory policy, which NRI {self.level} of "
            f"{self.runtime} cannot set, {POLICY_LEVEL} could; to help, {help_text}"
        )


@dataclass(eq=False)
class NotInjectable(InputError):
    """A container cannot be started by ``mpolset``."""

    title: str
    why: str

    def __str__(self) -> str:
        return (
            f"{self.title} asks for a memory policy, which mpolset would set, but "
            f"{self.why}; to help, leave the annotation out, or upgrade the runtime to "
            f"NRI {POLICY_LEVEL}"
        )


class ContainerMemory:
    """The memory requests of a container; each is read when needed, and once.

    A runtime of unknown NRI release is sent a policy: it ignores unknown fields.
    """

    def __init__(
        self,
        new: NewContainer,
        config: PolicyConfig,
        runtime: RuntimeInfo,
        tree: RememberedTree | None,
        options: SetterOptions,
    ) -> None:
        self._options = options
        self._program = ""
        self._new = new
        self._config = config
        self._runtime = runtime
        self._tree = tree
        self._found: ResolvedPolicy | None = None

    def check(self) -> None:
        """Check everything but the nodes of a policy.

        Raises:
            ResmgrError: A request cannot be met.
        """
        check_version((*self._qos, *self._misc), self._tree, self._title)
        level = self._runtime.level
        if self._policy is not None and level is not None and level < POLICY_LEVEL:
            config = self._config.memory_policy
            if level < ARGS_LEVEL or config is None or not config.injects:
                raise RuntimeSetsNoPolicies(self._title, str(self._runtime), level)
            self._prepare_injection()

    def find_nodes(self, pin: Pin, machine: Machine) -> None:
        """Resolve the nodes of its NUMA policy, if it has one.

        Raises:
            NoSuchNodes: None of the nodes has memory that it may use.
        """
        if self._policy is not None:
            place = MemoryPlace(pin.cpus, pin.mems)
            self._found = resolve_numa_policy(self._policy, place, machine, self._title)

    def add(self, adjustment: ContainerAdjustment) -> ContainerAdjustment:
        """Add what the runtime sets; all of it has been checked."""
        result = with_unified(adjustment, self._misc | self._qos)
        if (found := self._found) is None:
            return result
        if self._program:
            return injected(result, found, self._new.container, self._program)
        flags = tuple(MemoryPolicyFlag[flag.name] for flag in found.flags)
        mode = MemoryPolicyMode[found.mode.name]
        return result.set_memory_policy(MemoryPolicy(mode, str(found.nodes), flags))

    def start(self) -> None:
        """Write the misc limits that the runtime has not set.

        Raises:
            NotSetOnHost: One cannot be written.
        """
        if self._config.misc_limits:
            write_rest(self._new, self._tree)

    def update(self, update: ContainerUpdate) -> ContainerUpdate:
        """Add what depends on the memory limit.

        Raises:
            ResmgrError: The request cannot be met with this limit.
        """
        check_version(self._qos, self._tree, self._title)
        return with_unified(update, self._qos)

    def _prepare_injection(self) -> None:
        options, container = self._options, self._new.container
        if not container.args:
            raise NotInjectable(self._title, "the runtime reports no command of it")
        if MPOLSET in (mount.destination for mount in container.mounts):
            raise NotInjectable(self._title, f"it has a mount at {MPOLSET}")
        if options.mpolset is None:
            self._program = MPOLSET
            return
        program = MpolsetProgram(options.mpolset, options.run_dir, options.dry_run)
        self._program = program.place()

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
        found = misc_unified(annotations, self._name, self._tree, self._title)
        return dict(found.values)

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
