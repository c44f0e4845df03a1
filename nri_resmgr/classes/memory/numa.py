"""NUMA policies: as written, as requested by annotations, resolved to nodes."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from nri_resmgr.classes.memory.errors import (
    BadMemoryAnnotation,
    NoSuchNodes,
    UnknownMemoryClass,
)
from nri_resmgr.topology import Machine
from nri_resmgr.values import (
    NO_CPUS,
    NO_NODES,
    BadListFormat,
    CpuSet,
    InputError,
    NodeSet,
)
from nri_resmgr.values.annotations import Annotation, by_scope

MAX_DIST: Final = "max-dist:"
_FARTHEST: Final = 255  # the largest distance in firmware tables


class PolicyMode(enum.StrEnum):
    """Modes of set_mempolicy(2)."""

    DEFAULT = "MPOL_DEFAULT"
    PREFERRED = "MPOL_PREFERRED"
    BIND = "MPOL_BIND"
    INTERLEAVE = "MPOL_INTERLEAVE"
    LOCAL = "MPOL_LOCAL"
    PREFERRED_MANY = "MPOL_PREFERRED_MANY"
    WEIGHTED_INTERLEAVE = "MPOL_WEIGHTED_INTERLEAVE"


class PolicyFlag(enum.StrEnum):
    """Mode flags of set_mempolicy(2)."""

    STATIC_NODES = "MPOL_F_STATIC_NODES"
    RELATIVE_NODES = "MPOL_F_RELATIVE_NODES"
    NUMA_BALANCING = "MPOL_F_NUMA_BALANCING"


_NODELESS: Final = (PolicyMode.DEFAULT, PolicyMode.LOCAL)
_FIXED: Final = frozenset({PolicyFlag.STATIC_NODES, PolicyFlag.RELATIVE_NODES})
_BALANCED: Final = (PolicyMode.BIND, PolicyMode.PREFERRED_MANY)


class NodeWord(enum.StrEnum):
    """Words for nodes that depend on the container's place."""

    ALL = "all"
    ALLOWED = "allowed-mems"
    PACKAGES = "cpu-packages"
    CPUS = "cpu-nodes"


@dataclass(eq=False)
class BadMemoryPolicy(InputError):
    """A policy that the kernel would refuse.

    Attributes:
        part: ``mode``, ``nodes`` or ``flags``.
    """

    part: str
    why: str

    def __str__(self) -> str:
        return f"{self.part}: {self.why}"


class NumaPolicy(msgspec.Struct, frozen=True):
    """A NUMA policy as written.

    Attributes:
        nodes: A `NodeWord`, ``max-dist:N``, a list as ``0-1,4``, or empty.
    """

    mode: PolicyMode
    nodes: str = ""
    flags: tuple[PolicyFlag, ...] = ()

    def check(self) -> None:
        """Check that mode, nodes and flags can be combined.

        Raises:
            BadMemoryPolicy: They cannot.

        Source:
            Linux, mm/mempolicy.c, ``sanitize_mpol_flags`` and ``mpol_new``.
        """
        if self.nodes and self.mode in _NODELESS:
            raise BadMemoryPolicy("nodes", f"{self.mode} takes none")
        if not self.nodes and self.mode not in (*_NODELESS, PolicyMode.PREFERRED):
            raise BadMemoryPolicy("nodes", f"missing, {self.mode} needs some")
        fixed = _FIXED.intersection(self.flags)
        if fixed and not self.nodes:
            raise BadMemoryPolicy("flags", f"{min(fixed)} needs nodes")
        if len(fixed) > 1:
            both = " and ".join(sorted(fixed))
            raise BadMemoryPolicy("flags", f"{both} exclude each other")
        if PolicyFlag.NUMA_BALANCING in self.flags and self.mode not in _BALANCED:
            modes = " or ".join(_BALANCED)
            why = f"{PolicyFlag.NUMA_BALANCING} needs {modes}"
            raise BadMemoryPolicy("flags", why)
        _check_nodes(self.nodes)


def is_word(nodes: str) -> bool:
    """Return whether nodes are empty or depend on the container's place."""
    return nodes in tuple(NodeWord) or nodes.startswith(MAX_DIST) or not nodes


def _check_nodes(nodes: str) -> None:
    expected = f"expected {', '.join(NodeWord)}, {MAX_DIST}N or a list as 0-1,4"
    if nodes.startswith(MAX_DIST):
        far = nodes.removeprefix(MAX_DIST)
        if not (far.isascii() and far.isdecimal()) or len(far) > len(str(_FARTHEST)):
            raise BadMemoryPolicy("nodes", f"{expected}, not {nodes!r}")
    elif not is_word(nodes):
        try:
            found = NodeSet.parse(nodes)
        except BadListFormat:
            found = NO_NODES
        if not found:
            raise BadMemoryPolicy("nodes", f"{expected}, not {nodes!r}")


CLASS_KEY: Final = "class.memory-policy.nri.io"
"""Annotation that names a class; the narrowest scope applies: ``/container.NAME``,
``/pod``, no suffix. An empty value cancels the request of a wider scope."""

