"""Schedulers, as far as they decide here: which nodes fit a pod, and which is best.

Source:
    kube-scheduler's ``NodeResourcesFit`` with ``LeastAllocated``; scheduler-plugins,
    ``noderesourcetopology``: ``filter.go`` and ``least_numa.go``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Final, TypeAlias

import attrs

from nri_resmgr.values import parse_bytes, parse_cpus
from nri_resmgr.values.documents import JsonObject
from tests.benchmarks.lives import PodLife

_MOST_SCORE: Final = 100
_EACH_NODE: Final = 12  # of the plugin: 100 / 8, the number of nodes by default


@attrs.define(eq=False)
class NodeSeen:
    """What a scheduler knows of a node.

    Attributes:
        cpu: Thousandths of a CPU that are allocatable.
        memory: Bytes, likewise.
        bound: The pods that it was given.
        coming: Those of them that it has not created yet.
        published: Its object, as the scheduler has it.
        reserved: Pods that it was given since, where the scheduler's cache counts them.
        room: Returns what the policy can grant now of each NUMA node.
    """

    cpu: int
    memory: int
    room: Callable[[], Sequence[int]]
    bound: dict[int, PodLife] = attrs.Factory(dict)
    coming: dict[int, PodLife] = attrs.Factory(dict)
    published: JsonObject = attrs.Factory(dict)
    reserved: dict[int, PodLife] = attrs.Factory(dict)

    def bind(self, pod: PodLife) -> None:
        """Note that it was given a pod."""
        self.bound[pod.number] = self.coming[pod.number] = pod
        self.reserved[pod.number] = pod

    def receive(self, published: JsonObject, *, by_cache: bool) -> None:
        """Note another object.

        The cache ignores one whose fingerprint is not that of the pods it knows of.
        """
        if by_cache and self.coming:
            return
        self.published = published
        self.reserved.clear()

    def free(self) -> tuple[int, int]:
        """Return CPUs and memory that no bound pod requests."""
        pods = self.bound.values()
        cpu = self.cpu - sum(one.cpu for one in pods)
        return cpu, self.memory - sum(one.memory for one in pods)


Fits: TypeAlias = Callable[[PodLife, NodeSeen], bool]
Score: TypeAlias = Callable[[PodLife, NodeSeen], float]


@attrs.frozen
class Scheduler:
    """A pod fits where all filters say so, and goes where the sum of scores is best."""

    title: str
    filters: tuple[Fits, ...]
    scores: tuple[Score, ...]
    has_cache: bool = False

    def choose(self, pod: PodLife, nodes: Sequence[NodeSeen]) -> NodeSeen | None:
        """Return the best node that fits a pod, if any."""
        fitting = [one for one in nodes if all(fits(pod, one) for fits in self.filters)]

        def score(node: NodeSeen) -> float:
            return sum(one(pod, node) for one in self.scores)

        return max(fitting, key=score, default=None)


def fits_requests(pod: PodLife, node: NodeSeen) -> bool:
    """`NodeResourcesFit`: the sum of requests."""
    cpu, memory = node.free()
    return pod.cpu <= cpu and pod.memory <= memory


def least_allocated(pod: PodLife, node: NodeSeen) -> float:
    """`LeastAllocated`: the mean of what would be free of CPUs and memory."""
    cpu, memory = node.free()
    left = ((cpu - pod.cpu) / node.cpu, (memory - pod.memory) / node.memory)
    return _MOST_SCORE * sum(left) / len(left)


def fits_published_zones(pod: PodLife, node: NodeSeen) -> bool:
    """`NodeResourceTopologyMatch`, the filter: one zone for each container."""
    if _attribute(node, "topologyManagerPolicy") != "single-numa-node":
        return True
    if not pod.is_guaranteed:
        return True
    return _fits_in_zones(pod, node, {})


def fits_cached_zones(pod: PodLife, node: NodeSeen) -> bool:
    """The same with the over-reserving cache: each zone lost what pods took since."""
    if _attribute(node, "topologyManagerPolicy") != "single-numa-node":
        return True
    if not pod.is_guaranteed:
        return True
    pods = node.reserved.values()
    taken = {"cpu": sum(p.cpu for p in pods), "memory": sum(p.memory for p in pods)}
    return _fits_in_zones(pod, node, taken)


def _fits_in_zones(pod: PodLife, node: NodeSeen, taken: Mapping[str, int]) -> bool:
    zones = [
        {key: free - taken.get(key, 0) for key, free in one.items()}
        for one in _zones(node)
    ]
    for row in pod.containers:
        asked = {"cpu": row.request or 0, "memory": row.memory or 0}
        fit = [one for one in zones if all(one[key] >= asked[key] for key in asked)]
        if not fit:
            return False
        for key, amount in asked.items():
            fit[0][key] -= amount
    return True


def least_numa_nodes(pod: PodLife, node: NodeSeen) -> float:
    """`NodeResourceTopologyMatch`, the strategy ``LeastNUMANodes``."""
    if not pod.is_guaranteed:
        return 0.0
    zones = [one["cpu"] for one in _zones(node)]
    counts = [_least(row.request or 0, zones) for row in pod.containers]
    if not all(counts):
        return 0.0
    return max(0.0, float(_MOST_SCORE - _EACH_NODE * max(counts)))


def fits_claims(pod: PodLife, node: NodeSeen) -> bool:
    """DRA: a device per NUMA node, with its exclusive CPUs as consumable capacity.

    A claim is allocated with the decision, so that what is bound and not created yet
    counts; that its NUMA node is known by then is not modelled, and each has all of it.
    """
    if not pod.is_exclusive:
        return True
    before = sum(one.cpu for one in node.coming.values())
    zones = [max(one - before, 0) for one in node.room()]
    for row in pod.containers:
        asked = row.request or 0
        if asked > max(zones):
            return False
        # Each zone loses it, as one pool above all may be what is short.
        zones = [one - asked for one in zones]
    return True


PLAIN: Final = Scheduler("requests only", (fits_requests,), (least_allocated,))
TOPOLOGY: Final = Scheduler(
    "with NodeResourceTopology",
    (fits_requests, fits_published_zones),
    (least_allocated, least_numa_nodes),
)
CACHE: Final = Scheduler(
    "the same, with fingerprint and cache",
    (fits_requests, fits_cached_zones),
    (least_allocated, least_numa_nodes),
    has_cache=True,
)
CLAIMS: Final = Scheduler(
    "with claims (DRA, modelled)", (fits_requests, fits_claims), (least_allocated,)
)


def _least(asked: int, zones: Sequence[int]) -> int:
    """Return the least number of zones that have enough together; 0 if none have."""
    for count in range(1, len(zones) + 1):
        if any(sum(some) >= asked for some in combinations(zones, count)):
            return count
    return 0


def _attribute(node: NodeSeen, name: str) -> str:
    rows = node.published.get("attributes", ())
    return next((str(one["value"]) for one in rows if one["name"] == name), "")


def _zones(node: NodeSeen) -> Iterator[Mapping[str, int]]:
    parse: Mapping[str, Callable[[str], Any]] = {
        "cpu": parse_cpus,
        "memory": parse_bytes,
    }
    for zone in node.published.get("zones", ()):
        if zone["type"] == "Node":
            found = {"cpu": 0, "memory": 0}
            for one in zone["resources"]:
                found[one["name"]] = int(parse[one["name"]](one["available"]))
            yield found
