"""Reads NUMA nodes and their distances from sysfs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from nri_resmgr.host.fields import (
    cpus,
    memory_total,
    number,
    optional_nodes,
    required,
    text_or_nothing,
)
from nri_resmgr.host.machine.memory_kinds import read_memory_kinds
from nri_resmgr.host.paths import NODE_ROOT
from nri_resmgr.host.tree import BadHostFile, Tree
from nri_resmgr.log import Logger
from nri_resmgr.topology import HugePages, MemoryKind, Node
from nri_resmgr.values import Bytes, CpuSet, NodeSet

# The kernel's defaults without a SLIT (include/linux/topology.h).
_LOCAL: Final = 10
_REMOTE: Final = 20

_HUGE: Final = re.compile(r"hugepages-(\d+)kB", re.ASCII)
_NODE: Final = re.compile(r"node(\d{1,5})", re.ASCII)
_USED: Final = re.compile(r"MemUsed:\s+(\d{1,18}) kB", re.ASCII)

log = Logger(__name__)


def read_nodes(
    tree: Tree,
    online: CpuSet,
    present: CpuSet,
    configured: Mapping[int, MemoryKind],
) -> tuple[Node, ...]:
    """Read the online nodes by id, including sparse ids and empty nodes.

    *configured* has the kinds of memory that the user has configured.

    Without NUMA in the kernel there is node 0, with the memory of ``/proc/meminfo``;
    that is logged. So it is if nodes have the same CPUs, as with emulated NUMA.

    Raises:
        MissingHostFile: A node lacks its CPUs or its memory.
        BadHostFile: A file has an invalid value.

    Source:
        Linux, Documentation/ABI/stable/sysfs-devices-node.
    """
    ids = _node_ids(tree)
    if not ids:
        log.warning("topology.fallback", missing=NODE_ROOT, used="one node")
        pools = _read_hugepages(tree, "/sys/kernel/mm/hugepages")
        memory = memory_total(tree, "/proc/meminfo")
        nodes: tuple[Node, ...] = (Node(0, online, memory, hugepages=pools),)
        return _with_kinds(tree, nodes, configured)
    normal = optional_nodes(tree, f"{NODE_ROOT}/has_normal_memory")
    nodes = tuple(_read_node(tree, node, normal) for node in ids)
    _check_cpus(nodes, online, present)
    # Before Linux 4.14 nodes list offline CPUs as well.
    nodes = tuple(replace(node, cpus=node.cpus & online) for node in nodes)
    return _with_kinds(tree, nodes, configured)


def _with_kinds(
    tree: Tree, nodes: tuple[Node, ...], configured: Mapping[int, MemoryKind]
) -> tuple[Node, ...]:
    kinds = read_memory_kinds(tree, nodes, configured)
    return tuple(replace(node, kind=kinds[node.id]) for node in nodes)


def _node_ids(tree: Tree) -> NodeSet:
    ids = optional_nodes(tree, f"{NODE_ROOT}/online")
    if ids is not None:
        return ids
    found = map(_NODE.fullmatch, tree.names(NODE_ROOT))
    return NodeSet.from_iterable(int(match[1]) for match in found if match)


def _read_node(tree: Tree, node: int, normal: NodeSet | None) -> Node:
    folder = f"{NODE_ROOT}/node{node}"
    memory = memory_total(tree, f"{folder}/meminfo")
    return Node(
        id=node,
        cpus=cpus(tree, f"{folder}/cpulist"),
        memory=memory,
        movable=bool(memory) and normal is not None and node not in normal,
        hugepages=_read_hugepages(tree, f"{folder}/hugepages"),
    )


def _check_cpus(nodes: Sequence[Node], online: CpuSet, present: CpuSet) -> None:
    first: dict[CpuSet, int] = {}
    for node in nodes:
        path = f"{NODE_ROOT}/node{node.id}/cpulist"
        if extra := node.cpus - present:
            raise BadHostFile(path, f"CPU {extra} does not exist")
        others = CpuSet.union(first)
        if node.cpus not in first and (both := node.cpus & others):
            raise BadHostFile(path, f"CPU {both} is in another node, too")
        first.setdefault(node.cpus, node.id)
    if missing := online - CpuSet.union(first):
        raise BadHostFile(f"{NODE_ROOT}/node*/cpulist", f"no CPU {missing}")
    emulated = [node.id for node in nodes if node.cpus and first[node.cpus] != node.id]
    if emulated:
        what = f"node {NodeSet.from_iterable(emulated)} with CPUs of another one"
        log.warning("topology.fallback", unknown=what, used="CPUs of both")


def _read_hugepages(tree: Tree, folder: str) -> tuple[HugePages, ...]:
    sizes = sorted(
        int(match[1]) for match in map(_HUGE.fullmatch, tree.names(folder)) if match
    )
    pools = (
        HugePages(
            Bytes(size << 10), number(tree, f"{folder}/hugepages-{size}kB/nr_hugepages")
        )
        for size in sizes
    )
    return tuple(pool for pool in pools if pool.count)


def read_distances(tree: Tree, nodes: Sequence[Node]) -> tuple[tuple[int, ...], ...]:
    """Read one row per node, with an entry for each online node.

    If no node has a ``distance`` file, the kernel's defaults 10 and 20 are used; that
    is logged.

    Raises:
        MissingHostFile: A node lacks the file while others have it.
        BadHostFile: A row has too few or too many entries, or one below 10.
    """
    paths = [f"{NODE_ROOT}/node{node.id}/distance" for node in nodes]
    if all(tree.read(path) is None for path in paths):
        if len(nodes) > 1:
            log.warning("topology.fallback", missing="distance", used="10 and 20")
        return tuple(tuple(_LOCAL if a is b else _REMOTE for b in nodes) for a in nodes)
    return tuple(_read_row(tree, path, len(nodes)) for path in paths)


def _read_row(tree: Tree, path: str, count: int) -> tuple[int, ...]:
    words = required(tree, path).split()
    if len(words) != count or not all(word.isdecimal() for word in words):
        raise BadHostFile(path, f"{count} numbers expected, found {' '.join(words)!r}")
    row = tuple(map(int, words))
    if min(row) < _LOCAL:
        raise BadHostFile(path, f"{min(row)} is less than the local distance, {_LOCAL}")
    return row


def used_memory(tree: Tree, node: int) -> Bytes | None:
    """Read the used memory of a node; None if the kernel does not report it.

    Source:
        Linux, drivers/base/node.c.
    """
    match = _USED.search(text_or_nothing(tree, f"{NODE_ROOT}/node{node}/meminfo"))
    return Bytes(int(match[1]) << 10) if match else None