POLICY_KEY: Final = "policy.memory-policy.nri.io"
"""Annotation with a policy itself, as YAML, in the same scopes."""


class NumaPolicyRequest(msgspec.Struct, frozen=True):
    """The request of annotations for a container: a class or a policy."""

    class_name: str = ""
    policy: Annotation | None = None


def numa_policy_request(
    annotations: Mapping[str, str], container: str
) -> NumaPolicyRequest | None:
    """Read the request of a pod's annotations for one of its containers.

    Returns:
        None for no request, or for a cancelled one.

    Raises:
        BadMemoryAnnotation: A scope names a class and has a policy as well.

    Source:
        nri-plugins, ``cmd/plugins/memory-policy``.
    """
    scopes = by_scope(annotations, (CLASS_KEY, POLICY_KEY), container)
    if not scopes:
        return None
    if len(scopes[0]) > 1:
        one, other = scopes[0]
        raise BadMemoryAnnotation(
            one.key,
            one.value,
            f"cannot be combined with {other.key}: remove one of them",
        )
    annotation = scopes[0][0]
    if not annotation.value.strip():
        return None
    if annotation.key.startswith(CLASS_KEY):
        return NumaPolicyRequest(annotation.value)
    return NumaPolicyRequest(policy=annotation)


def chosen_numa_policy(
    request: NumaPolicyRequest,
    classes: Mapping[str, NumaPolicy],
    read: Callable[[str], NumaPolicy],
    title: str,
) -> NumaPolicy:
    """Return the policy that a request asks for.

    *read* reads YAML: `parse_numa_policy` of `nri_resmgr.config.memory_classes`.

    Raises:
        UnknownMemoryClass: The class does not exist.
        BadMemoryAnnotation: The policy is invalid.
    """
    if request.policy is not None:
        try:
            return read(request.policy.value)
        except InputError as error:
            why = f"is no memory policy: {error}"
            raise BadMemoryAnnotation(
                request.policy.key, request.policy.value, why
            ) from None
    found = classes.get(request.class_name)
    if found is None:
        name = request.class_name
        raise UnknownMemoryClass(title, "memory policy", name, tuple(classes))
    return found


class MemoryPlace(msgspec.Struct, frozen=True):
    """CPUs and memory nodes of a container.

    Attributes:
        cpus: Its CPUs; empty for all online ones.
        mems: Its memory nodes; empty for all nodes with memory.
    """

    cpus: CpuSet = NO_CPUS
    mems: NodeSet = NO_NODES


class ResolvedPolicy(msgspec.Struct, frozen=True):
    """A policy in NRI's form."""

    mode: PolicyMode
    nodes: NodeSet = NO_NODES
    flags: tuple[PolicyFlag, ...] = ()


def resolve_numa_policy(
    policy: NumaPolicy, place: MemoryPlace, machine: Machine, title: str
) -> ResolvedPolicy:
    """Resolve the nodes of a policy for a container.

    The policy is one that `NumaPolicy.check` accepts. Words mean nodes with memory. A
    list is not changed: with ``MPOL_F_RELATIVE_NODES`` it numbers the container's
    nodes.

    Raises:
        NoSuchNodes: A list has nodes that the machine does not have, or the container
            may use the memory of none of them: the kernel would refuse the policy, and
            then the runtime the container.

    Source:
        Linux, mm/mempolicy.c, ``mpol_set_nodemask``: an empty set is refused after
        the nodes are cut to those of the cpuset.
    """
    if not policy.nodes:
        return ResolvedPolicy(policy.mode, NO_NODES, policy.flags)
    meant = _meant(policy.nodes, place, machine)
    if PolicyFlag.RELATIVE_NODES not in policy.flags:
        if not meant <= machine.node_ids:
            why = f"the machine has {machine.node_ids}"
            raise NoSuchNodes(title, policy.nodes, meant, why)
        allowed = (place.mems or machine.memory_nodes) & machine.memory_nodes
        if meant.isdisjoint(allowed):
            why = f"the container may use the memory of {allowed or 'none'}"
            raise NoSuchNodes(title, policy.nodes, meant, why)
    return ResolvedPolicy(policy.mode, meant, policy.flags)


def _meant(nodes: str, place: MemoryPlace, machine: Machine) -> NodeSet:
    cpus = (place.cpus or machine.online) & machine.online
    with_memory = machine.memory_nodes
    match nodes:
        case NodeWord.ALL:
            return with_memory
        case NodeWord.ALLOWED:
            return (place.mems or with_memory) & with_memory
        case NodeWord.CPUS:
            return machine.nodes_of(cpus) & with_memory
        case NodeWord.PACKAGES:
            packages = (package.cpus for package in machine.packages)
            near = CpuSet.union(one for one in packages if one & cpus)
            return machine.nodes_of(near) & with_memory
        case _ if nodes.startswith(MAX_DIST):
            farthest = int(nodes.removeprefix(MAX_DIST))
            own = machine.nodes_of(cpus)
            return NodeSet.from_iterable(
                to
                for to in with_memory
                if any(machine.distance(here, to) <= farthest for here in own)
            )
        case _:
            return NodeSet.parse(nodes)
