"""A container's resources as shell variables and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache

from nri_resmgr.policy.decision import Resources
from nri_resmgr.topology import MemoryKind
from nri_resmgr.values import NO_NODES, NodeSet


@lru_cache(maxsize=256)  # containers of a shared pool have the same
def resource_texts(resources: Resources) -> Mapping[str, str]:
    """Return the texts of a container's files, by name.

    Empty values are left out. Lists have the kernel's format: digits, commas and
    dashes need no quoting in a shell.

    Source:
        nri-plugins, ``resources.sh``; CRI Resource Manager, the same file.
    """
    values = dict(_values(resources))
    lines = "".join(f'{name}="{value}"\n' for name, value in values.items())
    return {"resources.sh": lines, "resources.json": f"{json.dumps(values)}\n"}


def _values(resources: Resources) -> Iterator[tuple[str, str]]:
    for name, cpus in (
        ("SHARED_CPUS", resources.shared),
        ("ISOLATED_CPUS", resources.isolated),
        ("EXCLUSIVE_CPUS", resources.exclusive),
    ):
        if cpus:
            yield name, str(cpus)
    mems = resources.mems
    if every := NodeSet.union(mems.values()):
        yield "ALL_MEMS", str(every)
    for kind in (MemoryKind.DRAM, MemoryKind.PMEM, MemoryKind.HBM, MemoryKind.CXL):
        if nodes := mems.get(kind, NO_NODES):
            yield f"{kind.upper()}_MEMS", str(nodes)
