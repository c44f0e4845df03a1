"""The table of all metrics; the list in docs/insight.md is generated from it."""

from __future__ import annotations

from typing import Final

from nri_resmgr.app.metrics.text import Kind, Metric

_C, _G, _H = Kind.COUNTER, Kind.GAUGE, Kind.HISTOGRAM

# Requests of the runtime, decisions, updates and drift.
REQUESTS: Final = Metric(
    "nri_resmgr_requests_total",
    _C,
    "Answered requests of the runtime, by the ttRPC status of the answer.",
    ("method", "status"),
)
REQUEST_SECONDS: Final = Metric(
    "nri_resmgr_request_seconds",
    _H,
    "Time from the arrival of a request to its answer.",
    ("method",),
)
OPEN_REQUESTS: Final = Metric(
    "nri_resmgr_open_requests", _G, "Requests without an answer yet."
)
DECISIONS: Final = Metric(
    "nri_resmgr_decisions_total", _C, "Decisions by event.", ("event",)
)
RULES: Final = Metric(
    "nri_resmgr_rules_total",
    _C,
    "Applications of placement rules, by rule.",
    ("rule",),
)
REFUSALS: Final = Metric(
    "nri_resmgr_refusals_total",
    _C,
    "Refused requests, by the kind of error.",
    ("error",),
)
SOURCES: Final = Metric(
    "nri_resmgr_request_sources_total",
    _C,
    "New containers, by the source of their resource requests.",
    ("source",),
)
UPDATES: Final = Metric(
    "nri_resmgr_updates_total",
    _C,
    "Updates of running containers in decisions.",
)
UNSOLICITED: Final = Metric(
    "nri_resmgr_unsolicited_updates_total",
    _C,
    "Unsolicited updates sent to the runtime, by result: taken or failed.",
    ("result",),
)
PENDING_UPDATES: Final = Metric(
    "nri_resmgr_pending_updates",
    _G,
    "Containers with an update that the runtime has not taken yet.",
)
PENDING_UPDATES_OLDEST: Final = Metric(
    "nri_resmgr_pending_updates_oldest_seconds",
    _G,
    "Age of the oldest pending update; 0 if there is none.",
)
DRIFT: Final = Metric(
    "nri_resmgr_drift_total",
    _C,
    "Values of containers that differ from the decision, by kind.",
    ("kind",),
)

DRIFT_REPAIRS: Final = Metric(
    "nri_resmgr_drift_repairs_total",
    _C,
    "Updates sent to repair drift.",
)
DRIFT_ABANDONED: Final = Metric(
    "nri_resmgr_drift_abandoned_total",
    _C,
    "Drifted containers that were abandoned after too many updates.",
)
VERDICTS: Final = Metric(
    "nri_resmgr_verified_containers",
    _G,
    "Containers by the verdict of the last verification.",
    ("verdict",),
)
VERIFIED: Final = Metric(
    "nri_resmgr_verification_timestamp_seconds",
    _G,
    "Time at which the last verification round ended, seconds since 1970.",
)
VERIFICATION_SECONDS: Final = Metric(
    "nri_resmgr_verification_seconds",
    _G,
    "Duration of the last verification round.",
)

# Sessions, configuration, checkpoints.
SESSIONS: Final = Metric(
    "nri_resmgr_sessions_total", _C, "Started sessions with a runtime."
)
SESSIONS_LOST: Final = Metric(
    "nri_resmgr_sessions_lost_total", _C, "Sessions that ended or could not start."
)
CONNECTED: Final = Metric(
    "nri_resmgr_connected", _G, "1 if the plugin is registered and configured, else 0."
)
SYNCHRONIZED: Final = Metric(
    "nri_resmgr_synchronized",
    _G,
    "1 if the runtime has listed its containers in this session, else 0.",
)
GENERATION: Final = Metric(
    "nri_resmgr_configuration_generation", _G, "Configurations accepted so far."
)
CONFIGURED: Final = Metric(
    "nri_resmgr_configuration_accepted_timestamp_seconds",
    _G,
    "Time at which the present configuration was accepted, seconds since 1970.",
)
CONFIGURATION_OK: Final = Metric(
    "nri_resmgr_configuration_last_ok",
    _G,
    "1 if the last received configuration was accepted, else 0.",
)
CONFIGURATIONS_REJECTED: Final = Metric(
    "nri_resmgr_configurations_rejected_total",
    _C,
    "Rejected configurations.",
)
CHECKPOINTS: Final = Metric(
    "nri_resmgr_checkpoint_writes_total", _C, "Attempts to write a checkpoint."
)
CHECKPOINT_FAILURES: Final = Metric(
    "nri_resmgr_checkpoint_failures_total",
    _C,
    "Failed attempts to write a checkpoint.",
)
CHECKPOINT_BYTES: Final = Metric(
    "nri_resmgr_checkpoint_bytes", _G, "Size of the last checkpoint."
)
CHECKPOINT_SECONDS: Final = Metric(
    "nri_resmgr_checkpoint_seconds", _G, "Duration of writing the last checkpoint."
)
KUBELET: Final = Metric(
    "nri_resmgr_kubelet_manager",
    _G,
    "1 for each manager of the kubelet that writes the same values as this daemon.",
    ("manager", "policy"),
)

