"""One look at the cgroups of containers: for a thread, because it reads files."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from nri_resmgr.app.verification.drift import (
    AS_DECIDED,
    NOT_RUNNING,
    Finding,
    Present,
    Verdict,
    differences_of,
    judge,
)
from nri_resmgr.host.cgroups.containers import CgroupReference, ContainerCgroups
from nri_resmgr.host.fields import optional_cpus, optional_nodes
from nri_resmgr.host.paths import CPU_ROOT, NODE_ROOT
from nri_resmgr.host.tree import Tree
from nri_resmgr.policy.events import Pin
from nri_resmgr.topology import Machine
from nri_resmgr.values import HostError


class Inspected(msgspec.Struct, frozen=True):
    """A container to look at.

    Attributes:
        whom: The container.
        wanted: What should hold.
    """

    whom: CgroupReference
    wanted: Pin


class Inspection:
    """Compares what should hold with what the kernel says.

    Args:
        tree: The host.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._cgroups = ContainerCgroups(tree)

    def look(
        self, containers: Iterable[Inspected], machine: Machine, *, afresh: bool = False
    ) -> dict[str, Finding]:
        """Look at containers, one after the other.

        Args:
            containers: Whom to look at.
            machine: The model in force; what is there right now counts before it.
            afresh: Find their cgroups anew.

        Returns:
            What each look showed, by id; also that something could not be read.
        """
        return {
            one.whom.id: self._look(one, machine, afresh=afresh) for one in containers
        }

    def keep_only(self, containers: Collection[str]) -> None:
        """Forget where the cgroups of others were."""
        self._cgroups.keep_only(containers)

    def _look(self, one: Inspected, machine: Machine, *, afresh: bool) -> Finding:
        whom, wanted = one.whom, one.wanted
        try:
            found = self._cgroups.read(whom, weighed=bool(wanted.shares), afresh=afresh)
            if found is None:
                return NOT_RUNNING
            if not differences_of(wanted, found):
                return AS_DECIDED
            if not self._cgroups.has_processes(whom):
                return NOT_RUNNING
            asked_for = self._cgroups.requested(whom)
            return judge(wanted, found, asked_for, self._present(machine))
        except HostError as error:
            return Finding(Verdict.UNREADABLE, why=str(error))

    def _present(self, machine: Machine) -> Present:
        cpus = optional_cpus(self._tree, f"{CPU_ROOT}/online")
        mems = optional_nodes(self._tree, f"{NODE_ROOT}/has_memory")
        return Present(cpus or machine.online, mems or machine.memory_nodes)
