"""Every metric that there is, and what it says; docs/insight.md shows the same."""

from __future__ import annotations

from typing import Final

from nri_resmgr.app.metrics import table_of_classes as metric_table_of_classes
from nri_resmgr.app.metrics import table_of_host as metric_table_of_host
from nri_resmgr.app.metrics import table_of_nri_plugins as metric_table_of_nri_plugins
from nri_resmgr.app.metrics.text import Kind, Metric

_C, _G, _H = Kind.COUNTER, Kind.GAUGE, Kind.HISTOGRAM

# What the runtime asked, and what became of it.
REQUESTS: Final = Metric(
    "nri_resmgr_requests_total",
    _C,
    "Requests of the runtime that were answered, by the ttRPC status of the answer.",
    ("method", "status"),
)
REQUEST_SECONDS: Final = Metric(
    "nri_resmgr_request_seconds",
    _H,
    "From the arrival of a request to its answer.",
    ("method",),
)
OPEN_REQUESTS: Final = Metric(
    "nri_resmgr_open_requests", _G, "Requests that are not answered yet."
)
DECISIONS: Final = Metric(
    "nri_resmgr_decisions_total", _C, "Decisions by what they are about.", ("event",)
)
RULES: Final = Metric(
    "nri_resmgr_rules_total",
    _C,
    "Rules that decided where a container is.",
    ("rule",),
)
REFUSALS: Final = Metric(
    "nri_resmgr_refusals_total",
    _C,
    "Requests that were refused, by the kind of the reason.",
    ("error",),
)
SOURCES: Final = Metric(
    "nri_resmgr_request_sources_total",
    _C,
    "New containers by where the amounts of their requests came from.",
    ("source",),
)
UPDATES: Final = Metric(
    "nri_resmgr_updates_total",
    _C,
    "Updates of running containers that decisions brought about.",
)
UNSOLICITED: Final = Metric(
    "nri_resmgr_unsolicited_updates_total",
    _C,
    "Updates sent to the runtime on their own: taken, or failed.",
    ("result",),
)
PENDING_UPDATES: Final = Metric(
    "nri_resmgr_pending_updates",
    _G,
    "Containers with an update that the runtime has yet to take.",
)
PENDING_UPDATES_OLDEST: Final = Metric(
    "nri_resmgr_pending_updates_oldest_seconds",
    _G,
    "Age of the oldest pending update; 0 if there is none.",
)
DRIFT: Final = Metric(
    "nri_resmgr_drift_total",
    _C,
    "Containers found with something else than was decided.",
    ("kind",),
)

DRIFT_REPAIRS: Final = Metric(
    "nri_resmgr_drift_repairs_total",
    _C,
    "Updates of containers that had something else than was decided.",
)
DRIFT_ABANDONED: Final = Metric(
    "nri_resmgr_drift_abandoned_total",
    _C,
    "Containers that were left with something else, after too many updates.",
)
VERDICTS: Final = Metric(
    "nri_resmgr_verified_containers",
    _G,
    "Containers by what the last look at their cgroups showed.",
    ("verdict",),
)
VERIFIED: Final = Metric(
    "nri_resmgr_verification_timestamp_seconds",
    _G,
    "When the last look at all cgroups ended.",
)
VERIFICATION_SECONDS: Final = Metric(
    "nri_resmgr_verification_seconds",
    _G,
    "How long it took to read them.",
)

# Sessions, configuration, state.
SESSIONS: Final = Metric(
    "nri_resmgr_sessions_total", _C, "Sessions with a runtime that began."
)
SESSIONS_LOST: Final = Metric(
    "nri_resmgr_sessions_lost_total", _C, "Sessions that ended or could not begin."
)
CONNECTED: Final = Metric(
    "nri_resmgr_connected", _G, "Whether a runtime has registered and configured us."
)
SYNCHRONIZED: Final = Metric(
    "nri_resmgr_synchronized", _G, "Whether the runtime has told what runs."
)
GENERATION: Final = Metric(
    "nri_resmgr_configuration_generation", _G, "Configurations accepted so far."
)
CONFIGURED: Final = Metric(
    "nri_resmgr_configuration_accepted_timestamp_seconds",
    _G,
    "When the configuration in force was accepted.",
)
CONFIGURATION_OK: Final = Metric(
    "nri_resmgr_configuration_last_ok",
    _G,
    "Whether the last configuration that came was accepted.",
)
CONFIGURATIONS_REJECTED: Final = Metric(
    "nri_resmgr_configurations_rejected_total",
    _C,
    "Configurations that were not accepted.",
)
CHECKPOINTS: Final = Metric(
    "nri_resmgr_checkpoint_writes_total", _C, "Checkpoints that were to be written."
)
CHECKPOINT_FAILURES: Final = Metric(
    "nri_resmgr_checkpoint_failures_total",
    _C,
    "Checkpoints of these that could not be written.",
)
CHECKPOINT_BYTES: Final = Metric(
    "nri_resmgr_checkpoint_bytes", _G, "Size of the last checkpoint."
)
CHECKPOINT_SECONDS: Final = Metric(
    "nri_resmgr_checkpoint_seconds", _G, "How long the last checkpoint took to write."
)
KUBELET: Final = Metric(
    "nri_resmgr_kubelet_manager",
    _G,
    "1 for each manager of the kubelet that writes what this daemon writes.",
    ("manager", "policy"),
)

