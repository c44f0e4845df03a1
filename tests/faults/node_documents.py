"""Documents of a node under faults: its configuration and the cluster's adjustments."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.daemon.spooled import hand_over_adjustments, hand_over_configuration

_DOCUMENT: Final = """\
# {number}
apiVersion: config.nri/v1alpha1
kind: TopologyAwarePolicy
spec:
  reservedResources: {{cpu: "cpuset:0"}}
  cpuClasses:
  - {{name: fast, minFreq: base, freqGovernor: performance, disabledCstates: [C6]}}
  - {{name: quiet, maxFreq: 1.2GHz}}
  sharedPoolCPUClass: quiet
  defaultExclusiveCPUClass: fast
  rebalance: {{interval: 1s}}
  control:
    rdt:
      enable: true
      adoptGroups: true
      partitions:
        all: {{l3Allocation: 100%, classes: {{gold: {{l3Allocation: 50%}}}}}}
    blockio: {{enable: true, classes: {{slow: [{{Weight: {weight}}}]}}}}
"""
_ADJUSTMENTS: Final = """\
# {number}
- apiVersion: config.nri/v1alpha1
  kind: Adjustment
  metadata: {{name: web}}
  spec:
    scope: [{{containers: [{{key: name, operator: Equals, values: [web]}}]}}]
    resources: {{requests: {{cpu: 500m}}, limits: {{cpu: {limit}m}}}}
"""


class NodeDocuments:
    """Documents that change, and ask for the same placement each time.

    Args:
        folder: Of the node; gets the file and the spool folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._number = 0  # of the configuration
        self._adjusted = 0  # number of the adjustments
        (folder / "spool").mkdir(0o755)
        self.write_configuration()
        self.write_adjustments()

    @property
    def configuration(self) -> str:
        """The present configuration."""
        return _DOCUMENT.format(number=self._number, weight=self._weight)

    @property
    def _weight(self) -> int:
        """Weight of block I/O in the present configuration; another one each time."""
        return 50 + 10 * (self._number % 3)

    @property
    def wanted_weight(self) -> str:
        """The weight of block I/O that containers have by the present configuration.

        A runtime sets it when it creates one, which this one does not; the daemon does
        for those that run when another configuration comes.

        Source:
            systemd, ``BFQ_WEIGHT`` in src/shared/cgroup-setup.h; runc has the same.
        """
        return str(1 + (self._weight - 10) * 9999 // 990)

    def write_configuration(self) -> None:
        """Write another configuration, which means the same."""
        self._number += 1
        new = self._folder / "config.new"
        new.write_text(self.configuration)
        new.rename(self._folder / "config.yaml")

    @property
    def adjustments(self) -> str:
        """The present adjustments of the cluster."""
        return _ADJUSTMENTS.format(number=self._adjusted, limit=self._limit)

    @property
    def _limit(self) -> int:
        """Thousandths of a CPU; not two in turn, of which one may not be written."""
        return 700 + 100 * (self._adjusted % 3)

    @property
    def wanted_quota(self) -> str:
        """The line of ``cpu.max`` that the adjusted container should have."""
        return f"{100 * self._limit} 100000"

    def write_adjustments(self) -> None:
        """Have the cluster adjust a container otherwise, as its agent does."""
        self._adjusted += 1
        folder = self._folder / "spool"
        hand_over_adjustments(folder, self.adjustments)
        # It is read, and does not count beside a file.
        hand_over_configuration(folder, self.configuration, generation=self._adjusted)
