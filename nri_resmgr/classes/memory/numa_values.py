"""NUMA policies as they are written: mode, nodes and flags."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

import msgspec

from nri_resmgr.values import NO_NODES, BadListFormat, InputError, NodeSet

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
        why: What is wrong with it.
    """

    part: str
    why: str

    def __str__(self) -> str:
        return f"{self.part}: {self.why}"


class NumaPolicy(msgspec.Struct, frozen=True):
    """A NUMA policy as written.

    Attributes:
        mode: The mode.
        nodes: A `NodeWord`, ``max-dist:N``, a list as ``0-1,4``, or empty.
        flags: Flags of the mode.
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
