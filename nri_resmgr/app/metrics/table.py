"""The table of all metrics; the list in docs/insight.md is generated from it."""

from __future__ import annotations

from typing import Final

from nri_resmgr.app.metrics.text import Kind, Metric


def _counter(name: str, what: str, labels: tuple[str, ...] = ()) -> Metric:
    return Metric(name, Kind.COUNTER, what, labels)


def _gauge(name: str, what: str, labels: tuple[str, ...] = ()) -> Metric:
    return Metric(name, Kind.GAUGE, what, labels)


# Requests of the runtime, decisions, updates and drift.
REQUESTS: Final = _counter(
    "nri_resmgr_requests_total",
    "Answered requests of the runtime, by the ttRPC status of the answer.",
    ("method", "status"),
)
REQUEST_SECONDS: Final = Metric(
    "nri_resmgr_request_seconds",
    Kind.HISTOGRAM,
    "Time from the arrival of a request to its answer.",
    ("method",),
)
OPEN_REQUESTS: Final = _gauge(
    "nri_resmgr_open_requests", "Requests without an answer yet."
)
DECISIONS: Final = _counter(
    "nri_resmgr_decisions_total", "Decisions by event.", ("event",)
)
RULES: Final = _counter(
    "nri_resmgr_rules_total", "Applications of placement rules, by rule.", ("rule",)
)
REFUSALS: Final = _counter(
    "nri_resmgr_refusals_total", "Refused requests, by the kind of error.", ("error",)
)
SOURCES: Final = _counter(
    "nri_resmgr_request_sources_total",
    "New containers, by the source of their resource requests.",
    ("source",),
)
UPDATES: Final = _counter(
    "nri_resmgr_updates_total", "Decided updates of running containers."
)
UNSOLICITED: Final = _counter(
    "nri_resmgr_unsolicited_updates_total",
    "Unsolicited updates sent to the runtime, by result: taken or failed.",
    ("result",),
)
PARTITIONS: Final = _gauge(
    "nri_resmgr_partitions",
    "Partitions of the kernel for containers with exclusive CPUs, by state: in-force, "
    "refused or waiting (for the container's start).",
    ("state",),
)
PARTITIONS_REFUSED: Final = _counter(
    "nri_resmgr_partitions_refused_total",
    "Partitions that the kernel refused, or that became invalid.",
)
PENDING_UPDATES: Final = _gauge(
    "nri_resmgr_pending_updates",
    "Containers whose decided values are not in force yet, by cgroup or by runtime.",
)
PENDING_UPDATES_OLDEST: Final = _gauge(
    "nri_resmgr_pending_updates_oldest_seconds",
    "Age of the oldest pending update; 0 if there is none.",
)
CGROUP_WRITES: Final = _counter(
    "nri_resmgr_cgroup_writes_total",
    "Writes of changed values to containers' cgroups, by result: written, rewritten "
    "after another program's write, or failed.",
    ("result",),
)
LATE_STARTS: Final = _counter(
    "nri_resmgr_late_starts_total",
    "Starts of containers that did not wait until others had left their CPUs.",
)
BY_RUNTIME: Final = _gauge(
    "nri_resmgr_containers_by_runtime",
    "Containers that the runtime updates, because their cgroups are not written.",
)
RECORD_UPDATES: Final = _gauge(
    "nri_resmgr_record_updates_pending",
    "Containers with values in force that the runtime's own record lacks.",
)
RECORD_UPDATES_OLDEST: Final = _gauge(
    "nri_resmgr_record_updates_pending_oldest_seconds",
    "Age of the oldest pending record update; 0 if there is none.",
)
DRIFT: Final = _counter(
    "nri_resmgr_drift_total",
    "Values of containers that differ from the decision, by kind.",
    ("kind",),
)

DRIFT_REPAIRS: Final = _counter(
    "nri_resmgr_drift_repairs_total", "Attempts to repair drift."
)
DRIFT_ABANDONED: Final = _counter(
    "nri_resmgr_drift_abandoned_total",
    "Drifted containers that were abandoned after too many repairs.",
)
VERDICTS: Final = _gauge(
    "nri_resmgr_verified_containers",
    "Containers by the verdict of the last verification.",
    ("verdict",),
)
VERIFIED: Final = _gauge(
    "nri_resmgr_verification_timestamp_seconds",
    "Time at which the last verification round ended, seconds since 1970.",
)
VERIFICATION_SECONDS: Final = _gauge(
    "nri_resmgr_verification_seconds", "Duration of the last verification round."
)

