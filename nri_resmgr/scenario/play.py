"""Plays the steps of a scenario on a node, as a kubelet would."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import msgspec

from nri_resmgr.config import BadSetting
from nri_resmgr.policy.events import Rebalance
from nri_resmgr.scenario.clock import NANOSECONDS
from nri_resmgr.scenario.kubelet import (
    announcement,
    container_of,
    pod_of,
    resources_of,
)
from nri_resmgr.scenario.node import InProcessNode
from nri_resmgr.scenario.rows import ContainerRow
from nri_resmgr.scenario.steps import (
    AnnouncePod,
    Create,
    Delete,
    EndColdStart,
    Hotplug,
    Reconfigure,
    Remove,
    Restart,
    RunPods,
    Scenario,
    StartContainer,
    Step,
    Stop,
    StopPod,
    Update,
    Wait,
)
from nri_resmgr.topology.synthetic import parse_spec

_NO_ROW: Final = ContainerRow()


def _ignore() -> None:
    """Do nothing."""


class Player:
    """Plays scenarios on a node.

    Args:
        node: The node.
        note_pod: Is called after each pod of a step that runs pods.
    """

    def __init__(
        self, node: InProcessNode, note_pod: Callable[[], None] = _ignore
    ) -> None:
        self._node = node
        self._note_pod = note_pod
        self._rows: dict[str, ContainerRow] = {}
        # By namespace and name of the step.
        self._pods_of_run: dict[tuple[str, str], list[str]] = {}
        self._annotations: dict[str, dict[str, str]] = {}  # by pod, before it runs
        self._at = ""
        self._refused: set[str] = set()

    def play(self, scenario: Scenario, first: int = 0) -> None:
        """Play all steps; see `steps`."""
        for _ in self.steps(scenario, first):
            pass

    def steps(self, scenario: Scenario, first: int = 0) -> Iterator[int]:
        """Play one step after the other; refused requests have no effect.

        Args:
            scenario: Has the steps.
            first: The number of the first one, after those of another scenario.

        Yields:
            The number of the step that was played.

        Raises:
            BadSetting: A step names a missing object, or creates an existing one.
            BadMachineSpec: The text is not the spec of a machine.
        """
        for step in scenario.steps:
            if isinstance(step, Create) and step.row.annotations:
                # A pod has the annotations of all its containers from its creation.
                known = self._annotations.setdefault(_pod_id(step), {})
                known.update(step.row.annotations)
        for number, step in enumerate(scenario.steps, first):
            self._at, self._node.notes.step = f"$.story[{number}]", number
            self._node.clock.tick()
            self._play(step)
            yield number

    def _play(self, step: Step) -> None:
        match step:
            case RunPods():
                self._run(step)
            case Create(name, row):
                if self._pod(_pod_id(step), row):
                    self._create(name, row, _pod_id(step))
            case AnnouncePod(pod, rows, overhead):
                self._annotations.setdefault(pod, {}).update(announcement(rows))
                first = next(iter(rows.values()), overhead or _NO_ROW)
                self._pod(pod, first, overhead=overhead)
            case StopPod(pod):
                self._end_pod(pod)
            case Delete(name):
                self._delete(name)
            case Reconfigure() | Hotplug() | Restart() | Wait() | Rebalance():
                self._change(step)
            case _:
                if self._exists(step.name):
                    self._play_container(step)

    def _play_container(
        self, step: Update | StartContainer | Stop | Remove | EndColdStart
    ) -> None:
        match step:
            case Update(name, row):
                whole = row.over(self._rows[name])
                if self._node.update(name, resources_of(whole)):
                    self._rows[name] = whole
            case StartContainer(name):
                self._node.start(name)
            case EndColdStart(name):
                self._node.end_cold_start(name)
            case Stop(name) | Remove(name):
                self._node.stop(name)

    def _change(self, step: Reconfigure | Hotplug | Restart | Wait | Rebalance) -> None:
        node = self._node
        match step:
            case Reconfigure(document):
                node.reconfigure(document)
            case Hotplug(machine, document):
                node.change_machine(parse_spec(machine))
                if document:
                    node.reconfigure(document)
            case Rebalance():
                node.rebalance(step)
            case Restart(restores, None):
                node.restart(restores=restores)
            case Restart():
                expected = "expected remembering or forgetting"
                raise BadSetting(self._at, f"{expected}: the node lists its containers")
            case Wait(seconds):
                node.clock.pass_until(node.clock.now + seconds * NANOSECONDS)

    def _run(self, step: RunPods) -> None:
        run = step.namespace, step.name
        if run in self._pods_of_run:
            raise BadSetting(self._at, f"{step.name!r} runs already")
        pods = self._pods_of_run[run] = []
        for name in step.pod_names:
            first = next(iter(step.containers.values()))
            key = f"{step.namespace}/{name}"
            if self._pod(key, first, name):
                pods.append(key)
                self._run_containers(key, step)
            self._note_pod()

    def _delete(self, name: str) -> None:
        runs = [run for run in self._pods_of_run if run[1] == name]
        if not runs:
            raise BadSetting(self._at, f"no step has run {name!r}")
        for run in runs:
            for pod in self._pods_of_run.pop(run):
                self._end_pod(pod)

    def _run_containers(self, pod: str, step: RunPods) -> None:
        for name, row in step.containers.items():
            key = f"{pod}/{name}"
            if self._create(key, msgspec.structs.replace(row, name=name), pod):
                self._node.start(key)
                if name in step.once:
                    self._node.stop(key)

    def _pod(
        self,
        key: str,
        row: ContainerRow,
        name: str = "",
        overhead: ContainerRow | None = None,
    ) -> bool:
        if key in self._node.pods:
            return True
        known = self._annotations.get(key, {})
        annotations: Mapping[str, str] = {**(row.annotations or {}), **known}
        row = msgspec.structs.replace(row, annotations=annotations)
        pod = pod_of(name or key, row, overhead)
        return self._node.run_pod(msgspec.structs.replace(pod, id=key))

    def _create(self, key: str, row: ContainerRow, pod: str) -> bool:
        if key in self._node.containers:
            raise BadSetting(self._at, f"container {key!r} exists already")
        self._rows[key] = row
        self._node.hints[key] = row.hints or ()
        made = self._node.create(pod, container_of(key, row, self._node.capacity))
        if not made:
            self._refused.add(key)
        return made

    def _exists(self, name: str) -> bool:
        if name in self._node.containers:
            return True
        if name in self._refused:
            return False  # a step on a refused container is ignored
        raise BadSetting(self._at, f"there is no container {name!r}")

    def _end_pod(self, pod: str) -> None:
        if pod not in self._node.pods:
            raise BadSetting(self._at, f"there is no pod {pod!r}")
        self._node.stop_pod(pod)


def _pod_id(step: Create) -> str:
    return step.row.pod or f"pod-of-{step.name}"
