"""What a daemon makes of a host beside cgroups: settings of CPUs, published files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from nri_resmgr.values import CpuSet
from tests.daemon.host_nodes import fast, quiet
from tests.host.cpu_trees import intel_pstate

_CPUS: Final = CpuSet.parse("0-7")
_SETTINGS: Final = frozenset(fast(*_CPUS) | quiet())


def settings_at(host: Path) -> Mapping[str, str]:
    """Return what a host has where CPU classes set something."""
    return {path: (host / path[1:]).read_text().strip() for path in _SETTINGS}


def settings_for(exclusive: CpuSet) -> Mapping[str, str]:
    """Return what CPU classes make of a host where containers have these CPUs."""
    before = {path: text.strip() for path, text in intel_pstate().items()}
    wanted = quiet(*exclusive) | fast(*exclusive)
    return {path: wanted.get(path, before[path]) for path in _SETTINGS}


def groups_at(host: Path) -> Mapping[str, str]:
    """Return the RDT groups of a host with the lines of L3 of each.

    The daemon writes as to the kernel, and a longer text leaves its end in a file.
    """
    root = host / "sys/fs/resctrl"
    return {
        str(path.parent.relative_to(root)): path.read_text().partition("\n")[0]
        for path in root.rglob("schemata")
    }


def published_in(run: Path) -> Mapping[str, tuple[str, str]]:
    """Return the CPUs and memory nodes that are published to each container.

    Either is "torn" where the two files of a container differ.
    """
    found = {}
    for path in run.glob("containers/*/resources.json"):
        values = json.loads(path.read_text())
        lines = [f'{name}="{value}"' for name, value in values.items()]
        if path.with_suffix(".sh").read_text().splitlines() != lines:
            found[path.parent.name] = ("torn", "torn")
            continue
        cpus = (values.get(f"{kind}_CPUS", "") for kind in ("SHARED", "EXCLUSIVE"))
        published = CpuSet.union(map(CpuSet.parse, cpus))
        found[path.parent.name] = (str(published), values.get("ALL_MEMS", ""))
    return found