# Sessions, configuration, checkpoints.
SESSIONS: Final = _counter(
    "nri_resmgr_sessions_total", "Started sessions with a runtime."
)
SESSIONS_ENDED: Final = _counter(
    "nri_resmgr_sessions_ended_total", "Sessions that ended or could not begin."
)
CONNECTED: Final = _gauge(
    "nri_resmgr_connected", "1 if the plugin is registered and configured, else 0."
)
SYNCHRONIZED: Final = _gauge(
    "nri_resmgr_synchronized",
    "1 if the runtime has listed its containers in this session, else 0.",
)
GENERATION: Final = _gauge(
    "nri_resmgr_configuration_generation", "Configurations accepted so far."
)
CONFIGURED: Final = _gauge(
    "nri_resmgr_configuration_accepted_timestamp_seconds",
    "Time at which the present configuration was accepted, seconds since 1970.",
)
CONFIGURATION_OK: Final = _gauge(
    "nri_resmgr_configuration_last_ok",
    "1 if the last received configuration was accepted, else 0.",
)
CONFIGURATIONS_REJECTED: Final = _counter(
    "nri_resmgr_configurations_rejected_total", "Rejected configurations."
)
CONFIGURATION_LEFT_OUT: Final = _gauge(
    "nri_resmgr_configuration_left_out",
    "Parts of the configuration that do not count, as they do not fit the machine, "
    "without the CPUs of available ones that it has never had.",
)
WOULD_CHANGE: Final = _gauge(
    "nri_resmgr_configuration_would_change_containers",
    "Containers that the cluster's document in mode DryRun would pin otherwise.",
)
CHECKPOINTS: Final = _counter(
    "nri_resmgr_checkpoint_writes_total", "Attempts to write a checkpoint."
)
CHECKPOINT_FAILURES: Final = _counter(
    "nri_resmgr_checkpoint_failures_total", "Failed attempts to write a checkpoint."
)
CHECKPOINT_BYTES: Final = _gauge(
    "nri_resmgr_checkpoint_bytes", "Size of the last checkpoint."
)
CHECKPOINT_SECONDS: Final = _gauge(
    "nri_resmgr_checkpoint_seconds", "Duration of writing the last checkpoint."
)
CLAIMED_CPUS: Final = _gauge(
    "nri_resmgr_claimed_cpus",
    "CPUs that claims of other drivers have, which no container of this daemon gets.",
)
PREPARED_CLAIMS: Final = _gauge(
    "nri_resmgr_prepared_claims",
    "Claims of CPUs that the kubelet has had prepared.",
)
PREPARED_CPUS: Final = _gauge(
    "nri_resmgr_prepared_claim_cpus",
    "CPUs of prepared claims, whether containers have them or not.",
)
CLAIM_CONFLICT: Final = _gauge(
    "nri_resmgr_claim_conflict",
    "1 while the CPUs of a claim cannot be taken, since the configuration needs them.",
)
KUBELET: Final = _gauge(
    "nri_resmgr_kubelet_manager",
    "1 for each manager of the kubelet that writes the same values as this daemon.",
    ("manager", "policy"),
)
KUBELET_SERVICE: Final = _gauge(
    "nri_resmgr_kubelet_service_up",
    "1 while a service of the kubelet answers, 0 while it is not in use.",
    ("service",),
)
SOURCE_CONTAINERS: Final = _gauge(
    "nri_resmgr_request_source_containers",
    "Containers by the present source of their resource requests.",
    ("source",),
)

_POOL: Final = ("pool", "kind")

# Resources of the node, under any policy.
POOL_CAPACITY: Final = _gauge(
    "nri_resmgr_pool_capacity_cores",
    "CPUs of a pool or balloon that can be granted.",
    _POOL,
)
POOL_GRANTED: Final = _gauge(
    "nri_resmgr_pool_granted_cores",
    "Granted CPUs of a pool, including those of its child pools.",
    _POOL,
)
POOL_FREE: Final = _gauge(
    "nri_resmgr_pool_free_cores",
    "Largest CPU request that a further container could be granted.",
    _POOL,
)
POOL_EXCLUSIVE: Final = _gauge(
    "nri_resmgr_pool_exclusive_cpus", "Exclusive CPUs of containers in a pool.", _POOL
)
POOL_BUSY: Final = _counter(
    "nri_resmgr_pool_busy_cpu_seconds_total",
    "Time in which the CPUs of a pool were busy, including those of its child pools: "
    "the rate is the number of busy CPUs.",
    _POOL,
)
POOL_CONTAINERS: Final = _gauge(
    "nri_resmgr_pool_containers",
    "Containers in a pool, without those of its child pools.",
    _POOL,
)
CONTAINERS: Final = _gauge(
    "nri_resmgr_containers",
    "Containers by their CPUs: exclusive, mixed, shared, reserved or unpinned.",
    ("cpus", "qos"),
)
NODE_CAPACITY: Final = _gauge(
    "nri_resmgr_memory_capacity_bytes", "Memory of a NUMA node.", ("node", "kind")
)
NODE_GRANTED: Final = _gauge(
    "nri_resmgr_memory_granted_bytes",
    "Memory granted to containers that may use this node only.",
    ("node", "kind"),
)
CONTAINER: Final = _gauge(
    "nri_resmgr_container_info",
    "1 for each container, with its resources; with --metrics-per-container only.",
    ("namespace", "pod", "container", "qos", "pool", "cpus", "mems"),
)
CONTAINER_REQUEST: Final = _gauge(
    "nri_resmgr_container_request_cores",
    "CPU request of a container; with --metrics-per-container only.",
    ("namespace", "pod", "container"),
)

