"""Pods of a node under faults, each with one container."""

from __future__ import annotations

from typing import Final

import msgspec

from nri_resmgr.app.plugin.translate import KUBELET_NAME
from nri_resmgr.cli.workload import Workload
from nri_resmgr.stub import Container, Pod
from nri_resmgr.values import QosClass

_CLASSES: Final = {
    "rdtclass.resource-policy.nri.io/pod": "gold",
    "blockioclass.resource-policy.nri.io/pod": "slow",
    "toptierlimit.resource-policy.nri.io/pod": "4Mi",
}
# They keep the containers that share CPUs where they are. Otherwise a rebalance would
# move them when the visitor comes, or not, so that pins would depend on its time.
_RULE: Final = """\
{container}:
- scope: {{key: name, operator: AlwaysTrue}}
  match: {{key: name, operator: Equals, values: [db]}}
"""
_AFFINITIES: Final = {
    "batch": {"resource-policy.nri.io/affinity": _RULE.format(container="batch")},
    "web": {"resource-policy.nri.io/anti-affinity": _RULE.format(container="web")},
}
LIMIT: Final = str(4 << 20)  # bytes of fast memory, as the annotation says
ADJUSTED: Final = "web"

# One for each sort of CPUs, and the one that comes and goes.
RESIDENTS: Final = (
    Workload("db", QosClass.GUARANTEED, 1000),
    Workload("web", QosClass.BURSTABLE, 500),
    Workload("batch", QosClass.BEST_EFFORT),
)
BESIDE_PROBE: Final = RESIDENTS[-1]  # loses CPUs to the probe, by the cgroup
VISITOR: Final = Workload("visitor", QosClass.GUARANTEED, 1000)
PROBE: Final = Workload("probe", QosClass.GUARANTEED, 2000)

_SLICES: Final = {
    QosClass.GUARANTEED: "kubepods.slice",
    QosClass.BURSTABLE: "kubepods-burstable.slice",
    QosClass.BEST_EFFORT: "kubepods-besteffort.slice",
}


def pod_of(workload: Workload) -> Pod:
    """Return the pod of a workload, with its classes and affinities."""
    name = workload.name
    annotations = _CLASSES | _AFFINITIES.get(name, {})
    return msgspec.structs.replace(workload.pod, id=name, annotations=annotations)


def container_of(workload: Workload) -> Container:
    """Return the container of a workload, with the path of its cgroup."""
    name, linux = workload.name, workload.container.linux
    assert linux
    linux = msgspec.structs.replace(linux, cgroups_path=cgroups_path(workload))
    return msgspec.structs.replace(
        workload.container, id=name, labels={KUBELET_NAME: name}, linux=linux
    )


def cgroups_path(workload: Workload) -> str:
    """Return the path of a container's cgroup, as in its OCI spec."""
    # As with the driver systemd: the daemon sets the values of units, too.
    return f"{_SLICES[workload.qos]}:cri:{workload.name}"
