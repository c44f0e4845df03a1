"""Metrics under their names in nri-plugins, so that its dashboards show this node."""

from __future__ import annotations

from typing import Final

from nri_resmgr.app.metrics.text import Kind, Metric

_G = Kind.GAUGE

NP_NODE_CAPACITY: Final = Metric(
    "nri_policy_mem_node_capacity_bytes",
    _G,
    "Capacity of the memory node.",
    ("node_id", "node_type"),
)
NP_NODE_USAGE: Final = Metric(
    "nri_policy_mem_node_usage_bytes",
    _G,
    "Memory in use on the node, as the kernel tells.",
    ("node_id", "node_type"),
)
NP_NODE_CONTAINERS: Final = Metric(
    "nri_policy_mem_node_container_count",
    _G,
    "Containers that may have memory on the node.",
    ("node_id", "node_type"),
)
NP_CPU_ALLOCATION: Final = Metric(
    "nri_policy_cpu_allocation",
    _G,
    "Thousandths of the CPU asked for, each request spread over a container's CPUs.",
    ("cpu_id",),
)
NP_CPU_CONTAINERS: Final = Metric(
    "nri_policy_cpu_container_count",
    _G,
    "Containers that may run on the CPU.",
    ("cpu_id",),
)
_ZONE: Final = "nri_policy_topologyaware_zone_"
NP_ZONE_CPUS: Final = Metric(
    f"{_ZONE}cpu_capacity_cores", _G, "CPUs of the pool.", ("zone", "cpus", "mems")
)
NP_ZONE_SHARED: Final = Metric(
    f"{_ZONE}cpu_shared_capacity_cores", _G, "Shared CPUs of the pool.", ("zone",)
)
NP_ZONE_ASSIGNED: Final = Metric(
    f"{_ZONE}cpu_shared_assigned_cores", _G, "Shared CPUs that are granted.", ("zone",)
)
NP_ZONE_AVAILABLE: Final = Metric(
    f"{_ZONE}cpu_shared_available_cores", _G, "CPUs that could be granted.", ("zone",)
)
NP_ZONE_MEMORY: Final = Metric(
    f"{_ZONE}mem_capacity_bytes", _G, "Memory of the pool.", ("zone", "mems")
)
NP_ZONE_MEMORY_ASSIGNED: Final = Metric(
    f"{_ZONE}mem_assigned_bytes", _G, "Memory that is granted.", ("zone", "mems")
)
NP_ZONE_MEMORY_AVAILABLE: Final = Metric(
    f"{_ZONE}mem_available_bytes", _G, "Memory that is not.", ("zone", "mems")
)
NP_ZONE_CONTAINERS: Final = Metric(
    f"{_ZONE}container_count", _G, "Containers in the pool.", ("zone",)
)
NP_ZONE_SHARING: Final = Metric(
    f"{_ZONE}shared_container_count",
    _G,
    "Containers in the pool that have no CPU to themselves.",
    ("zone",),
)
NP_BALLOON: Final = Metric(
    "nri_policy_balloons_cores",
    _G,
    "CPUs of the balloon; containers are named with --metrics-per-container only.",
    (
        *("balloon_type", "cpu_class", "cpus_min", "cpus_max", "balloon", "groups"),
        *("cpus", "cpus_count", "numas", "numas_count", "dies", "dies_count"),
        *("packages", "packages_count", "sharedidlecpus", "sharedidlecpus_count"),
        *("cpus_allowed", "cpus_allowed_count", "mems", "containers"),
        "tot_req_millicpu",
    ),
)

METRICS: Final = tuple(one for one in globals().values() if isinstance(one, Metric))
"""All of them, in this order."""