# The daemon itself.
BUILD: Final = _gauge(
    "nri_resmgr_build_info",
    "1, with versions as labels.",
    ("version", "python", "protobuf"),
)
RUNTIME: Final = _gauge(
    "nri_resmgr_runtime_info",
    "1, with the runtime of the present session as labels.",
    ("name", "version", "nri"),
)
POLICY: Final = _gauge(
    "nri_resmgr_policy_info", "1, with the present policy as label.", ("policy",)
)
LINES_LOST: Final = _counter(
    "nri_resmgr_log_lines_lost_total",
    "Log lines lost, without memory for them or an output that accepts them.",
)
LINES_NOT_SENT: Final = _counter(
    "nri_resmgr_log_lines_not_sent_total",
    "Log lines that a collector of OpenTelemetry was to get and did not.",
)
LINES_WAITING: Final = _gauge(
    "nri_resmgr_log_lines_waiting",
    "Log lines that wait for an output that hangs or is slow.",
)
PART_FAILURES: Final = _counter(
    "nri_resmgr_part_failures_total",
    "Failures of a part of the process; it is started again after each.",
    ("part",),
)
PART_FAILING: Final = _gauge(
    "nri_resmgr_part_failing_seconds",
    "Time since a part of the process failed; 0 while it works.",
    ("part",),
)
PART_NEXT_TRY: Final = _gauge(
    "nri_resmgr_part_next_try_seconds",
    "Time until a failing part of the process is started again; 0 during a try.",
    ("part",),
)
PART_HANGING: Final = _gauge(
    "nri_resmgr_part_hanging_seconds",
    "Time for which a part of the process has waited for a file of the host; 0 below "
    "10 s.",
    ("part",),
)
LOOP_LAG: Final = _gauge(
    "nri_resmgr_loop_lag_seconds", "Delay of the event loop at its last heartbeat."
)
LOOP_LAG_MAX: Final = _gauge(
    "nri_resmgr_loop_lag_max_seconds",
    "Largest delay of the event loop in the last minute.",
)
CPU_SECONDS: Final = _counter(
    "process_cpu_seconds_total", "Processor time of the process."
)
RESIDENT: Final = _gauge(
    "process_resident_memory_bytes", "Memory of the process in RAM."
)
OPEN_FDS: Final = _gauge("process_open_fds", "Open files of the process.")
MAX_FDS: Final = _gauge("process_max_fds", "Limit of open files of the process.")
STARTED: Final = _gauge(
    "process_start_time_seconds", "Start time of the process, seconds since 1970."
)

# Host settings: CPU classes, interrupts, files.
CLASS_CPUS: Final = _gauge(
    "nri_resmgr_cpu_class_cpus", "CPUs in a CPU class.", ("class",)
)
ISOLATED: Final = _gauge(
    "nri_resmgr_isolated_containers",
    "Containers with exclusive CPUs, by what annotations have isolated.",
    ("what",),
)
INEFFECTIVE: Final = _gauge(
    "nri_resmgr_isolation_ineffective_containers",
    "Isolated containers whose CPUs the kernel balances nevertheless.",
)
INTERRUPTS: Final = _gauge(
    "nri_resmgr_interrupts",
    "Interrupts with a requested affinity: placed, unplaced for lack of CPUs, or "
    "refused by the kernel.",
    ("state",),
)
HOST_FILES: Final = _gauge(
    "nri_resmgr_host_files",
    "Files of the host to be set, by state: wanted (all of them), failed, drifted or "
    "abandoned.",
    ("state",),
)
HOST_WRITES: Final = _counter(
    "nri_resmgr_host_writes_total",
    "Writes to files of the host, by result: written, restored or failed.",
    ("result",),
)
HOST_DRIFT: Final = _counter(
    "nri_resmgr_host_drift_total", "Changes of host files by other programs."
)
HOST_APPLIED: Final = _gauge(
    "nri_resmgr_host_settings_applied",
    "1 if all host settings of the policy are applied, else 0.",
)

