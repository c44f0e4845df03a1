"""Determines the kind of each node's memory by the best available evidence."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Final, TypeAlias

from nri_resmgr.host.fields import optional_nodes, optional_number
from nri_resmgr.host.paths import DAX_ROOT, ND_ROOT, NODE_ROOT, TIER_ROOT
from nri_resmgr.host.tree import Tree
from nri_resmgr.log import Logger
from nri_resmgr.topology import MemoryKind, Node

# HMAT rounds, and remote DRAM is slower, too: only a clear difference counts.
_CLEARLY_FASTER: Final = 1.5
_CLEARLY_SLOWER: Final = 0.6

_CPU: Final = re.compile(r"cpu\d+", re.ASCII)
_TIER: Final = re.compile(r"memory_tier(\d+)", re.ASCII)

_CXL: Final = re.compile(r"/(?:ACPI0017|cxl|decoder\d)")
_ND: Final = re.compile(r"/ndbus\d")

_Kinds: TypeAlias = dict[int, MemoryKind]

log = Logger(__name__)


def read_memory_kinds(
    tree: Tree, nodes: Sequence[Node], configured: Mapping[int, MemoryKind]
) -> Mapping[int, MemoryKind]:
    """Determine the kind of every node's memory.

    The configured kind takes precedence. Otherwise a node with CPUs, online or not, or
    without memory counts as DRAM. For the others the first evidence decides: the
    persistent-memory or CXL region of the node, its bandwidth by firmware, the kernel's
    memory tier, and last its size, which is logged. Where nodes have the same CPUs,
    NUMA is emulated and sizes are arbitrary: what has no evidence is DRAM.

    Raises:
        BadHostFile: A file has an invalid value.
    """
    full = [node for node in nodes if node.memory]
    for node_id in sorted(configured.keys() - {node.id for node in full}):
        # The memory may come later, so this is no error.
        log.warning("topology.unused", configured=f"node{node_id} memory kind")
    kinds = {node.id: MemoryKind.DRAM for node in nodes}
    kinds.update(
        (node.id, configured[node.id]) for node in full if node.id in configured
    )
    unknown = [
        node
        for node in full
        if node.id not in configured
        and not node.cpus
        and not _has_offline_cpus(tree, node)
    ]
    if not unknown:
        return kinds
    dram = [node for node in full if node.cpus and kinds[node.id] is MemoryKind.DRAM]
    evidence = (
        _by_region(tree),
        _by_bandwidth(tree, dram, unknown),
        _by_tier(tree, dram, unknown),
    )
    comparable = () if _share_cpus(nodes) else dram
    for node in unknown:
        kinds_found = (found[node.id] for found in evidence if node.id in found)
        kinds[node.id] = next(kinds_found, None) or _by_size(comparable, node)
    return kinds


def _share_cpus(nodes: Sequence[Node]) -> bool:
    return any(
        not one.cpus.isdisjoint(other.cpus) for one, other in combinations(nodes, 2)
    )


def _has_offline_cpus(tree: Tree, node: Node) -> bool:
    """Search links to CPUs, which stay when a CPU goes offline."""
    folder = f"{NODE_ROOT}/node{node.id}"
    return any(
        tree.target(f"{folder}/{name}")
        for name in tree.names(folder)
        if _CPU.fullmatch(name)
    )


def _by_region(tree: Tree) -> _Kinds:
    """Find the nodes of persistent-memory regions and dax devices."""
    kinds: _Kinds = {}
    for region in tree.names(ND_ROOT):
        node = optional_number(tree, f"{ND_ROOT}/{region}/target_node")
        if node is not None and node >= 0:
            kinds[node] = MemoryKind.PMEM
    for device in tree.names(DAX_ROOT):
        node = optional_number(tree, f"{DAX_ROOT}/{device}/target_node")
        real = tree.target(f"{DAX_ROOT}/{device}") or ""
        # Soft-reserved memory ("hmem") is dax as well, and may be of any kind.
        if node is not None and node >= 0:
            if _CXL.search(real):
                kinds[node] = MemoryKind.CXL
            elif _ND.search(real):
                kinds[node] = MemoryKind.PMEM
    return kinds


def _by_bandwidth(tree: Tree, dram: Sequence[Node], unknown: Sequence[Node]) -> _Kinds:
    """Compare the HMAT bandwidth of nodes with that of DRAM nodes."""
    usual = max((_bandwidth(tree, node) for node in dram), default=0)
    kinds: _Kinds = {}
    for node in unknown if usual else ():
        speed = _bandwidth(tree, node)
        if speed >= usual * _CLEARLY_FASTER:
            kinds[node.id] = MemoryKind.HBM
        elif speed > usual * _CLEARLY_SLOWER:
            kinds[node.id] = MemoryKind.DRAM
        elif speed:
            kinds[node.id] = MemoryKind.CXL
    return kinds


def _bandwidth(tree: Tree, node: Node) -> int:
    """Read the read bandwidth of the nearest CPUs in MB/s; 0 if unknown."""
    for access in ("access1", "access0"):  # access0 may be that of a device
        folder = f"{NODE_ROOT}/node{node.id}/{access}/initiators"
        if speed := optional_number(tree, f"{folder}/read_bandwidth"):
            return speed
    return 0


def _by_tier(tree: Tree, dram: Sequence[Node], unknown: Sequence[Node]) -> _Kinds:
    """Compare demotion tiers: lower numbers are faster, equal ones no evidence."""
    tiers: dict[int, int] = {}
    for name in tree.names(TIER_ROOT):
        if match := _TIER.fullmatch(name):
            members = optional_nodes(tree, f"{TIER_ROOT}/{name}/nodelist")
            tiers.update(dict.fromkeys(members or (), int(match[1])))
    usual = [tiers[node.id] for node in dram if node.id in tiers]
    kinds: _Kinds = {}
    for node in unknown if usual else ():
        tier = tiers.get(node.id, usual[0])
        if tier < min(usual):
            kinds[node.id] = MemoryKind.HBM
        elif tier > max(usual):
            kinds[node.id] = MemoryKind.CXL
    return kinds


def _by_size(dram: Sequence[Node], node: Node) -> MemoryKind:
    """Guess by size: nodes smaller than the average DRAM node are HBM, others PMEM.

    If there are none to compare with, it is DRAM.
    """
    if not dram:
        return MemoryKind.DRAM
    total = sum(other.memory for other in dram)
    kind = MemoryKind.HBM if node.memory * len(dram) < total else MemoryKind.PMEM
    log.warning("topology.fallback", unknown=f"node{node.id} memory kind", used=kind)
    return kind
