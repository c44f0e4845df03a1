"""Kinds of memory set by the user, for nodes where discovery cannot know them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from nri_resmgr.topology.machine import Machine
from nri_resmgr.topology.memory import MemoryKind
from nri_resmgr.values import InputError, NodeSet


@dataclass(eq=False)
class NodesWithoutMemory(InputError):
    """A kind of memory is set for nodes without memory."""

    nodes: NodeSet
    memory_nodes: NodeSet

    def __str__(self) -> str:
        return (
            f"a kind of memory is given for node {self.nodes}, which has none; "
            f"nodes with memory: {self.memory_nodes}"
        )


def with_memory_kinds(machine: Machine, kinds: Mapping[int, MemoryKind]) -> Machine:
    """Return the machine with other kinds of memory on some nodes.

    Raises:
        NodesWithoutMemory: A node does not exist, or has no memory.

    >>> from nri_resmgr.topology.synthetic import parse_spec
    >>> machine = parse_spec("2s1c memory=1Gi pmem=1x1Gi")
    >>> str(with_memory_kinds(machine, {2: MemoryKind.CXL}).node(2).kind)
    'cxl'
    """
    if without := NodeSet.from_iterable(kinds) - machine.memory_nodes:
        raise NodesWithoutMemory(without, machine.memory_nodes)
    nodes = (replace(n, kind=kinds.get(n.id, n.kind)) for n in machine.nodes)
    return replace(machine, nodes=tuple(nodes))
