"""English sentences for the values of a `Reason`, for `explain` and its page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nri_resmgr.policy.rules import Rule

RULE_SENTENCES: Final[Mapping[Rule, str]] = {
    Rule.WHOLE_CPUS: "it is Guaranteed and asks for whole CPUs, so they are exclusive",
    Rule.ISOLATED_CPU: "its exclusive CPUs are isolated ones (isolcpus=)",
    Rule.MIXED_CPUS: "some CPUs are exclusive to it, and it shares others for the rest",
    Rule.CLAIMED: "it has a prepared claim, whose CPUs are exclusive",
    Rule.OLD_PLACE: "this place was that of its predecessor, or reserved for its pod",
    Rule.KEPT: "it had this place already, and may keep it",
    Rule.GROWN_IN_PLACE: "it asked for more, and its pool could grant that",
    Rule.SHRUNK_IN_PLACE: "it asked for less, and stayed in its pool",
    Rule.MOVED: "its former pool could not grant its request",
    Rule.REBALANCED: "this is a better place than its former one",
    Rule.HINTED: "the kubelet has reported its devices since, and it is nearer to them",
    Rule.RESERVED_NAMESPACE: "its namespace runs on the reserved CPUs",
    Rule.RESERVED_ASKED: "it asks for reserved CPUs",
    Rule.RESERVED_FULL: "the reserved CPUs are full, so it shares others",
    Rule.NOT_GUARANTEED: "it is not Guaranteed, so it shares CPUs",
    Rule.NOT_WHOLE_CPUS: "it does not ask for whole CPUs, so it shares some",
    Rule.SHARED_ASKED: "it asks for shared CPUs",
    Rule.FELL_BACK: "its request cannot be granted, so it shares CPUs",
    Rule.NOW_FITS: "its request could not be granted before, and now there is room",
    Rule.PRESERVED: "its annotations leave its CPUs and memory as they are",
    Rule.NOT_PINNED: "the policy pins no container",
    Rule.POOL_ASKED: "it names this pool, which has room",
    Rule.NO_POOL_ASKED: "it asks for no other pool",
    Rule.POOL_NAMESPACE: "its namespace runs in this pool",
    Rule.NO_REQUEST: "it asks for no CPU, so it runs in the shared pool",
    Rule.RESIZED: "CPUs moved between pools, by how busy these were",
    Rule.SAME_GROUP: "containers of its group are in this balloon",
    Rule.SAME_POD: "containers of its pod are in this pool or balloon",
    Rule.SAME_NAMESPACE: "containers of its namespace are in this balloon",
    Rule.EMPTY_BALLOON: "this balloon was empty",
    Rule.NEW_BALLOON: "a new balloon is made for it",
    Rule.BALANCED: "of the balloons of its type, this one had the most free CPU",
    Rule.INFLATED: "this balloon could grow for it",
    Rule.UNCHANGED: "it asks for the amounts that it has",
    Rule.RELEASED: "it is gone, and its resources are free",
    Rule.POD_PLACED: "one pool has reserved places for all containers of the pod",
    Rule.PLACE_RESERVED: "its place is reserved until it is created",
    Rule.PLACE_RETURNED: "its pod is gone without it, so its place is free again",
    Rule.CLAIM_PREPARED: "its CPUs are exclusive until it is given back",
    Rule.CLAIM_RETURNED: "its pods are gone, so its CPUs are free again",
    Rule.POD_OVERHEAD: "its pod needs them beside those of its containers",
    Rule.COLD_START: "DRAM is withheld for some time after its start",
    Rule.COLD_START_ENDED: "its cold start is over, so DRAM is added",
    Rule.UNKNOWN_CONTAINER: "it is unknown: the runtime did not report its creation",
}
"""Reasons for a container's place."""

DECIDED_SENTENCES: Final[Mapping[str, str]] = {
    "only-one": "no other pool could take it",
    "capacity": "the others had not enough free CPU",
    "isolated-cpus": "it had enough isolated CPUs",
    "affinity": "its affinity score is the highest",
    "hints": "it is nearest to the devices that it uses",
    "memory-offer": "its memory can be nearer there",
    "memory-kinds": "it has the kinds of memory that it asks for",
    "memory-capacity-for-limit": "it holds the most of its memory limit",
    "burstable-limit": "it has the most of its CPU limit free",
    "burstable-level": "it is of the level for Burstable without a CPU limit",
    "fewer-nodes": "fewer memory nodes are needed",
    "cpu-priority": "it has more CPUs of the priority that it asks for",
    "depth": "it is the smallest that suffices",
    "colocation": "the fewest containers are there",
    "spread": "the most CPU was free there",
    "fewer-touched": "fewer other containers had to be changed",
    "id": "all scores were equal, and this is the first pool",
    "crowd": "all CPU is granted, and it has no CPU request",
}
"""The criterion that ranked the pool before the others."""

TYPE_SENTENCES: Final[Mapping[str, str]] = {
    "annotation": "its annotation names the type of balloon",
    "expression": "an expression of the type matches it",
    "namespace": "a namespace of the type matches it",
    "no other type": "no other type matches it",
}
"""Origins of the choice of a balloon type."""
