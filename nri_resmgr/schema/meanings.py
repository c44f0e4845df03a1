"""The meanings of options, for schemas and for the tables of ``docs/``.

Paths are below ``spec``: ``[]`` is any item of a list, ``*`` any key. Texts are
Markdown, with links as on the page of ``docs/`` whose table has the option.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_LINK: Final = re.compile(r"\[([^]]*)\]\([^)]*\)")


def meaning_of(kind: str, path: str) -> str:
    """Return the meaning of an option in documents of a kind; empty if unknown."""
    of_kind = OF_KIND.get(kind, {})
    above = f"{path.rpartition('.')[0]}.*"
    return of_kind.get(path) or OF_ALL.get(path) or OF_ALL.get(above, "")


def plain(text: str) -> str:
    """Return Markdown as sentences without links."""
    text = _LINK.sub(r"\1", text)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


OF_ALL: Final[Mapping[str, str]] = {
    "availableResources.cpu": "[CPUs](#cpus) that may be used",
    "reservedResources.cpu": "[CPUs](#cpus) of the pool `reserved`",
    "availableResources": "CPUs that may be used",
    "reservedResources": "CPUs for reserved containers",
    "reserveWholeCores": "reserve the other threads of the reserved CPUs' cores, too",
    "reservedPoolNamespaces": (
        "shell patterns of reserved namespaces; `kube-system` is always one"
    ),
    "pinCPU": "set CPU sets of containers",
    "pinMemory": "set memory nodes of containers",
    "preferIsolatedCPUs": (
        "Guaranteed containers that request one to two CPUs get one that "
        "`isolcpus=` names, where one is free"
    ),
    "preferSharedCPUs": (
        "only containers that request it by annotation get exclusive CPUs"
    ),
    "colocatePods": (
        "containers of a pod attract each other, unless they have affinities of "
        "their own"
    ),
    "colocateNamespaces": "containers of a namespace attract each other, likewise",
    "defaultCPUPriority": "class of the CPUs that containers get exclusively",
    "unlimitedBurstable": (
        "where Burstable containers without a CPU limit are placed; the next "
        "coarser level where the machine does not have this one"
    ),
    "schedulingClasses": (
        "[classes](#scheduling-classes) of Linux scheduling and I/O priority"
    ),
    "namespaceSchedulingClasses": "namespace to class",
    "podQoSSchedulingClasses": (
        "QoS class, in any letter case, to class; an annotation and the "
        "namespace's class take precedence"
    ),
    "schedulingBy": (
        "whether the [runtime or the "
        "host](#scheduling-classes-by-runtime-or-host) sets scheduling classes"
    ),
    "cpuClasses": "[CPU classes](cpu-classes.md): frequency, C-states, turbo",
    "sharedPoolCPUClass": (
        "name of the class of CPUs that are not exclusive to a container"
    ),
    "reservedPoolCPUClass": "name of the class of the reserved CPUs",
    "defaultExclusiveCPUClass": (
        "name of the class of exclusive CPUs of containers without a class by "
        "annotation"
    ),
    "controllableInterrupts": (
        "numbers and shell patterns of [interrupts](interrupts.md) that may be moved"
    ),
    "onFailure": (
        "treatment of a container whose exclusive CPUs are not available: "
        "`refuse` or `shared`"
    ),
    "placePods": (
        "reserve exclusive CPUs for [all containers of a pod](whole-pods.md) "
        "where its requests are known when it starts: `off`, `soft` (one "
        "container after the other if they are not free) or `strict` (refused "
        "then)"
    ),
    "publishResources": "containers can [read their CPUs](resource-file.md) in a file",
    "isolationAnnotations": "apply [CRI-O's isolation annotations](isolation.md)",
    "exclusivity": (
        "what keeps other processes off exclusive CPUs: the cpusets of all other "
        "containers: `cpuset`, or [the "
        "kernel](isolation.md#exclusivity-by-the-kernel): `partition`, without "
        "load balancing: `isolated-partition`"
    ),
    "mode": (
        "whether a document of the cluster is put in force, or "
        "[tried out](#documents-of-the-cluster) only"
    ),
    "allowLoss": (
        "whether the document may [take exclusive "
        "CPUs](#changes-while-the-daemon-runs) from running containers"
    ),
    "control.rdt": "classes of caches and memory bandwidth: [rdt.md](rdt.md#on-a-node)",
    "control.blockio": "classes of block I/O: [blockio.md](blockio.md#on-a-node)",
    "memoryQos": (
        "the part of containers' memory that may be swapped: "
        "[memory-classes.md](memory-classes.md#memory-qos)"
    ),
    "memoryPolicy": (
        "the NUMA nodes on which containers' processes allocate: "
        "[memory-classes.md](memory-classes.md#numa-policies)"
    ),
    "miscLimits": (
        "whether annotations may limit [misc "
        "resources](memory-classes.md#limits-of-misc-resources), SGX's memory "
        "among them"
    ),
    "publish": (
        "what the cluster gets to know of the node: "
        "[extended resources](extended-resources.md), and a file of features"
    ),
    "publish.by": (
        "way of extended resources: served to the kubelet, or written into the status "
        "of the Node by the agent"
    ),
    "publish.exclusiveCPUs": (
        "whether exclusive CPUs, or lists of `StaticPoolsPolicy`, are an extended "
        "resource"
    ),
    "publish.rdtClasses": "RDT classes that are an extended resource",
    "publish.rdtClasses[].name": "name of the class, once",
    "publish.rdtClasses[].containers": "the most containers of the class",
    "publish.nodeFeatures": (
        "whether a file for Node Feature Discovery describes the node"
    ),
    "rebalance": (
        "when running containers move to better places: "
        "[rebalancing.md](rebalancing.md)"
    ),
    "schedulingClasses[].name": "name of the class, once",
    "schedulingClasses[].policy": "scheduling policy; `none` leaves it alone",
    "schedulingClasses[].priority": (
        "real-time priority, 1 to 99; required, and only, with `fifo` and `rr`"
    ),
    "schedulingClasses[].nice": (
        "only with `other`, `batch` and `idle`; without a policy it means "
        "`other`, with a warning"
    ),
    "schedulingClasses[].flags": "with any policy but `none`",
    "schedulingClasses[].runtime": (
        "nanoseconds, 1024 or more, at most `deadline`; required, and only, with "
        "`deadline`"
    ),
    "schedulingClasses[].deadline": (
        "nanoseconds, 1024 or more, at most `period`; required, and only, with "
        "`deadline`"
    ),
    "schedulingClasses[].period": (
        "nanoseconds, 1024 or more, that of `deadline` where it is 0; only with "
        "`deadline`"
    ),
    "schedulingClasses[].ioClass": "class of I/O priority; `none` leaves it alone",
    "schedulingClasses[].ioPriority": "0 is the highest; only with `rt` and `be`",
    "reservedExact": (
        "the reserved balloon has just these CPUs, and never others; excludes "
        "`shareIdleCPUsInSame` of type `reserved`"
    ),
    "reservedPerSocket": (
        "every socket has a reserved balloon, with its part of the reserved CPUs"
    ),
    "memoryBy": "which amount of memory counts",
    "allocatorTopologyBalancing": (
        "new balloons go where most CPUs are free, not where fewest are; types "
        "can override it"
    ),
    "preferSpreadOnPhysicalCores": (
        "take one thread of each core first, in as few NUMA nodes; types can "
        "override it"
    ),
    "preserve.matchExpressions": (
        "containers that match any of these "
        "[expressions](annotations.md#affinity) are left alone"
    ),
    "balloonTypes": "see below",
    "loadClasses": (
        "`name`, `level` (`core` or `l2cache`, required), "
        "`overloadsLevelInBalloon` (`false`): loads that affect CPUs of the same "
        "core or level 2 cache"
    ),
    "idleCPUClass": (
        "name of a CPU class, for CPUs of no balloon and of balloons of types "
        "without one"
    ),
    "turboDomain": "the part of the machine in which classes compete for turbo",
    "balloonTypes[].name": "once; `reserved` and `default` change the built-in types",
    "balloonTypes[].components": (
        "`balloonType`, a name, each: the type is composite and has only the CPUs "
        "of its components"
    ),
    "balloonTypes[].componentCreation": (
        "`balance-balloons`: one component, of the type with the fewest balloons"
    ),
    "balloonTypes[].namespaces": (
        "shell patterns; containers of matching namespaces are of this type"
    ),
    "balloonTypes[].matchExpressions": (
        "[expressions](annotations.md#affinity); containers that match any of "
        "them are of this type"
    ),
    "balloonTypes[].groupBy": (
        "text such as `${pod/labels/app}` or `ns=$pod/namespace`; containers with "
        "the same value go together"
    ),
    "balloonTypes[].cpus": (
        "a list of CPUs, or a list of such lists, one for each balloon: exactly "
        "these balloons, which never change"
    ),
    "balloonTypes[].minCPUs": "minimum size of a balloon",
    "balloonTypes[].maxCPUs": (
        "maximum size; 0 is no limit, a number below 0 forbids any CPU"
    ),
    "balloonTypes[].minBalloons": "minimum number of balloons",
    "balloonTypes[].maxBalloons": "maximum number of balloons; 0 is no limit",
    "balloonTypes[].preferSpreadingPods": "containers of a pod need not go together",
    "balloonTypes[].preferPerNamespaceBalloon": (
        "containers of a namespace go together, others elsewhere"
    ),
    "balloonTypes[].preferNewBalloons": "a new balloon is better than one with room",
    "balloonTypes[].shareIdleCPUsInSame": (
        "also use CPUs of no balloon in the same part of the machine"
    ),
    "balloonTypes[].preferCloseToDevices": (
        "paths below `/sys`, or `podresourceapi:` and a shell pattern of "
        "resources; the first counts most. A warning names each one that the "
        "machine does not have, or whose kubelet reports no devices"
    ),
    "balloonTypes[].preferFarFromDevices": "paths below `/sys`, with the same warning",
    "balloonTypes[].preferIsolCpus": (
        "prefer CPUs that `isolcpus=` names; all other types avoid them. With "
        "`shareIdleCPUsInSame` containers would be on both kinds of CPUs, between "
        "which the kernel moves no process: that is logged as "
        "`configuration.warning`"
    ),
    "balloonTypes[].preferCoreType": "kind of cores, on machines that have two",
    "balloonTypes[].hideHyperthreads": "containers see one thread of each core",
    "balloonTypes[].allocatorTopologyBalancing": (
        "as in the policy's option of this name"
    ),
    "balloonTypes[].preferSpreadOnPhysicalCores": (
        "as in the policy's option of this name"
    ),
    "balloonTypes[].allocatorPriority": (
        "the priority class of CPUs, and the order in which minimum balloons are made"
    ),
    "balloonTypes[].loads": "names of load classes",
    "balloonTypes[].memoryTypes": (
        "kinds of memory, in any letter case; an empty list is DRAM"
    ),
    "balloonTypes[].pinMemory": "as in the policy's option of this name",
    "balloonTypes[].schedulingClass": (
        "name of a scheduling class, for containers without one by annotation"
    ),
    "balloonTypes[].cpuClass": (
        "name of a [CPU class](cpu-classes.md), for the CPUs of its balloons"
    ),
    "balloonTypes[].irqClaim": (
        "patterns of [interrupts](interrupts.md) that the CPUs of its balloons take"
    ),
    "balloonTypes[].irqMode": (
        "for all other interrupts: `sink`, its CPUs take them, or `isolate`, they "
        "do not"
    ),
    "balloonTypes[].rdtClass": (
        "class of [cache and memory bandwidth](rdt.md), for containers without "
        "one by annotation"
    ),
    "balloonTypes[].blockioClass": (
        "class of [block I/O](blockio.md), for containers without one by annotation"
    ),
    "relaxedIsolation": (
        "Guaranteed containers that request several CPUs get isolated ones as "
        "well, where enough are free; the annotation `prefer-isolated-cpus` asks "
        "for it per container"
    ),
    "borrowIsolatedCPUs": (
        "isolated CPUs complete grants for which too few ordinary CPUs are free"
    ),
    "pools": "the pools, in the order in which they take CPUs",
    "control.cpu": "[CPU classes](cpu-classes.md) in the older notation",
    "pools[].name": "unique; `shared` and `reserved` are the built-in pools",
    "pools[].namespaces": (
        "shell patterns of the namespaces whose containers run in it; not for "
        "built-in pools"
    ),
    "pools[].cpuClass": "the CPU class of its CPUs",
    "pools[].allocatorPriority": (
        "the [priority](cpu-allocator.md) of the CPUs that it takes first"
    ),
    "pools[].cpu": "number of CPUs of each instance",
    "pools[].maxPods": (
        "pods that each instance may have; 0 for any number, -1 for none"
    ),
    "pools[].instances": (
        "a number of instances, or `N CPUs` or `N %` of the CPUs for pools, "
        "divided by `cpu`"
    ),
    "pools[].fillOrder": (
        "instance of the next pod: the one with the fewest pods, the one with the "
        "most pods and room for one more, or the first one with room"
    ),
    "pools[].exclusive": "whether each list is for one container; not for `shared`",
    "pools[].cpuLists": "the CPU lists, in the order in which containers get them",
    "pools[].cpuLists[].cpus": (
        "CPUs by number, such as `4-6,12`, each in one list only; containers get "
        "this text in their environment"
    ),
    "pools[].cpuLists[].socket": (
        "the socket that containers ask for; a list of CPUs of several sockets has none"
    ),
    "control.blockio.enable": "containers get classes",
    "control.blockio.classes": (
        "the classes; without this key, classes are names that the runtime's own "
        "configuration has, as with nri-plugins"
    ),
    "control.blockio.usePodQoSAsDefaultClass": (
        "a container without a class gets `Guaranteed`, `Burstable` or `BestEffort`"
    ),
    "control.rdt.enable": "containers get classes, groups are made",
    "control.rdt.partitions": (
        "as in a [file](#the-file); without it no groups are made, and the groups "
        "that the host has are the classes"
    ),
    "control.rdt.options": "as in a [file](#the-file)",
    "control.rdt.usePodQoSAsDefaultClass": (
        "a container without a class gets `Guaranteed`, `Burstable` or "
        "`BestEffort`, if there is such a class"
    ),
    "control.rdt.force": (
        "a class is removed even if unknown processes run in it; they fall back "
        "to the root group"
    ),
    "control.rdt.adoptGroups": (
        "a group of another program with the name of a class is changed, and "
        "restored later; otherwise that is an error"
    ),
    "control.rdt.monitorPods": (
        "a monitoring group for each pod, named by its UID, until the pod is "
        "removed; also without `enable`"
    ),
    "control.rdt.monitoring": (
        "which pods have one: `namespaces`, `labelSelector`; [without "
        "filters](#on-a-node) all"
    ),
    "log": "levels and form of the log: [insight.md](insight.md#by-the-configuration)",
    "log.debug": (
        "sources whose debug output is on: names of nri-plugins or of components "
        "of ours, each with `:on` or `:off`"
    ),
    "log.source": "lines name the component that wrote them",
    "log.klog": "flags of klog, the log of nri-plugins",
    "log.klog.*": "a flag of klog, which has no effect here",
    "log.klog.skip_headers": "lines of text have neither time nor level",
    "instrumentation": (
        "metrics, health and traces: [insight.md](insight.md#by-the-configuration)"
    ),
    "instrumentation.httpEndpoint": (
        "`[ADDRESS]:PORT` of health, and of metrics where these are exported"
    ),
    "instrumentation.prometheusExport": "serve metrics at `httpEndpoint`",
    "instrumentation.metricsExporter": (
        "`prometheus` is `prometheusExport`; `otlp-http` and `otlp-grpc` send them to "
        "a collector"
    ),
    "instrumentation.reportPeriod": (
        "time from one computation of polled metrics, or export to a collector, to "
        "the next, such as `30s`"
    ),
    "instrumentation.metrics": "groups of metrics",
    "instrumentation.metrics.enabled": (
        "shell patterns of the groups that are served; all without this key"
    ),
    "instrumentation.metrics.polled": (
        "shell patterns of the groups that are computed once in a period"
    ),
    "instrumentation.samplingRatePerMillion": "requests in a million that are traced",
    "instrumentation.tracingCollector": (
        "where traces go: `otlp-http` or `otlp-grpc`, alone or with `://HOST:PORT`, or "
        "a URL"
    ),
    "instrumentation.logExporter": "how the log is sent to a collector",
    "instrumentation.logExportPeriod": (
        "time in which lines for a collector are gathered, such as `1s`"
    ),
    "control": "classes of resources",
    "control.cpu.classes": "classes by name",
    "control.cpu.classes.*.minFreq": "least frequency in kHz; 0 sets none",
    "control.cpu.classes.*.maxFreq": "largest frequency in kHz; 0 sets none",
    "control.cpu.classes.*.uncoreMinFreq": (
        "least frequency of the uncore in kHz; 0 sets none"
    ),
    "control.cpu.classes.*.uncoreMaxFreq": (
        "largest frequency of the uncore in kHz; 0 sets none"
    ),
    "control.cpu.classes.*.freqGovernor": "governor of the frequency",
    "control.cpu.classes.*.disabledCstates": (
        "names of idle states; they are disabled and all others enabled. An empty "
        "list enables all"
    ),
    "control.cpu.classes.*.energyPerformancePreference": (
        "0 (performance) to 255 (power)"
    ),
    "control.rdt.monitoring.namespaces": "shell patterns of namespaces",
    "control.rdt.monitoring.labelSelector": (
        "labels that a pod has, all of them with these values"
    ),
    "control.rdt.options.l2": "of caches of level 2",
    "control.rdt.options.l3": "of caches of level 3",
    "control.rdt.options.mb": "of memory bandwidth",
    "control.rdt.options.l2.optional": (
        "allocations are ignored on machines that lack the resource, instead of "
        "an error"
    ),
    "control.rdt.partitions.*": (
        "a partition: its part of the caches and of the memory bandwidth, and its "
        "classes"
    ),
    "control.rdt.partitions.*.l2Allocation": (
        "share of caches of level 2: text such as `60%`, or a mapping of cache ids"
    ),
    "control.rdt.partitions.*.l3Allocation": (
        "share of caches of level 3: text such as `60%`, or a mapping of cache ids"
    ),
    "control.rdt.partitions.*.mbAllocation": (
        "share of the memory bandwidth: a list such as `[50%, 1000MBps]`, or a "
        "mapping of cache ids"
    ),
    "control.rdt.partitions.*.classes": "classes by name, with shares of the partition",
    "control.rdt.partitions.*.classes.*": "a class, with its shares of the partition",
    "control.rdt.partitions.*.classes.*.l2Allocation": (
        "share of the partition's caches of level 2"
    ),
    "control.rdt.partitions.*.classes.*.l3Allocation": (
        "share of the partition's caches of level 3"
    ),
    "control.rdt.partitions.*.classes.*.mbAllocation": (
        "share of the partition's memory bandwidth"
    ),
    "control.rdt.partitions.*.classes.*.kubernetes": "use of the class by annotation",
    "control.rdt.partitions.*.classes.*.kubernetes.denyPodAnnotation": (
        "annotations for all containers of a pod may not name the class"
    ),
    "control.rdt.partitions.*.classes.*.kubernetes.denyContainerAnnotation": (
        "annotations for single containers may not name the class"
    ),
    "control.blockio.classes.*": (
        "a class: sets of parameters, of which later ones override earlier ones"
    ),
    "control.blockio.classes.*[].Devices": (
        "shell patterns of device files; without it a weight is for all devices"
    ),
    "control.blockio.classes.*[].Weight": "weight, 10 to 1000",
    "control.blockio.classes.*[].ThrottleReadBps": "most bytes read in a second",
    "control.blockio.classes.*[].ThrottleWriteBps": "most bytes written in a second",
    "control.blockio.classes.*[].ThrottleReadIOPS": "most reads in a second",
    "control.blockio.classes.*[].ThrottleWriteIOPS": "most writes in a second",
    "memoryQos.classes": "memory classes",
    "memoryQos.classes[].name": "name of the class, once",
    "memoryQos.classes[].swapLimitRatio": (
        "part of the memory limit that may be swapped, 0 to 1"
    ),
    "memoryQos.unifiedAnnotations": (
        "files of cgroup v2, such as `memory.high`, that annotations may set"
    ),
    "memoryPolicy.classes": "memory policies by class",
    "memoryPolicy.classes[].name": "name of the class, once",
    "memoryPolicy.classes[].policy": "a memory policy of Linux",
    "memoryPolicy.classes[].policy.mode": "mode of set_mempolicy(2)",
    "memoryPolicy.classes[].policy.nodes": (
        "NUMA nodes: `0-1,4`, `all`, `allowed-mems`, `cpu-nodes`, `cpu-packages` "
        "or `max-dist:N`"
    ),
    "memoryPolicy.classes[].policy.flags": "flags of the mode",
    "memoryPolicy.injectMpolset": (
        "start commands by `mpolset` where the runtime cannot set policies"
    ),
    "cpuClasses[].name": "name of the class, once",
    "cpuClasses[].minFreq": (
        "least frequency: `2.4GHz`, a number in kHz, or `min`, `base`, `turbo`; a "
        "minimum above the maximum is cut to it"
    ),
    "cpuClasses[].maxFreq": "largest frequency, as `minFreq`",
    "cpuClasses[].uncoreMinFreq": (
        "least frequency of the uncore: `min` and `turbo` are the limits at boot, "
        "`base` is that of the CPUs"
    ),
    "cpuClasses[].uncoreMaxFreq": "largest frequency of the uncore, as `uncoreMinFreq`",
    "cpuClasses[].freqGovernor": "governor of the frequency",
    "cpuClasses[].disabledCstates": (
        "names of idle states; they are disabled and all others enabled. An empty "
        "list enables all"
    ),
    "cpuClasses[].energyPerformancePreference": (
        "a word of the driver, or 0 (performance) to 255 (power)"
    ),
    "cpuClasses[].turboPriority": (
        "priority for [turbo](cpu-classes.md#turbo) among classes of one domain"
    ),
    "cpuClasses[].pctPriority": (
        "[Speed Select](cpu-classes.md#speed-select): priority for turbo frequencies"
    ),
    "cpuClasses[].sstClosID": "Speed Select: number of the class of service",
    "cpuClasses[].pctMinFreq": (
        "Speed Select: least frequency of the class of service; needs `pctPriority`"
    ),
    "cpuClasses[].pctMaxFreq": (
        "Speed Select: largest frequency of the class of service; needs `pctPriority`"
    ),
    "cpuClasses[].publishExtendedResource": (
        "Speed Select: whether CPUs of the class are an "
        "[extended resource](extended-resources.md) of the node"
    ),
    "cpuClasses[].dra": "dynamic resource allocation; no effect yet",
    "cpuClasses[].dra.publish": "report of the class to the cluster; no effect yet",
    "rebalance.interval": (
        "time from one rebalance to the next, 1 s to a day; `0` for only at request"
    ),
    "rebalance.atMost": (
        "the most containers that move at a time: each loses the contents of its caches"
    ),
    "agent": "what the agent [publishes](cluster.md#for-schedulers) of the node",
    "agent.nodeResourceTopology": (
        "publish what the node can grant to schedulers, as `NodeResourceTopology`"
    ),
    "agent.nodeResourceTopologyZones": (
        "zones of NUMA nodes, or those of pools and balloons as well; the default is "
        "`pools` where `showContainersInNrt` is set"
    ),
    "agent.nodeResourceTopologyFingerprint": (
        "publish the fingerprint of the node's pods, which the scheduler's cache needs"
    ),
    "agent.nodeResourceTopologyForce": "take over an object of another manager",
    "agent.podResourceAPI": (
        "whether the kubelet is asked for the devices of containers, where "
        "`--kubelet-dir` has its socket"
    ),
    "dra": "claims of CPUs (dynamic resource allocation)",
    "dra.enabled": "whether claims get CPUs; an effect in TopologyAwarePolicy only",
    "dra.sharedCounters": "no effect yet",
    "balloonTypes[].components[].balloonType": "name of a type",
    "balloonTypes[].showContainersInNrt": "the same, of a type",
    "showContainersInNrt": (
        "[publish](cluster.md#for-schedulers) containers in the zones of balloons"
    ),
    "preserve": "containers that are left alone",
    "loadClasses[].name": "name of the class, once",
    "loadClasses[].level": "what CPUs with such loads must not share",
    "loadClasses[].overloadsLevelInBalloon": (
        "whether that is so for CPUs of one balloon as well"
    ),
    "preserve.matchExpressions[].key": (
        "what the expression looks at, such as `name` or `pod/labels/app`"
    ),
    "preserve.matchExpressions[].operator": (
        "`Equals`, `In`, `Exists`, `Matches` and others: "
        "[annotations.md](annotations.md#affinity)"
    ),
    "preserve.matchExpressions[].values": "what it compares with",
    "balloonTypes[].matchExpressions[].key": (
        "what the expression looks at, such as `name` or `pod/labels/app`"
    ),
    "balloonTypes[].matchExpressions[].operator": (
        "`Equals`, `In`, `Exists`, `Matches` and others: "
        "[annotations.md](annotations.md#affinity)"
    ),
    "balloonTypes[].matchExpressions[].values": "what it compares with",
    "control.rdt.options.l3.optional": (
        "allocations are ignored on machines that lack the resource, instead of "
        "an error"
    ),
    "control.rdt.options.mb.optional": (
        "allocations are ignored on machines that lack the resource, instead of "
        "an error"
    ),
}
"""By path; what a kind says differently is in `OF_KIND`."""

_OF_SHARED_POOLS: Final = {
    "availableResources.cpu": "[CPUs](#cpus) that may be used; isolated ones are not",
    "reservedPoolNamespaces": (
        "shell patterns of reserved namespaces: their containers run in the "
        "pool `reserved`; `kube-system` is always one"
    ),
    "pinMemory": "set memory nodes of containers: those near the CPUs of their pool",
    "allowLoss": "without effect here: no pool is of one container",
}

OF_KIND: Final[Mapping[str, Mapping[str, str]]] = {
    "BalloonsPolicy": {
        "reservedResources.cpu": (
            "[CPUs](#cpus) for containers of reserved namespaces; an amount is "
            "only a number of CPUs"
        ),
        "pinCPU": "set CPU sets and CPU shares of containers",
        "pinMemory": "set memory nodes of containers; types can override it",
        "cpuClasses": (
            "[CPU classes](cpu-classes.md); those of `control.cpu.classes` are added"
        ),
        "onFailure": (
            "treatment of a container that fits nowhere: `refuse`, or `shared` "
            "(it runs in the default balloon)"
        ),
        "placePods": (
            "reserve room in one balloon for [all containers of a "
            "pod](whole-pods.md) where its requests are known when it starts: "
            "`off`, `soft` (one container after the other if there is no room) or "
            "`strict` (refused then)"
        ),
        "publishResources": (
            "[publish](resource-file.md) to each container which CPUs and memory "
            "nodes it has, in `/.nri-resource-policy`"
        ),
    },
    "DynamicPoolsPolicy": {
        **_OF_SHARED_POOLS,
        "cpuClasses": "[CPU classes](cpu-classes.md), which pools name",
        "rebalance": "when pools are [resized](rebalancing.md) by use",
        "control.cpu": (
            "the same in the older notation: `classes` by name, frequencies in kHz"
        ),
    },
    "PodpoolsPolicy": {
        **_OF_SHARED_POOLS,
        "pools": "the pools, in the order in which they get their CPUs",
        "pools[].name": "unique; `default` and `reserved` are the built-in pools",
    },
    "StaticPlusPolicy": {
        "reservedResources.cpu": (
            "[CPUs](#cpus) of system containers, and of the overflow of the shared ones"
        ),
        "reservedPoolNamespaces": (
            "shell patterns of reserved namespaces: their containers run on the "
            "reserved CPUs; `kube-system` is always one"
        ),
        "preferIsolatedCPUs": (
            "exclusive CPUs are those that `isolcpus=` names, where enough are free"
        ),
    },
    "StaticPolicy": {
        "reservedResources.cpu": (
            "[CPUs](#cpus) that no container gets exclusively; they are shared, too"
        ),
        "reservedPoolNamespaces": (
            "shell patterns of reserved namespaces: their containers run on the "
            "reserved CPUs; `kube-system` is always one"
        ),
        "preferIsolatedCPUs": (
            "Guaranteed containers that request one CPU get one that `isolcpus=` "
            "names, where one is free"
        ),
    },
    "StaticPoolsPolicy": {
        "pinMemory": "set memory nodes of containers: those near their CPUs",
        "allowLoss": (
            "whether the document may [take exclusive "
            "CPUs](#changes-while-the-daemon-runs) from running containers, or "
            "change lists that these know"
        ),
        "pools": "the pools; without any, all containers share all CPUs",
        "pools[].name": "unique; `shared` is the pool of containers that name none",
    },
    "TopologyAwarePolicy": {
        "reservedResources.cpu": (
            "[CPUs](#cpus) for containers of reserved namespaces only"
        ),
        "pinCPU": "set CPU sets and CPU shares of containers",
        "pinMemory": "set memory nodes of containers; memory is accounted in any case",
        "onFailure": (
            "treatment of a container that fits nowhere: `refuse`, or run it on "
            "shared CPUs: `shared`. Strict annotations always refuse"
        ),
        "placePods": (
            "place [pods as a unit](whole-pods.md) where all requests are known "
            "when they start: `off`, `soft` (one container after the other if it "
            "does not fit) or `strict` (refused if it does not)"
        ),
        "publishResources": (
            "[publish](resource-file.md) to each container which CPUs and memory "
            "nodes it has"
        ),
    },
}
"""By kind and path."""