# What the node has, whatever the policy.
POOL_CAPACITY: Final = Metric(
    "nri_resmgr_pool_capacity_cores",
    _G,
    "CPUs of a pool or balloon that can be granted.",
    ("pool", "kind"),
)
POOL_GRANTED: Final = Metric(
    "nri_resmgr_pool_granted_cores",
    _G,
    "CPUs that are granted, in the pool and in its parts.",
    ("pool", "kind"),
)
POOL_FREE: Final = Metric(
    "nri_resmgr_pool_free_cores",
    _G,
    "CPUs that one more container could be granted at most.",
    ("pool", "kind"),
)
POOL_EXCLUSIVE: Final = Metric(
    "nri_resmgr_pool_exclusive_cpus",
    _G,
    "CPUs that containers have to themselves.",
    ("pool", "kind"),
)
POOL_CONTAINERS: Final = Metric(
    "nri_resmgr_pool_containers",
    _G,
    "Containers in a pool, those of its parts left out.",
    ("pool", "kind"),
)
CONTAINERS: Final = Metric(
    "nri_resmgr_containers",
    _G,
    "Containers by what they run on: exclusive, mixed, shared, reserved or unpinned.",
    ("cpus", "qos"),
)
NODE_CAPACITY: Final = Metric(
    "nri_resmgr_memory_capacity_bytes",
    _G,
    "Memory of a NUMA node.",
    ("node", "kind"),
)
NODE_GRANTED: Final = Metric(
    "nri_resmgr_memory_granted_bytes",
    _G,
    "Memory promised to containers that may be on this node only.",
    ("node", "kind"),
)
CONTAINER: Final = Metric(
    "nri_resmgr_container_info",
    _G,
    "1 for each container, with what it has; with --metrics-per-container only.",
    ("namespace", "pod", "container", "qos", "pool", "cpus", "mems"),
)
CONTAINER_REQUEST: Final = Metric(
    "nri_resmgr_container_request_cores",
    _G,
    "What a container asks for; with --metrics-per-container only.",
    ("namespace", "pod", "container"),
)

# The daemon itself.
BUILD: Final = Metric(
    "nri_resmgr_build_info", _G, "1, with versions.", ("version", "python", "protobuf")
)
RUNTIME: Final = Metric(
    "nri_resmgr_runtime_info",
    _G,
    "1, with the runtime of the present session.",
    ("name", "version", "nri"),
)
POLICY: Final = Metric(
    "nri_resmgr_policy_info", _G, "1, with the policy in force.", ("policy",)
)
LINES_LOST: Final = Metric(
    "nri_resmgr_log_lines_lost_total", _C, "Log lines that nobody took."
)
LOOP_LAG: Final = Metric(
    "nri_resmgr_loop_lag_seconds",
    _G,
    "How late the event loop was at its last heartbeat.",
)
LOOP_LAG_MAX: Final = Metric(
    "nri_resmgr_loop_lag_max_seconds",
    _G,
    "How late the event loop was at most in the last minute.",
)
CPU_SECONDS: Final = Metric(
    "process_cpu_seconds_total", _C, "Processor time of the daemon."
)
RESIDENT: Final = Metric(
    "process_resident_memory_bytes", _G, "Memory of the daemon in RAM."
)
OPEN_FDS: Final = Metric("process_open_fds", _G, "Files that the daemon has open.")
MAX_FDS: Final = Metric("process_max_fds", _G, "Files that it may have open.")
STARTED: Final = Metric(
    "process_start_time_seconds", _G, "When the daemon started, since 1970."
)

METRICS: Final = (
    *(one for one in globals().values() if isinstance(one, Metric)),
    *metric_table_of_host.METRICS,
    *metric_table_of_classes.METRICS,
    *metric_table_of_nri_plugins.METRICS,
)
"""All of them, in this order."""
