"""What a daemon makes of a host beside cgroups: settings of CPUs, published files."""

from __future__ import annotations

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


def published_in(run: Path) -> set[str]:
    """Return the containers with published files."""
    return {one.parent.name for one in run.glob("containers/*/resources.json")}
