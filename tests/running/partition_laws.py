"""What must hold on a node with partitions soon after the last event."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Mapping

import attrs

from nri_resmgr.values import NO_CPUS, CpuSet
from tests.running.partition_node import PartitionNode
from tests.running.shared_kernel import SharedKernel


@attrs.frozen(eq=False)
class PartitionLaws:
    """Compares decisions of the plugin with a kernel that has partitions.

    Attributes:
        node: Of the present daemon.
        kernel: Its kernel.
        running: The containers that run; an actor may be about to end some.
    """

    node: PartitionNode
    kernel: SharedKernel
    running: Collection[str]

    def broken(self, foreign: CpuSet, taken: CpuSet) -> dict[str, object]:
        """Return all that is wrong, by what it is about.

        Args:
            foreign: CPUs that another program keeps for itself.
            taken: Those that it has had since partitions were last tried.
        """
        node, exclusive = self.node, self.exclusive()
        found: dict[str, object] = {
            name: (str(node.effective(name)), str(node.decided(name)))
            for name in self.running
            if node.effective(name) != node.decided(name)
        }
        for name, cpus in exclusive.items():
            if shared := self.together(name):
                found[f"together with {name}"] = shared
            if not cpus & taken and not self.has_partition(name):
                found[f"no partition of {name}"] = node.state(name)
        reports = {
            "waiting": sorted(node.delivery.pending()),
            "grants of others": set(node.plugin.state.ledger.entries)
            ^ set(self.running),
            "reported otherwise": [
                name
                for name in exclusive
                if node.partitions.is_valid(name) != self.has_partition(name)
            ],
            "handed down": self._handed_down(foreign).items()
            ^ self.kernel.exclusive().items(),
            "ended meanwhile": self.kernel.lost,
        }
        return found | {about: wrong for about, wrong in reports.items() if wrong}

    def exclusive(self) -> Mapping[str, CpuSet]:
        """Return the exclusive CPUs that were decided for containers that run."""
        plugin = self.node.plugin
        decided = plugin.policy.exclusive_cpus(plugin.state)
        return {name: cpus for name, cpus in decided.items() if name in self.running}

    def has_partition(self, name: str) -> bool:
        """Return whether a container's cgroup is a valid partition."""
        return self.kernel.is_partition(self.node.folder(name))

    def together(self, name: str) -> Mapping[str, str]:
        """Return CPUs of a container that others may run on."""
        return together(self.node, name, self.running)

    def keep(self) -> None:
        """Have the kernel note from now on which partition a write ends."""
        self.kernel.kept.update(
            (self.node.folder(name), cpus)
            for name, cpus in self.exclusive().items()
            if self.has_partition(name)
        )

    def _handed_down(self, foreign: CpuSet) -> Mapping[str, str]:
        """Return what ``cpuset.cpus.exclusive`` of each cgroup should have.

        A partition has its own, and those above have those of all partitions below.
        """
        wanted = {"system.slice": foreign} if foreign else {}
        for name, cpus in self.exclusive().items():
            folder = self.node.folder(name) if self.has_partition(name) else ""
            while folder:
                wanted[folder] = wanted.get(folder, NO_CPUS) | cpus
                folder = posixpath.dirname(folder)
        return {folder: str(cpus) for folder, cpus in wanted.items()}


def together(node: PartitionNode, name: str, running: Iterable[str]) -> dict[str, str]:
    """Return CPUs of a container that others may run on."""
    own = node.effective(name)
    found = {one: node.effective(one) & own for one in running if one != name}
    return {one: str(shared) for one, shared in found.items() if shared}
