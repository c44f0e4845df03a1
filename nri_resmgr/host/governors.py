"""The scaling governors that CPUs can have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nri_resmgr.classes.cpu.facts import CPUFREQ_ROOT
from nri_resmgr.host.fields import optional_cpus
from nri_resmgr.host.tree import Tree

_POLICY: Final = "policy"


def read_governors(tree: Tree) -> Mapping[int, tuple[str, ...]]:
    """Read which governors each CPU can have; CPUs without cpufreq are left out.

    Raises:
        BadHostFile: A list of CPUs cannot be read as one.
        UnreadableHostFile: The kernel refused to let us read a file.

    Source:
        Linux, Documentation/admin-guide/pm/cpufreq.rst.
    """
    found: dict[int, tuple[str, ...]] = {}
    for name in tree.names(CPUFREQ_ROOT):
        number = name.removeprefix(_POLICY)
        if number == name or not number.isdecimal():
            continue
        folder = f"{CPUFREQ_ROOT}/{name}"
        words = (tree.read(f"{folder}/scaling_available_governors") or "").split()
        cpus = optional_cpus(tree, f"{folder}/affected_cpus")
        found |= dict.fromkeys([int(number)] if cpus is None else cpus, tuple(words))
    return found
