"""Pods of a cluster's life, scheduled and placed: how many of them nodes refuse.

``python -m tests.benchmarks.scheduled`` prints the table of docs/benchmarks.md. Each
node has the real plugin and policy in this process; its object is the one that an agent
would publish, as old as the agent's pace has it. The schedulers are models.
"""

from __future__ import annotations

import heapq
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from random import Random
from typing import Final

import attrs

from nri_resmgr.agent.node_topology import topology_of
from nri_resmgr.agent.publishing_pace import PublishingPace
from nri_resmgr.agent.zones import Zones
from nri_resmgr.app.observing.history import History
from nri_resmgr.control.daemon_view import DaemonView
from nri_resmgr.control.zones import zones_of
from nri_resmgr.log.levels import levels
from nri_resmgr.log.output import LogFormat, configure_logging
from nri_resmgr.scenario.kubelet import container_of, pod_of
from nri_resmgr.scenario.node import InProcessNode
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import ONE_CPU
from nri_resmgr.values.documents import from_plain
from tests.benchmarks.lives import HOURS, MIXED, VIRTUAL, PodLife, lives
from tests.benchmarks.schedulers import (
    CACHE,
    CLAIMS,
    PLAIN,
    TOPOLOGY,
    NodeSeen,
    Scheduler,
)
from tests.control.daemon_parts import daemon_view

POLICIES: Final = {
    "topology-aware": (
        "kind: TopologyAwarePolicy\n"
        'spec: {reservedResources: {cpu: "1"}, agent: {nodeResourceTopology: true}}'
    ),
    "balloons": (
        "kind: BalloonsPolicy\n"
        'spec: {reservedResources: {cpu: "1"}, agent: {nodeResourceTopology: true}, '
        "balloonTypes: [{name: own, preferNewBalloons: true, matchExpressions: "
        "[{key: pod/qosclass, operator: Equals, values: [Guaranteed]}]}]}"
    ),
}


@attrs.frozen
class Cluster:
    """Nodes, and how they are configured.

    Attributes:
        machines: Specs of the machines.
        policy: A key of `POLICIES`.
        kubelet_reserves: CPUs that the kubelet keeps from being allocatable; the policy
            keeps one.
    """

    machines: tuple[str, ...]
    policy: str
    kubelet_reserves: int


CLUSTERS: Final = {
    "virtual machines, topology-aware": Cluster(VIRTUAL, "topology-aware", 1),
    "the same, the kubelet reserves nothing": Cluster(VIRTUAL, "topology-aware", 0),
    "mixed, topology-aware": Cluster(MIXED, "topology-aware", 1),
    "mixed, balloons": Cluster(MIXED, "balloons", 1),
}
SEEDS: Final = (1, 2, 3)
SCHEDULERS: Final = (PLAIN, TOPOLOGY, CACHE, CLAIMS)
LOAD: Final = 0.9
"""What pods request on average, as a part of what is allocatable."""

_BINDING: Final = 1.0
"""Seconds from the decision to the creation of containers on the node."""

_AGAIN: Final = 15.0  # seconds until a pod that fits nowhere is looked at again
_PATIENCE: Final = 300.0  # seconds after which it is given up
_HEADER: Final = (
    "| nodes, policy | scheduler | pods | refused by a node | of these, with CPUs of "
    "their own | by a node with one NUMA node | fitted nowhere for 5 minutes "
    "| mean CPUs in use |\n|---|---|---|---|---|---|---|---|"
)


@attrs.define(eq=False)
class Node:
    """A node, and what the scheduler knows of it."""

    real: InProcessNode
    daemon: DaemonView
    kubelet_reserves: int
    seen: NodeSeen = attrs.field(init=False)
    is_due: bool = False
    written: float = -1e9
    _room: Sequence[int] | None = None

    def __attrs_post_init__(self) -> None:
        machine = self.real.plugin.machine
        cpus = ONE_CPU * (len(machine.online) - self.kubelet_reserves)
        self.seen = NodeSeen(cpus, self.real.capacity, self.room)
        self.publish(by_cache=False)

    def room(self) -> Sequence[int]:
        """Return what the policy can grant of each NUMA node."""
        if self._room is None:
            plugin = self.real.plugin
            rooms = (
                plugin.policy.cpu_room(plugin.state, one.cpus)
                for one in plugin.machine.nodes
            )
            self._room = [one.available for one in rooms]
        return self._room

    def publish(self, *, by_cache: bool) -> None:
        """Put what can be granted into the object that the scheduler reads."""
        found = topology_of(from_plain(Zones, zones_of(self.daemon)))
        self.seen.receive(found, by_cache=by_cache)

    def create(self, pod: PodLife) -> bool:
        """Create a pod; return whether all its containers were granted."""
        self._room, name = None, f"pod-{pod.number}"
        if not self.real.run_pod(pod_of(name, pod.containers[0])):
            return False
        for place, row in enumerate(pod.containers):
            made = container_of(f"{name}-{place}", row, self.real.capacity)
            if not self.real.create(name, made):
                self.real.stop_pod(name)
                return False
        return True

    def stop(self, pod: PodLife) -> None:
        """Stop a pod."""
        self._room = None
        self.real.stop_pod(f"pod-{pod.number}")


