"""What other programs say of a machine, and what our model says in their words."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

from nri_resmgr.topology import Cache, CacheKind, Machine
from nri_resmgr.values import CpuSet

LSCPU = ("lscpu", "-p=CPU,CORE,SOCKET,NODE,CACHE")
NUMACTL = ("numactl", "--hardware")

_CACHE_NAMES = {CacheKind.DATA: "d", CacheKind.INSTRUCTION: "i", CacheKind.UNIFIED: ""}


def lscpu_groups(output: str) -> dict[str, set[str]]:
    """Read which CPUs are together in each column of ``lscpu -p``."""
    lines = output.splitlines()
    header = [line for line in lines if line.startswith("# CPU")][-1]
    # Caches are columns of their own, or one column of numbers with colons.
    columns = re.split("[,:]", header.removeprefix("# "))
    groups: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for line in lines:
        if not line.startswith("#"):
            values = re.split("[,:]", line)
            for column, value in zip(columns[1:], values[1:], strict=True):
                groups[column][value].append(int(values[0]))
    groups.pop("", None)  # what sets caches off where they are columns
    return {
        column: {str(CpuSet.of(*cpus)) for value, cpus in members.items() if value}
        for column, members in groups.items()
    }


def model_groups(machine: Machine) -> dict[str, set[str]]:
    """Say the same of our model."""
    groups = {
        "Core": {str(core.cpus) for core in machine.cores},
        "Socket": {str(package.cpus) for package in machine.packages},
        "Node": {str(node.cpus) for node in machine.nodes if node.cpus},
    }
    for cache in machine.caches:
        groups.setdefault(_name(cache), set()).add(str(cache.cpus))
    return groups


def _name(cache: Cache) -> str:
    return f"L{cache.level}{_CACHE_NAMES[cache.kind]}"


def numactl_nodes(output: str) -> dict[str, Any]:
    """Read nodes, their CPUs, sizes in MiB, and distances of ``numactl --hardware``."""
    cpus = re.findall(r"^node (\d+) cpus:(.*)$", output, re.MULTILINE)
    sizes = re.findall(r"^node (\d+) size: (\d+) MB$", output, re.MULTILINE)
    rows = re.findall(r"^ *(\d+): +(.*)$", output, re.MULTILINE)
    return {
        "cpus": {int(node): str(CpuSet.parse(found)) for node, found in cpus},
        "MiB": {int(node): int(size) for node, size in sizes},
        "distances": {int(n): [int(far) for far in row.split()] for n, row in rows},
    }


def model_nodes(machine: Machine) -> dict[str, Any]:
    """Say the same of our model."""
    return {
        "cpus": {node.id: str(node.cpus) for node in machine.nodes},
        "MiB": {node.id: node.memory >> 20 for node in machine.nodes},
        "distances": {
            node.id: list(row)
            for node, row in zip(machine.nodes, machine.distances, strict=True)
        },
    }
