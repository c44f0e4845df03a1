"""Pods without a node, dealt to nodes that can grant them.

As a scheduler would that asks the nodes: in turn, so that the pods of a template
spread. Selectors, taints, affinities and the like are not applied.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping

import msgspec
from msgspec.structs import replace

from nri_resmgr.scenario.node import InProcessNode
from nri_resmgr.scenario.play import Player
from nri_resmgr.scenario.steps import RunPods, Scenario, StopPod


class DealtPods(msgspec.Struct, frozen=True):
    """The pods of one template.

    Attributes:
        title: ``namespace/name`` of the template's pods, without their numbers.
        pods: Number of the pods.
        granted: Number of these on each node that has some.
        why: Why no node grants the others, as the last node says; empty if there are
            none.
    """

    title: str
    pods: int
    granted: Mapping[str, int]
    why: str = ""

    @property
    def refused(self) -> int:
        """The number of pods that no node grants."""
        return self.pods - sum(self.granted.values())


class PlayedNode:
    """A node that has played its own scenario, and can run further pods.

    Args:
        name: Its name in the cluster.
        node: The node.
        steps: The number of steps that were played on it.
    """

    def __init__(self, name: str, node: InProcessNode, steps: int) -> None:
        self.name = name
        self.node = node
        self._player = Player(node)
        self._steps = steps

    def try_to_run(self, pod: RunPods, number: int) -> str:
        """Run a pod with all its containers, or nothing of it.

        Args:
            pod: One pod.
            number: That of its template, among those that are dealt.

        Returns:
            The reason of the refusal; empty if it runs.
        """
        refusals = self.node.notes.refusals
        before = len(refusals)
        self._play(pod, number)
        if len(refusals) == before:
            return ""
        why = refusals[before].why
        key = f"{pod.namespace}/{pod.name}"
        if key in self.node.pods:
            self._play(StopPod(key), number)
        # It is no refusal of the cluster: another node may run the pod.
        del refusals[before:]
        return why

    def _play(self, step: RunPods | StopPod, number: int) -> None:
        self._player.play(Scenario("", "", (step,)), self._steps + number)


def deal(
    templates: Iterable[RunPods],
    nodes: Iterable[PlayedNode],
    note_pod: Callable[[], None],
) -> tuple[DealtPods, ...]:
    """Run the pods on the nodes in turn, each on the first that grants it.

    A node that has refused a pod of a template is asked for no other one of it: it has
    only become fuller. So a template costs as many trials as it has pods, and one more
    for each node.

    Args:
        templates: The pods, by their templates.
        nodes: In the order in which they are asked.
        note_pod: Is called after each pod.
    """
    turn = deque(nodes)
    return tuple(
        _deal_one(step, number, turn, note_pod) for number, step in enumerate(templates)
    )


def _deal_one(
    step: RunPods, number: int, turn: deque[PlayedNode], note_pod: Callable[[], None]
) -> DealtPods:
    """Deal the pods of one template; *turn* goes on with the next node."""
    granted: Counter[str] = Counter()
    why = ""
    asked = deque(turn)
    for name in step.pod_names:
        pod = replace(step, name=name, replicas=1)
        while asked and (refusal := asked[0].try_to_run(pod, number)):
            why = refusal
            asked.popleft()
        if asked:
            granted[asked[0].name] += 1
            turn.rotate(-1 - turn.index(asked[0]))
            asked.rotate(-1)
        note_pod()
    is_whole = granted.total() == step.replicas
    title = f"{step.namespace}/{step.name}"
    return DealtPods(title, step.replicas, dict(granted), "" if is_whole else why)