@attrs.define
class Outcome:
    """What became of the pods of a life.

    Attributes:
        counts: Of ``pods``, ``refused``, of these ``exclusive`` ones and those by a
            ``single`` NUMA node, and ``nowhere``.
        used: CPUs that running pods request, at each arrival.
    """

    counts: Counter[str] = attrs.Factory(Counter)
    used: list[float] = attrs.Factory(list)


def make_node(machine: str, policy: str, kubelet_reserves: int = 1) -> Node:
    """Make a node without pods."""
    text = f"apiVersion: config.nri/v1alpha1\n{POLICIES[policy]}"
    real = InProcessNode(parse_spec(machine), text)
    real.plugin.synchronize((), ())
    return Node(real, daemon_view(real.plugin, History(1)), kubelet_reserves)


class Life:
    """Lets a cluster live.

    Args:
        nodes: Its nodes.
        scheduler: Its scheduler.
        seed: Of the pauses between writes of objects.
    """

    def __init__(self, nodes: Sequence[Node], scheduler: Scheduler, seed: int) -> None:
        self._nodes = {id(one.seen): one for one in nodes}
        self._seen = [one.seen for one in nodes]
        self._scheduler = scheduler
        self._random = Random(seed)  # noqa: S311 - repeatable
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._number = count()
        self._running = 0
        self._pace = PublishingPace()
        self._at = 0.0
        self.outcome = Outcome()

    def live(self, pods: Iterator[PodLife]) -> Outcome:
        """Schedule all pods; return what became of them."""
        for pod in pods:
            self._after(pod.arrives, partial(self._arrive, pod))
        while self._events:
            self._at, _, happen = heapq.heappop(self._events)
            happen()
        return self.outcome

    def _after(self, seconds: float, happen: Callable[[], None]) -> None:
        event = (self._at + seconds, next(self._number), happen)
        heapq.heappush(self._events, event)

    def _arrive(self, pod: PodLife) -> None:
        self.outcome.counts["pods"] += 1
        self.outcome.used.append(self._running / ONE_CPU)
        self._schedule(pod)

    def _schedule(self, pod: PodLife) -> None:
        seen = self._scheduler.choose(pod, self._seen)
        if seen is not None:
            seen.bind(pod)
            self._after(_BINDING, lambda: self._create(pod, self._nodes[id(seen)]))
        elif self._at - pod.arrives < _PATIENCE:
            self._after(_AGAIN, lambda: self._schedule(pod))
        else:
            self.outcome.counts["nowhere"] += 1

    def _create(self, pod: PodLife, node: Node) -> None:
        del node.seen.coming[pod.number]
        if node.create(pod):
            self._running += pod.cpu
            self._after(pod.lasts, lambda: self._end(pod, node))
        else:
            # Its controller would make another one; here it is only counted.
            del node.seen.bound[pod.number]
            self.outcome.counts["refused"] += 1
            self.outcome.counts["exclusive"] += pod.is_exclusive
            self.outcome.counts["single"] += len(node.room()) == 1
        self._changed(node)

    def _end(self, pod: PodLife, node: Node) -> None:
        node.stop(pod)
        self._running -= pod.cpu
        del node.seen.bound[pod.number]
        self._changed(node)

    def _changed(self, node: Node) -> None:
        """Have the node publish as its agent would."""
        if node.is_due:
            return
        node.is_due = True
        settle = self._pace.settle * self._random.uniform(1.0, 1.5)
        rest = node.written + self._pace.pause * self._random.uniform(1.0, 1.5)
        self._after(max(settle, rest - self._at), lambda: self._publish(node))

    def _publish(self, node: Node) -> None:
        node.is_due, node.written = False, self._at
        node.publish(by_cache=self._scheduler.has_cache)


def outcomes(
    cluster: str,
    scheduler: Scheduler,
    seeds: Sequence[int] = SEEDS,
    hours: float = HOURS,
) -> list[Outcome]:
    """Return what becomes of the pods of each life."""
    found = []
    made = CLUSTERS[cluster]
    for seed in seeds:
        nodes = [
            make_node(one, made.policy, made.kubelet_reserves) for one in made.machines
        ]
        cpus = sum(len(one.real.plugin.machine.online) - 1 for one in nodes)
        requested = LOAD * ONE_CPU * cpus
        pods = lives(seed, requested, hours)
        found.append(Life(nodes, scheduler, seed).live(pods))
    return found


def main() -> None:
    """Print the table."""
    configure_logging("error", LogFormat.TEXT)
    levels.set("app.observing.refusal_log", "error")
    print(_HEADER)
    for cluster in CLUSTERS:
        for scheduler in SCHEDULERS:
            found = outcomes(cluster, scheduler)
            sums = sum((one.counts for one in found), Counter[str]())
            used = statistics.mean(cpus for one in found for cpus in one.used)
            keys = ("pods", "refused", "exclusive", "single", "nowhere")
            numbers = [*(str(sums[key]) for key in keys), f"{used:.0f}"]
            cells = (cluster, scheduler.title, *numbers)
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