# Resources of the node, under any policy.
POOL_CAPACITY: Final = Metric(
    "nri_resmgr_pool_capacity_cores",
    _G,
    "CPUs of a pool or balloon that can be granted.",
    ("pool", "kind"),
)
POOL_GRANTED: Final = Metric(
    "nri_resmgr_pool_granted_cores",
    _G,
    "Granted CPUs of a pool, including those of its child pools.",
    ("pool", "kind"),
)
POOL_FREE: Final = Metric(
    "nri_resmgr_pool_free_cores",
    _G,
    "Largest CPU request that a further container could be granted.",
    ("pool", "kind"),
)
POOL_EXCLUSIVE: Final = Metric(
    "nri_resmgr_pool_exclusive_cpus",
    _G,
    "Exclusive CPUs of containers in a pool.",
    ("pool", "kind"),
)
POOL_CONTAINERS: Final = Metric(
    "nri_resmgr_pool_containers",
    _G,
    "Containers in a pool, without those of its child pools.",
    ("pool", "kind"),
)
CONTAINERS: Final = Metric(
    "nri_resmgr_containers",
    _G,
    "Containers by their CPUs: exclusive, mixed, shared, reserved or unpinned.",
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
    "Memory granted to containers that may use this node only.",
    ("node", "kind"),
)
CONTAINER: Final = Metric(
    "nri_resmgr_container_info",
    _G,
    "1 for each container, with its resources; with --metrics-per-container only.",
    ("namespace", "pod", "container", "qos", "pool", "cpus", "mems"),
)
CONTAINER_REQUEST: Final = Metric(
    "nri_resmgr_container_request_cores",
    _G,
    "CPU request of a container; with --metrics-per-container only.",
    ("namespace", "pod", "container"),
)

# The daemon itself.
BUILD: Final = Metric(
    "nri_resmgr_build_info",
    _G,
    "1, with versions as labels.",
    ("version", "python", "protobuf"),
)
RUNTIME: Final = Metric(
    "nri_resmgr_runtime_info",
    _G,
    "1, with the runtime of the present session as labels.",
    ("name", "version", "nri"),
)
POLICY: Final = Metric(
    "nri_resmgr_policy_info", _G, "1, with the present policy as label.", ("policy",)
)
LINES_LOST: Final = Metric(
    "nri_resmgr_log_lines_lost_total",
    _C,
    "Log lines lost because the output did not accept them.",
)
LOOP_LAG: Final = Metric(
    "nri_resmgr_loop_lag_seconds",
    _G,
    "Delay of the event loop at its last heartbeat.",
)
LOOP_LAG_MAX: Final = Metric(
    "nri_resmgr_loop_lag_max_seconds",
    _G,
    "Largest delay of the event loop in the last minute.",
)
CPU_SECONDS: Final = Metric(
    "process_cpu_seconds_total", _C, "Processor time of the daemon."
)
RESIDENT: Final = Metric(
    "process_resident_memory_bytes", _G, "Memory of the daemon in RAM."
)
OPEN_FDS: Final = Metric("process_open_fds", _G, "Open files of the daemon.")
MAX_FDS: Final = Metric("process_max_fds", _G, "Limit of open files of the daemon.")
STARTED: Final = Metric(
    "process_start_time_seconds", _G, "Start time of the daemon, seconds since 1970."
)

# Host settings: CPU classes, interrupts, files.
CLASS_CPUS: Final = Metric(
    "nri_resmgr_cpu_class_cpus", _G, "CPUs in a CPU class.", ("class",)
)
ISOLATED: Final = Metric(
    "nri_resmgr_isolated_containers",
    _G,
    "Containers with exclusive CPUs, by what annotations have isolated.",
    ("what",),
)
INEFFECTIVE: Final = Metric(
    "nri_resmgr_isolation_ineffective_containers",
    _G,
    "Isolated containers whose CPUs the kernel balances nevertheless.",
)
INTERRUPTS: Final = Metric(
    "nri_resmgr_interrupts",
    _G,
    "Interrupts with a requested affinity: placed, unplaced for lack of CPUs, or "
    "refused by the kernel.",
    ("state",),
)
HOST_FILES: Final = Metric(
    "nri_resmgr_host_files",
    _G,
    "Files of the host to be set, by state: wanted (all of them), failed, drifted or "
    "abandoned.",
    ("state",),
)
HOST_WRITES: Final = Metric(
    "nri_resmgr_host_writes_total",
    _C,
    "Writes to files of the host, by result: written, restored or failed.",
    ("result",),
)
HOST_DRIFT: Final = Metric(
    "nri_resmgr_host_drift_total",
    _C,
    "Changes of host files by other programs.",
)
HOST_APPLIED: Final = Metric(
    "nri_resmgr_host_settings_applied",
    _G,
    "1 if all host settings of the policy are applied, else 0.",
)

