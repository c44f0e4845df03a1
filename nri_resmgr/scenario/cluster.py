"""The pods of each node of a cluster, and what a rollout replaces and adds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeGuard

import msgspec
from msgspec.structs import replace

from nri_resmgr.scenario.manifests import counted
from nri_resmgr.scenario.objects import POD, Found
from nri_resmgr.scenario.pod_names import OwnedPods, kept_apart
from nri_resmgr.scenario.steps import LeftOut, RunPods, Scenario, Skipped

_NOT_RUNNING: Final = "only pods that are bound to a node count in a cluster"
_ON_EACH_NODE: Final = "DaemonSet"
_KEEPS_NAMES: Final = "StatefulSet"
# A ReplicaSet has the name of its owner and this label of its pods, between them "-".
_HASHES: Final[Mapping[str, str]] = {
    "pod-template-hash": "Deployment",
    "rollouts-pod-template-hash": "Rollout",
}


class ClusterNode(msgspec.Struct, frozen=True):
    """A node, and what happens on it.

    Attributes:
        present: Number of its pods that stay.
        replaced: Number of its pods that the rollout replaces.
        scenario: Runs the pods that stay, oldest first, then those of the rollout.
    """

    name: str
    present: int
    replaced: int
    scenario: Scenario


class Cluster(msgspec.Struct, frozen=True):
    """The nodes by name, and the pods that are on none of them yet.

    Attributes:
        new: What the rollout runs beside what it replaces.
        left_out: The objects of the cluster that were not read.
        skipped: The objects of the cluster that are no pods on nodes.
    """

    nodes: tuple[ClusterNode, ...]
    new: tuple[RunPods, ...]
    left_out: tuple[LeftOut, ...]
    skipped: tuple[Skipped, ...]

    @property
    def pods(self) -> int:
        """The number of pods that run, or are tried."""
        new = sum(step.replicas for step in self.new)
        return new + sum(one.scenario.pods for one in self.nodes)


def cluster_of(
    present: Sequence[Found], rollout: Sequence[Found], names: Collection[str]
) -> Cluster:
    """Return what a rollout does on each node, and which of its pods need a node.

    Pods of an object of the rollout are replaced, where they run, by as many of its new
    template. Those by which its replicas exceed these are new, as are all pods of an
    object without a pod in the cluster. So are all pods of an object with several
    templates, since no pod has the name of its template.

    Args:
        present: Objects of the cluster, of which pods on nodes count.
        rollout: Objects that are applied; none to look at the cluster as it is.
        names: The nodes whose machines are known.
    """
    bound = [one for one in present if _is_bound(one)]
    applied = _Applied(rollout, bound)
    nodes: list[ClusterNode] = []
    all_runs: list[OwnedPods] = []
    for name in sorted(names):
        here = sorted((one for one in bound if one.node == name), key=_age)
        stays = [one for one in here if not applied.owner_of(one)]
        gone = [one for one in here if applied.owner_of(one)]
        runs = [*stays, *applied.replacing(gone)]
        scenario = Scenario("", "", tuple(kept_apart(runs)))
        nodes.append(ClusterNode(name, len(stays), len(gone), scenario))
        all_runs += runs
    # Their names are free on each node, so that any can run them.
    named = tuple(kept_apart((*all_runs, *applied.new_pods())))
    return Cluster(
        nodes=tuple(nodes),
        new=named[len(all_runs) :],
        left_out=tuple(_unknown(present, names)),
        skipped=counted(_skipped(present)),
    )


class _Applied:
    """The objects of a rollout, and the pods in the cluster that are theirs."""

    def __init__(self, rollout: Iterable[Found], bound: Iterable[OwnedPods]) -> None:
        self._objects = [one for one in rollout if isinstance(one, OwnedPods)]
        self._templates = Counter(one.title for one in self._objects)
        self._owners = {one.title: self._find_owner(one) for one in bound}
        # On all nodes: pods on a node without a machine are replaced there.
        self._pods = Counter(self._owners.values())

    def owner_of(self, pod: OwnedPods) -> str:
        """Return the title of the object that a pod is of; empty for none."""
        return self._owners[pod.title]

    def replacing(self, gone: Iterable[OwnedPods]) -> Iterator[OwnedPods]:
        """Yield the pods on a node from which those of its own are *gone*."""
        old: dict[str, list[OwnedPods]] = {}
        for pod in gone:
            old.setdefault(self.owner_of(pod), []).append(pod)
        for one in self._objects:
            if one.kind == _ON_EACH_NODE and not self._pods[one.title]:
                yield one
            elif self._templates[one.title] == 1:
                yield from _replaced(one, old.get(one.title, ()))

    def new_pods(self) -> Iterator[OwnedPods]:
        """Yield the pods that no node has yet."""
        for one in self._objects:
            there = self._pods[one.title] if self._templates[one.title] == 1 else 0
            more = one.pods.replicas - there
            if one.kind != _ON_EACH_NODE and more > 0:
                name = f"{one.pods.name}-new" if there else one.pods.name
                yield replace(one, pods=replace(one.pods, name=name, replicas=more))

    def _find_owner(self, pod: OwnedPods) -> str:
        titles = (title for title in _titles_of(pod) if title in self._templates)
        return next(titles, "")


def _replaced(one: OwnedPods, old: Sequence[OwnedPods]) -> Iterator[OwnedPods]:
    """Yield the new pods of an object in the places of *old* ones."""
    if one.kind == _KEEPS_NAMES:
        for pod in old:
            yield replace(one, pods=replace(one.pods, name=pod.name, replicas=1))
    elif old:
        yield replace(one, pods=replace(one.pods, replicas=len(old)))


def _skipped(present: Iterable[Found]) -> Iterator[Skipped]:
    for one in present:
        if isinstance(one, Skipped):
            yield one
        elif isinstance(one, OwnedPods) and not _is_bound(one):
            yield Skipped(one.kind, 1, _NOT_RUNNING)


def _unknown(present: Iterable[Found], names: Collection[str]) -> Iterator[LeftOut]:
    for one in present:
        if isinstance(one, LeftOut):
            yield one
        elif _is_bound(one) and one.node not in names:
            title = f"{one.pods.namespace}/{one.name}"
            why = f"there is no dump of its node {one.node}"
            yield LeftOut("v1", one.kind, title, why)


def _is_bound(one: Found) -> TypeGuard[OwnedPods]:
    return isinstance(one, OwnedPods) and one.kind == POD and bool(one.node)


def _age(pod: OwnedPods) -> tuple[str, str]:
    return pod.since, pod.title


def _titles_of(pod: OwnedPods) -> Iterator[str]:
    """Yield the pod, its owners, and the owners of these, as far as names have them."""
    yield pod.title
    for kind, name in pod.owners:
        at = pod.pods.namespace
        yield f"{kind} {at}/{name}"
        if kind == "ReplicaSet":
            for label, maker in _HASHES.items():
                suffix = f"-{pod.labels.get(label, '')}"
                if name.endswith(suffix):
                    yield f"{maker} {at}/{name.removesuffix(suffix)}"
        elif kind == "Job":
            # The suffix is the time of the run, in minutes.
            maker, _, minutes = name.rpartition("-")
            if minutes.isdecimal():
                yield f"CronJob {at}/{maker}"
