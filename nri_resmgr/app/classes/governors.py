"""Governors of the host's frequencies, for the check of annotations."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from nri_resmgr.host.knobs.cpu import read_governors
from nri_resmgr.host.tree import Tree
from nri_resmgr.values import HostError


class Governors:
    """The available governors of each CPU, read before a request needs them.

    A driver has the same governors for as long as it is loaded. CPUs that come later
    are read when they are asked for.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._known: Mapping[int, tuple[str, ...]] = {}
        with suppress(HostError):  # it is reported where a CPU is asked for
            self._known = read_governors(tree)

    def of(self, cpu: int) -> tuple[str, ...]:
        """Return the governors of a CPU; none if it has no cpufreq.

        Raises:
            BadHostFile: A list of CPUs is invalid.
            UnreadableHostFile: The kernel refused to read a file.
        """
        if cpu not in self._known:
            self._known = read_governors(self._tree)
        return self._known.get(cpu, ())
