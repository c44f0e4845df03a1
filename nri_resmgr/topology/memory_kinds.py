"""What memory is made of where the user knows better than whoever looked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from nri_resmgr.topology.machine import Machine
from nri_resmgr.topology.memory import MemoryKind
from nri_resmgr.values import InputError, NodeSet


@dataclass(eq=False)
class NoMemoryThere(InputError):
    """A kind of memory was told for nodes that have no memory."""

    nodes: NodeSet
    there: NodeSet

    def __str__(self) -> str:
        return (
            f"a kind of memory is given for node {self.nodes}, which has none; "
            f"nodes with memory: {self.there}"
        )


def with_memory_kinds(machine: Machine, kinds: Mapping[int, MemoryKind]) -> Machine:
    """Return the machine with other kinds of memory on some of its nodes.

    Raises:
        NoMemoryThere: A node does not exist, or has no memory.

    >>> from nri_resmgr.topology.synthetic import parse_spec
    >>> machine = parse_spec("2s1c memory=1Gi pmem=1x1Gi")
    >>> str(with_memory_kinds(machine, {2: MemoryKind.CXL}).node(2).kind)
    'cxl'
    """
    if strange := NodeSet.from_iterable(kinds) - machine.memory_nodes:
        raise NoMemoryThere(strange, machine.memory_nodes)
    nodes = (
        msgspec.structs.replace(n, kind=kinds.get(n.id, n.kind)) for n in machine.nodes
    )
    return msgspec.structs.replace(machine, nodes=tuple(nodes))
