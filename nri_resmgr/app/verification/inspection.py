"""Reads the cgroups of containers and compares them; runs in a thread."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from nri_resmgr.app.verification.drift import (
    AS_DECIDED,
    NOT_RUNNING,
    Finding,
    PresentResources,
    Verdict,
    classify,
    differences_of,
)
from nri_resmgr.host.cgroups.containers import CgroupReference, ContainerCgroups
from nri_resmgr.host.fields import optional_cpus, optional_nodes
from nri_resmgr.host.paths import CPU_ROOT, NODE_ROOT
from nri_resmgr.host.tree import Tree
from nri_resmgr.policy.events import Pin
from nri_resmgr.topology import Machine
from nri_resmgr.values import HostError


class Inspected(msgspec.Struct, frozen=True):
    """A container's cgroup to inspect, and its decided values."""

    cgroup: CgroupReference
    wanted: Pin


class Inspection:
    """Compares decided values with those that the kernel has in force."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._cgroups = ContainerCgroups(tree)

    def inspect(
        self, containers: Iterable[Inspected], machine: Machine, *, afresh: bool = False
    ) -> dict[str, Finding]:
        """Inspect containers, one after the other.

        Args:
            containers: Those to inspect.
            machine: The present model, for what the kernel does not report.
            afresh: Whether to search their cgroups again, without the cached paths.

        Returns:
            The findings by id, including errors of reading.
        """
        return {
            one.cgroup.id: self._inspect(one, machine, afresh=afresh)
            for one in containers
        }

    def keep_only(self, containers: Collection[str]) -> None:
        """Drop the cached cgroup paths of other containers."""
        self._cgroups.keep_only(containers)

    def _inspect(self, one: Inspected, machine: Machine, *, afresh: bool) -> Finding:
        cgroup, wanted = one.cgroup, one.wanted
        try:
            found = self._cgroups.read(
                cgroup, weighed=bool(wanted.shares), afresh=afresh
            )
            if found is None:
                return NOT_RUNNING
            if not differences_of(wanted, found):
                return AS_DECIDED
            # Only now, because it takes more files: most containers do not differ.
            if not self._cgroups.has_processes(cgroup):
                return NOT_RUNNING
            asked_for = self._cgroups.requested(cgroup)
            return classify(wanted, found, asked_for, self._present(machine))
        except HostError as error:
            return Finding(Verdict.UNREADABLE, why=str(error))

    def _present(self, machine: Machine) -> PresentResources:
        cpus = optional_cpus(self._tree, f"{CPU_ROOT}/online")
        mems = optional_nodes(self._tree, f"{NODE_ROOT}/has_memory")
        return PresentResources(cpus or machine.online, mems or machine.memory_nodes)
