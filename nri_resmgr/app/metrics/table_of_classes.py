"""Metrics of RDT and block I/O classes."""

from __future__ import annotations

from typing import Final

from nri_resmgr.app.metrics.text import Kind, Metric

_C, _G = Kind.COUNTER, Kind.GAUGE
_GROUP: Final = ("class", "group", "cache_id")
_NP_GROUP: Final = ("cache_id", "rdt_class", "rdt_mon_group")

CLASS_CONTAINERS: Final = Metric(
    "nri_resmgr_class_containers",
    _G,
    "Containers by the RDT, block I/O or memory class that they are to have.",
    ("kind", "class"),
)
CLASSES_DROPPED: Final = Metric(
    "nri_resmgr_classes_dropped_total",
    _C,
    "Containers that went without the class of their place or QoS class.",
    ("kind",),
)
CLASS_FAILURES: Final = Metric(
    "nri_resmgr_class_failures_total",
    _C,
    "What could not be done on the host for classes.",
    ("kind",),
)
CLASSES_FAILING: Final = Metric(
    "nri_resmgr_classes_failing",
    _G,
    "What of classes cannot be done on the host now.",
    ("kind",),
)
OCCUPANCY: Final = Metric(
    "nri_resmgr_rdt_llc_occupancy_bytes",
    _G,
    "What an RDT class, or a monitoring group in it, has in a cache.",
    _GROUP,
)
LOCAL: Final = Metric(
    "nri_resmgr_rdt_mbm_local_bytes_total",
    _C,
    "What it moved between a cache and memory of its own node.",
    _GROUP,
)
TOTAL: Final = Metric(
    "nri_resmgr_rdt_mbm_total_bytes_total",
    _C,
    "What it moved between a cache and all memory.",
    _GROUP,
)
NP_OCCUPANCY: Final = Metric(
    "nri_l3_llc_occupancy", _G, "Bytes in the cache.", _NP_GROUP
)
NP_LOCAL: Final = Metric(
    "nri_l3_mbm_local_bytes", _C, "Bytes to and from local memory.", _NP_GROUP
)
NP_TOTAL: Final = Metric(
    "nri_l3_mbm_total_bytes", _C, "Bytes to and from all memory.", _NP_GROUP
)

METRICS: Final = tuple(one for one in globals().values() if isinstance(one, Metric))
"""All of them, in this order."""
