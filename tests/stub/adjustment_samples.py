"""One call of each builder method with the message it should lead to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nri_resmgr.stub.adjustment import ContainerAdjustment
from nri_resmgr.stub.model import (
    Device,
    DeviceCgroupRule,
    Hook,
    Hooks,
    IoPriority,
    IoPriorityClass,
    MemoryPolicy,
    MemoryPolicyMode,
    Mount,
    Namespace,
    Rlimit,
    Scheduler,
    SchedulerPolicy,
    Seccomp,
)

Call = Callable[[ContainerAdjustment], ContainerAdjustment]

# 64-bit numbers are text in protobuf's JSON.
RESOURCES: dict[str, tuple[Call, Any]] = {
    "set_cpus": (lambda a: a.set_cpus("0-3"), {"cpu": {"cpus": "0-3"}}),
    "set_mems": (lambda a: a.set_mems("1"), {"cpu": {"mems": "1"}}),
    "set_cpu_shares": (
        lambda a: a.set_cpu_shares(2),
        {"cpu": {"shares": {"value": "2"}}},
    ),
    "set_cpu_quota": (
        lambda a: a.set_cpu_quota(-1),
        {"cpu": {"quota": {"value": "-1"}}},
    ),
    "set_cpu_period": (
        lambda a: a.set_cpu_period(100_000),
        {"cpu": {"period": {"value": "100000"}}},
    ),
    "set_cpu_realtime_runtime": (
        lambda a: a.set_cpu_realtime_runtime(7),
        {"cpu": {"realtime_runtime": {"value": "7"}}},
    ),
    "set_cpu_realtime_period": (
        lambda a: a.set_cpu_realtime_period(8),
        {"cpu": {"realtime_period": {"value": "8"}}},
    ),
    "set_memory_limit": (
        lambda a: a.set_memory_limit(0),
        {"memory": {"limit": {}}},
    ),
    "set_memory_reservation": (
        lambda a: a.set_memory_reservation(1),
        {"memory": {"reservation": {"value": "1"}}},
    ),
    "set_memory_swap": (
        lambda a: a.set_memory_swap(2),
        {"memory": {"swap": {"value": "2"}}},
    ),
    "set_memory_kernel": (
        lambda a: a.set_memory_kernel(3),
        {"memory": {"kernel": {"value": "3"}}},
    ),
    "set_memory_kernel_tcp": (
        lambda a: a.set_memory_kernel_tcp(4),
        {"memory": {"kernel_tcp": {"value": "4"}}},
    ),
    "set_memory_swappiness": (
        lambda a: a.set_memory_swappiness(0),
        {"memory": {"swappiness": {}}},
    ),
    "set_memory_disable_oom_killer": (
        lambda a: a.set_memory_disable_oom_killer(),
        {"memory": {"disable_oom_killer": {"value": True}}},
    ),
    "set_memory_use_hierarchy": (
        lambda a: a.set_memory_use_hierarchy(use=False),
        {"memory": {"use_hierarchy": {}}},
    ),
    "set_hugepage_limit": (
        lambda a: a.set_hugepage_limit("2MB", 5),
        {"hugepage_limits": [{"page_size": "2MB", "limit": "5"}]},
    ),
    "set_blockio_class": (
        lambda a: a.set_blockio_class(""),
        {"blockio_class": {}},
    ),
    "set_rdt_class": (
        lambda a: a.set_rdt_class("gold"),
        {"rdt_class": {"value": "gold"}},
    ),
    "set_unified": (
        lambda a: a.set_unified("memory.high", "1G"),
        {"unified": {"memory.high": "1G"}},
    ),
    "add_device_rule": (
        lambda a: a.add_device_rule(DeviceCgroupRule(allow=True, type="c", major=0)),
        {"devices": [{"allow": True, "type": "c", "major": {}}]},
    ),
    "set_pids_limit": (lambda a: a.set_pids_limit(-1), {"pids": {"limit": "-1"}}),
}

LINUX: dict[str, tuple[Call, Any]] = {
    "set_device": (
        lambda a: a.set_device(Device("/dev/x", "c", 1, 2)),
        {"devices": [{"path": "/dev/x", "type": "c", "major": "1", "minor": "2"}]},
    ),
    "remove_device": (
        lambda a: a.remove_device("/dev/x"),
        {"devices": [{"path": "-/dev/x"}]},
    ),
    "replace_device": (
        lambda a: a.replace_device(Device("/dev/x", "c")),
        {"devices": [{"path": "-/dev/x"}, {"path": "/dev/x", "type": "c"}]},
    ),
    "set_namespace": (
        lambda a: a.set_namespace(Namespace("network", "/run/ns")),
        {"namespaces": [{"type": "network", "path": "/run/ns"}]},
    ),
    "remove_namespace": (
        lambda a: a.remove_namespace("network"),
        {"namespaces": [{"type": "-network"}]},
    ),
    "set_sysctl": (lambda a: a.set_sysctl("k", "v"), {"sysctl": {"k": "v"}}),
    "remove_sysctl": (lambda a: a.remove_sysctl("k"), {"sysctl": {"-k": ""}}),
    "replace_sysctl": (
        lambda a: a.replace_sysctl("k", "v"),
        {"sysctl": {"-k": "", "k": "v"}},
    ),
    "set_net_device": (
        lambda a: a.set_net_device("eth1", "lan"),
        {"net_devices": {"eth1": {"name": "lan"}}},
    ),
    "remove_net_device": (
        lambda a: a.remove_net_device("eth1"),
        {"net_devices": {"-eth1": {}}},
    ),
    "replace_net_device": (
        lambda a: a.replace_net_device("eth1", "lan"),
        {"net_devices": {"-eth1": {}, "eth1": {"name": "lan"}}},
    ),
    "set_cgroups_path": (lambda a: a.set_cgroups_path("/x"), {"cgroups_path": "/x"}),
    "set_oom_score_adj": (lambda a: a.set_oom_score_adj(0), {"oom_score_adj": {}}),
    "set_io_priority": (
        lambda a: a.set_io_priority(IoPriority(IoPriorityClass.RT, 3)),
        {"io_priority": {"class": "IOPRIO_CLASS_RT", "priority": 3}},
    ),
    "set_scheduler": (
        lambda a: a.set_scheduler(Scheduler(SchedulerPolicy.FIFO, priority=1)),
        {"scheduler": {"policy": "SCHED_FIFO", "priority": 1}},
    ),
    "set_seccomp_policy": (
        lambda a: a.set_seccomp_policy(Seccomp("SCMP_ACT_ALLOW")),
        {"seccomp_policy": {"default_action": "SCMP_ACT_ALLOW"}},
    ),
    "set_memory_policy": (
        lambda a: a.set_memory_policy(MemoryPolicy(MemoryPolicyMode.BIND, "0-1")),
        {"memory_policy": {"mode": "MPOL_BIND", "nodes": "0-1"}},
    ),
    "set_rdt_clos_id": (
        lambda a: a.set_rdt_clos_id("gold"),
        {"rdt": {"clos_id": {"value": "gold"}}},
    ),
    "set_rdt_schemata": (
        lambda a: a.set_rdt_schemata(["L3:0=f"]),
        {"rdt": {"schemata": {"value": ["L3:0=f"]}}},
    ),
    "set_rdt_monitoring": (
        lambda a: a.set_rdt_monitoring(enable=False),
        {"rdt": {"enable_monitoring": {}}},
    ),
    "remove_rdt": (lambda a: a.remove_rdt(), {"rdt": {"remove": True}}),
}

OTHERS: dict[str, tuple[Call, Any]] = {
    "set_annotation": (
        lambda a: a.set_annotation("k", "v"),
        {"annotations": {"k": "v"}},
    ),
    "remove_annotation": (
        lambda a: a.remove_annotation("k"),
        {"annotations": {"-k": ""}},
    ),
    "replace_annotation": (
        lambda a: a.replace_annotation("k", "v"),
        {"annotations": {"-k": "", "k": "v"}},
    ),
    "set_env": (lambda a: a.set_env("A", ""), {"env": [{"key": "A"}]}),
    "remove_env": (lambda a: a.remove_env("A"), {"env": [{"key": "-A"}]}),
    "replace_env": (
        lambda a: a.replace_env("A", "1"),
        {"env": [{"key": "-A"}, {"key": "A", "value": "1"}]},
    ),
    "set_mount": (
        lambda a: a.set_mount(Mount("/m", "bind", "/s", ("ro",))),
        {
            "mounts": [
                {"destination": "/m", "type": "bind", "source": "/s", "options": ["ro"]}
            ]
        },
    ),
    "remove_mount": (
        lambda a: a.remove_mount("/m"),
        {"mounts": [{"destination": "-/m"}]},
    ),
    "replace_mount": (
        lambda a: a.replace_mount(Mount("/m", "tmpfs")),
        {"mounts": [{"destination": "-/m"}, {"destination": "/m", "type": "tmpfs"}]},
    ),
    "set_args": (lambda a: a.set_args(["sh", ""]), {"args": ["sh", ""]}),
    "replace_args": (lambda a: a.replace_args(["sh"]), {"args": ["", "sh"]}),
    "add_hooks": (
        lambda a: a.add_hooks(Hooks(prestart=(Hook("/h", timeout=0),))),
        {"hooks": {"prestart": [{"path": "/h", "timeout": {}}]}},
    ),
    "set_rlimit": (
        lambda a: a.set_rlimit(Rlimit("RLIMIT_NOFILE", 2, 1)),
        {"rlimits": [{"type": "RLIMIT_NOFILE", "hard": "2", "soft": "1"}]},
    ),
    "add_cdi_device": (
        lambda a: a.add_cdi_device("v.com/c=0"),
        {"CDI_devices": [{"name": "v.com/c=0"}]},
    ),
}

SAMPLES: dict[str, tuple[Call, Any]] = {
    **OTHERS,
    **{name: (call, {"linux": part}) for name, (call, part) in LINUX.items()},
    **{
        name: (call, {"linux": {"resources": part}})
        for name, (call, part) in RESOURCES.items()
    },
}

# These accumulate, so that a second call is no contradiction.
ACCUMULATING = frozenset({"add_hooks", "add_device_rule"})
