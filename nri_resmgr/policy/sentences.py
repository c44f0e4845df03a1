"""What the words of a `Reason` mean, a sentence each, for `explain` and its page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nri_resmgr.policy.cpus import TopologyLevel
from nri_resmgr.policy.decision import Rule

RULE_SENTENCES: Final[Mapping[Rule, str]] = {
    Rule.WHOLE_CPUS: "it is Guaranteed and asks for whole CPUs, so they are its own",
    Rule.ISOLATED_CPU: "its own CPUs are isolated ones (isolcpus=)",
    Rule.MIXED_CPUS: "it has whole CPUs of its own, and shares others besides",
    Rule.OLD_PLACE: "its predecessor, or its pod, had this place before it",
    Rule.KEPT: "it was already running here, and that is still allowed",
    Rule.GROWN_IN_PLACE: "it asked for more, and there was room where it is",
    Rule.SHRUNK_IN_PLACE: "it asked for less, and stayed where it is",
    Rule.MOVED: "there was no room for it where it was",
    Rule.RESERVED_NAMESPACE: "its namespace runs on the reserved CPUs",
    Rule.RESERVED_ASKED: "it asks for reserved CPUs",
    Rule.RESERVED_FULL: "the reserved CPUs are full, so it shares others",
    Rule.NOT_GUARANTEED: "it is not Guaranteed, so it shares CPUs",
    Rule.NOT_WHOLE_CPUS: "it does not ask for whole CPUs, so it shares some",
    Rule.SHARED_ASKED: "it asks for shared CPUs",
    Rule.FELL_BACK: "its request cannot be granted, so it shares CPUs",
    Rule.PRESERVED: "it is left where others put it",
    Rule.SAME_GROUP: "containers of its group are in this balloon",
    Rule.SAME_POD: "containers of its pod are in this balloon",
    Rule.SAME_NAMESPACE: "containers of its namespace are in this balloon",
    Rule.EMPTY_BALLOON: "this balloon was empty",
    Rule.NEW_BALLOON: "it got a new balloon",
    Rule.BALANCED: "of the balloons of its type, this one had most room",
    Rule.INFLATED: "this balloon could grow for it",
    Rule.UNCHANGED: "it asks for what it has",
    Rule.RELEASED: "it is gone, and others may have what it had",
    Rule.POD_PLACED: "a place was found for all containers of the pod together",
    Rule.COLD_START: "for some time after its start it gets no DRAM",
    Rule.COLD_START_ENDED: "its time without DRAM is over",
    Rule.UNKNOWN_CONTAINER: "nobody has told us of it",
}
"""Why a container is where it is."""

DECIDED_SENTENCES: Final[Mapping[str, str]] = {
    "only-one": "no other could have taken it",
    "capacity": "the others had not enough CPU left",
    "isolated-cpus": "it had enough isolated CPUs",
    "affinity": "rules of affinity between containers drew it there",
    "hints": "it is nearest to the devices that it uses",
    "memory-offer": "its memory can be nearer there",
    "memory-kinds": "it has the kinds of memory that it asks for",
    "memory-capacity-for-limit": "its memory limit fits there, too",
    "burstable-limit": "its CPU limit fits there, too",
    "burstable-level": "it is of the level that such containers go to",
    "fewer-nodes": "fewer memory nodes are needed",
    "cpu-priority": "it has more CPUs of the priority that it asks for",
    "depth": "it is the smallest that does",
    "colocation": "containers of its pod or namespace are there",
    "spread": "most CPU was left there",
    "fewer-touched": "fewer other containers had to be told",
    "id": "all were as good, and this is the first of them",
    "crowd": "all CPU is promised, and it asks for none",
}
"""What told the pool from the others."""

TYPE_SENTENCES: Final[Mapping[str, str]] = {
    "annotation": "its annotation names the type of balloon",
    "expression": "an expression of the type fits it",
    "namespace": "a namespace of the type fits it",
    "no other type": "no other type fits it",
}
"""What led to the type of balloon."""

LEVEL_SENTENCES: Final[Mapping[TopologyLevel, str]] = {
    TopologyLevel.MACHINE: "all over the machine",
    TopologyLevel.PACKAGE: "in one socket",
    TopologyLevel.DIE: "on one die",
    TopologyLevel.NODE: "on one NUMA node",
    TopologyLevel.CACHE: "below one last-level cache",
    TopologyLevel.CLUSTER: "in one cluster of cores",
    TopologyLevel.CORE: "in one core",
    TopologyLevel.THREAD: "one hardware thread",
}
"""How near to each other the CPUs of its own are."""