_GROUP: Final = ("class", "group", "cache_id")
_NP_GROUP: Final = ("cache_id", "rdt_class", "rdt_mon_group")

# RDT, block I/O and memory classes.
CLASS_CONTAINERS: Final = _gauge(
    "nri_resmgr_class_containers",
    "Containers by the RDT, block I/O or memory class that is decided for them.",
    ("kind", "class"),
)
CLASSES_DROPPED: Final = _counter(
    "nri_resmgr_classes_dropped_total",
    "Containers without the class of their pool or QoS class, because it is missing.",
    ("kind",),
)
CLASS_FAILURES: Final = _counter(
    "nri_resmgr_class_failures_total",
    "Failed operations on the host for classes.",
    ("kind",),
)
CLASSES_FAILING: Final = _gauge(
    "nri_resmgr_classes_failing",
    "Operations on the host for classes that fail at present.",
    ("kind",),
)
OCCUPANCY: Final = _gauge(
    "nri_resmgr_rdt_llc_occupancy_bytes",
    "Cache occupancy of an RDT class or of a monitoring group in it.",
    _GROUP,
)
LOCAL: Final = _counter(
    "nri_resmgr_rdt_mbm_local_bytes_total",
    "Bytes between a cache and memory of its own node, by RDT class or group.",
    _GROUP,
)
TOTAL: Final = _counter(
    "nri_resmgr_rdt_mbm_total_bytes_total",
    "Bytes between a cache and all memory, by RDT class or group.",
    _GROUP,
)
NP_OCCUPANCY: Final = _gauge(
    "nri_l3_llc_occupancy", "Cache occupancy in bytes.", _NP_GROUP
)
NP_LOCAL: Final = _counter(
    "nri_l3_mbm_local_bytes", "Bytes to and from local memory.", _NP_GROUP
)
NP_TOTAL: Final = _counter(
    "nri_l3_mbm_total_bytes", "Bytes to and from all memory.", _NP_GROUP
)

# Under the names of nri-plugins, so that its dashboards work.
NP_NODE_CAPACITY: Final = _gauge(
    "nri_policy_mem_node_capacity_bytes",
    "Capacity of the memory node.",
    ("node_id", "node_type"),
)
NP_NODE_USAGE: Final = _gauge(
    "nri_policy_mem_node_usage_bytes",
    "Memory in use on the node, as reported by the kernel.",
    ("node_id", "node_type"),
)
NP_NODE_CONTAINERS: Final = _gauge(
    "nri_policy_mem_node_container_count",
    "Containers that may use memory of the node.",
    ("node_id", "node_type"),
)
NP_CPU_ALLOCATION: Final = _gauge(
    "nri_policy_cpu_allocation",
    "Requested thousandths of the CPU; requests are spread over a container's CPUs.",
    ("cpu_id",),
)
NP_CPU_CONTAINERS: Final = _gauge(
    "nri_policy_cpu_container_count", "Containers that may run on the CPU.", ("cpu_id",)
)
_ZONE: Final = "nri_policy_topologyaware_zone_"
NP_ZONE_CPUS: Final = _gauge(
    f"{_ZONE}cpu_capacity_cores", "CPUs of the pool.", ("zone", "cpus", "mems")
)
NP_ZONE_SHARED: Final = _gauge(
    f"{_ZONE}cpu_shared_capacity_cores", "Shared CPUs of the pool.", ("zone",)
)
NP_ZONE_ASSIGNED: Final = _gauge(
    f"{_ZONE}cpu_shared_assigned_cores", "Granted shared CPUs of the pool.", ("zone",)
)
NP_ZONE_AVAILABLE: Final = _gauge(
    f"{_ZONE}cpu_shared_available_cores", "Free CPUs of the pool.", ("zone",)
)
NP_ZONE_MEMORY: Final = _gauge(
    f"{_ZONE}mem_capacity_bytes", "Memory of the pool.", ("zone", "mems")
)
NP_ZONE_MEMORY_ASSIGNED: Final = _gauge(
    f"{_ZONE}mem_assigned_bytes", "Granted memory of the pool.", ("zone", "mems")
)
NP_ZONE_MEMORY_AVAILABLE: Final = _gauge(
    f"{_ZONE}mem_available_bytes", "Free memory of the pool.", ("zone", "mems")
)
NP_ZONE_CONTAINERS: Final = _gauge(
    f"{_ZONE}container_count", "Containers in the pool.", ("zone",)
)
NP_ZONE_SHARING: Final = _gauge(
    f"{_ZONE}shared_container_count",
    "Containers in the pool without exclusive CPUs.",
    ("zone",),
)
NP_BALLOON: Final = _gauge(
    "nri_policy_balloons_cores",
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
