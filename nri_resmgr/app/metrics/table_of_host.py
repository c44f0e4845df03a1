"""Metrics of the host's own settings: CPU classes, interrupts, what was written."""

from __future__ import annotations

from typing import Final

from nri_resmgr.app.metrics.text import Kind, Metric

_C, _G = Kind.COUNTER, Kind.GAUGE

CLASS_CPUS: Final = Metric(
    "nri_resmgr_cpu_class_cpus", _G, "CPUs that are in a CPU class.", ("class",)
)
ISOLATED: Final = Metric(
    "nri_resmgr_isolated_containers",
    _G,
    "Containers with CPUs of their own, by what annotations have isolated of them.",
    ("what",),
)
INEFFECTIVE: Final = Metric(
    "nri_resmgr_isolation_ineffective_containers",
    _G,
    "Containers of these whose CPUs the kernel balances all the same.",
)
INTERRUPTS: Final = Metric(
    "nri_resmgr_interrupts",
    _G,
    "Interrupts that somebody asks for: placed, unplaced for want of CPUs, or refused "
    "by the kernel.",
    ("state",),
)
HOST_FILES: Final = Metric(
    "nri_resmgr_host_files",
    _G,
    "Files of the host that are wanted to be set; those of them that failed, drifted, "
    "or are given up.",
    ("state",),
)
HOST_WRITES: Final = Metric(
    "nri_resmgr_host_writes_total",
    _C,
    "Files of the host that were written, set back, or could not be.",
    ("result",),
)
HOST_DRIFT: Final = Metric(
    "nri_resmgr_host_drift_total",
    _C,
    "Files of the host that somebody else has changed.",
)
HOST_FOLLOWED: Final = Metric(
    "nri_resmgr_host_settings_applied",
    _G,
    "Whether the host follows what the policy wants of its own settings.",
)

METRICS: Final = tuple(one for one in globals().values() if isinstance(one, Metric))
"""All of them, in this order."""