_GROUP: Final = ("class", "group", "cache_id")
_NP_GROUP: Final = ("cache_id", "rdt_class", "rdt_mon_group")

# RDT, block I/O and memory classes.
CLASS_CONTAINERS: Final = Metric(
    "nri_resmgr_class_containers",
    _G,
    "Containers by the RDT, block I/O or memory class that is decided for them.",
    ("kind", "class"),
)
CLASSES_DROPPED: Final = Metric(
    "nri_resmgr_classes_dropped_total",
    _C,
    "Containers without the class of their pool or QoS class, because it is missing.",
    ("kind",),
)
CLASS_FAILURES: Final = Metric(
    "nri_resmgr_class_failures_total",
    _C,
    "Failed operations on the host for classes.",
    ("kind",),
)
CLASSES_FAILING: Final = Metric(
    "nri_resmgr_classes_failing",
    _G,
    "Operations on the host for classes that fail at present.",
    ("kind",),
)
OCCUPANCY: Final = Metric(
    "nri_resmgr_rdt_llc_occupancy_bytes",
    _G,
    "Cache occupancy of an RDT class or of a monitoring group in it.",
    _GROUP,
)
LOCAL: Final = Metric(
    "nri_resmgr_rdt_mbm_local_bytes_total",
    _C,
    "Bytes between a cache and memory of its own node, by RDT class or group.",
    _GROUP,
)
TOTAL: Final = Metric(
    "nri_resmgr_rdt_mbm_total_bytes_total",
    _C,
    "Bytes between a cache and all memory, by RDT class or group.",
    _GROUP,
)
NP_OCCUPANCY: Final = Metric(
    "nri_l3_llc_occupancy", _G, "Cache occupancy in bytes.", _NP_GROUP
)
NP_LOCAL: Final = Metric(
    "nri_l3_mbm_local_bytes", _C, "Bytes to and from local memory.", _NP_GROUP
)
NP_TOTAL: Final = Metric(
    "nri_l3_mbm_total_bytes", _C, "Bytes to and from all memory.", _NP_GROUP
)

# Under the names of nri-plugins, so that its dashboards work.
NP_NODE_CAPACITY: Final = Metric(
    "nri_policy_mem_node_capacity_bytes",
    _G,
    "Capacity of the memory node.",
    ("node_id", "node_type"),
)
NP_NODE_USAGE: Final = Metric(
    "nri_policy_mem_node_usage_bytes",
    _G,
    "Memory in use on the node, as reported by the kernel.",
    ("node_id", "node_type"),
)
NP_NODE_CONTAINERS: Final = Metric(
    "nri_policy_mem_node_container_count",
    _G,
    "Containers that may use memory of the node.",
    ("node_id", "node_type"),
)
NP_CPU_ALLOCATION: Final = Metric(
    "nri_policy_cpu_allocation",
    _G,
    "Requested thousandths of the CPU; requests are spread over a container's CPUs.",
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
    f"{_ZONE}cpu_shared_assigned_cores",
    _G,
    "Granted shared CPUs of the pool.",
    ("zone",),
)
NP_ZONE_AVAILABLE: Final = Metric(
    f"{_ZONE}cpu_shared_available_cores", _G, "Free CPUs of the pool.", ("zone",)
)
NP_ZONE_MEMORY: Final = Metric(
    f"{_ZONE}mem_capacity_bytes", _G, "Memory of the pool.", ("zone", "mems")
)
NP_ZONE_MEMORY_ASSIGNED: Final = Metric(
    f"{_ZONE}mem_assigned_bytes", _G, "Granted memory of the pool.", ("zone", "mems")
)
NP_ZONE_MEMORY_AVAILABLE: Final = Metric(
    f"{_ZONE}mem_available_bytes", _G, "Free memory of the pool.", ("zone", "mems")
)
NP_ZONE_CONTAINERS: Final = Metric(
    f"{_ZONE}container_count", _G, "Containers in the pool.", ("zone",)
)
NP_ZONE_SHARING: Final = Metric(
    f"{_ZONE}shared_container_count",
    _G,
    "Containers in the pool without exclusive CPUs.",
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
