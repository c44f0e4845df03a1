"""One of everything that an adjustment can say."""

from __future__ import annotations

from typing import Final

# In protobuf's text format, with what two plugins would fight about.
KINDS: Final = {
    "an annotation": ('annotations { key: "k" value: "v" }', "Annotations k"),
    "a mount": ('mounts { destination: "/m" source: "/s" }', "Mounts /m"),
    "a variable": ('env { key: "A" value: "1" }', "Env A"),
    "arguments": ('args: "sh" args: "-c"', "Args"),
    "a device": ('linux { devices { path: "/dev/x" } }', "Devices /dev/x"),
    "a namespace": ('linux { namespaces { type: "network" } }', "Namespace network"),
    "a sysctl": ('linux { sysctl { key: "a.b" value: "1" } }', "Sysctl a.b"),
    "a net device": (
        'linux { net_devices { key: "eth1" value { name: "x" } } }',
        "LinuxNetDevices eth1",
    ),
    "an rlimit": ('rlimits { type: "RLIMIT_CORE" hard: 1 }', "Rlimits RLIMIT_CORE"),
    "a CDI device": ('CDI_devices { name: "v/c=d" }', "CdiDevices v/c=d"),
    "an I/O priority": ("linux { io_priority { class: 2 } }", "IoPriority"),
    "a scheduler": ("linux { scheduler { policy: 2 } }", "LinuxSched"),
    "a memory policy": ('linux { memory_policy { nodes: "1" } }', "MemoryPolicy"),
    "a seccomp policy": ("linux { seccomp_policy { } }", "SeccompPolicy"),
    "an OOM score": ("linux { oom_score_adj { } }", "OomScoreAdj"),
    "a cgroup path": ('linux { cgroups_path: "/a" }', "CgroupsPath"),
    "a CLOS": ('linux { rdt { clos_id { value: "g" } } }', "RdtClosID"),
    "a schemata": ('linux { rdt { schemata { value: "L3:0=f" } } }', "RdtSchemata"),
    "RDT monitoring": (
        "linux { rdt { enable_monitoring { value: true } } }",
        "RdtEnableMonitoring",
    ),
    "CPUs": ('linux { resources { cpu { cpus: "1-2" } } }', "CPUSetCPUs"),
    "memory nodes": ('linux { resources { cpu { mems: "0" } } }', "CPUSetMems"),
    "CPU shares": ("linux { resources { cpu { shares { } } } }", "CPUShares"),
    "a CPU quota": ("linux { resources { cpu { quota { value: -1 } } } }", "CPUQuota"),
    "a CPU period": ("linux { resources { cpu { period { } } } }", "CPUPeriod"),
    "a real-time runtime": (
        "linux { resources { cpu { realtime_runtime { } } } }",
        "CPURealtimeRuntime",
    ),
    "a real-time period": (
        "linux { resources { cpu { realtime_period { } } } }",
        "CPURealtimePeriod",
    ),
    "a memory limit": ("linux { resources { memory { limit { } } } }", "MemLimit"),
    "a reservation": (
        "linux { resources { memory { reservation { value: 5 } } } }",
        "MemReservation",
    ),
    "a swap limit": ("linux { resources { memory { swap { } } } }", "MemSwapLimit"),
    "a kernel limit": (
        "linux { resources { memory { kernel { } } } }",
        "MemKernelLimit",
    ),
    "a kernel TCP limit": (
        "linux { resources { memory { kernel_tcp { } } } }",
        "MemTCPLimit",
    ),
    "swappiness": (
        "linux { resources { memory { swappiness { } } } }",
        "MemSwappiness",
    ),
    "the OOM killer": (
        "linux { resources { memory { disable_oom_killer { } } } }",
        "MemDisableOomKiller",
    ),
    "a hierarchy": (
        "linux { resources { memory { use_hierarchy { } } } }",
        "MemUseHierarchy",
    ),
    "hugepages": (
        'linux { resources { hugepage_limits { page_size: "2MB" limit: 1 } } }',
        "HugepageLimits 2MB",
    ),
    "a unified key": (
        'linux { resources { unified { key: "memory.high" value: "5" } } }',
        "CgroupsUnified memory.high",
    ),
    "a block I/O class": (
        "linux { resources { blockio_class { } } }",
        "BlockioClass",
    ),
    "an RDT class": ("linux { resources { rdt_class { } } }", "RdtClass"),
    "a pids limit": ("linux { resources { pids { limit: -1 } } }", "PidsLimit"),
}
