"""Steps of a scenario on a node: what a kubelet makes of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

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
    Start,
    Step,
    Stop,
    StopPod,
    Update,
    Wait,
)
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import InputError

_NO_ROW: Final = ContainerRow()


@dataclass(eq=False)
class BadStep(InputError):
    """A step cannot happen on the node as it is."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"{self.path}: {self.why}"


class Player:
    """Plays scenarios on a node.

    Args:
        node: Where they happen.
    """

    def __init__(self, node: InProcessNode) -> None:
        self._node = node
        self._rows: dict[str, ContainerRow] = {}
        self._pods_of_run: dict[str, list[str]] = {}
        self._said: dict[str, dict[str, str]] = {}  # annotations of pods to come
        self._at = ""
        self._refused: set[str] = set()

    def play(self, scenario: Scenario) -> None:
        """Let all steps happen; see `steps`."""
        for _ in self.steps(scenario):
            pass

    def steps(self, scenario: Scenario) -> Iterator[int]:
        """Let one step after the other happen; what is refused does not.

        Yields:
            The number of the step that has happened.

        Raises:
            BadStep: A step is about something that is not there, or there already.
            BadMachineSpec: A machine's text makes no machine.
        """
        for step in scenario.steps:
            if isinstance(step, Create) and step.row.annotations:
                # A pod has its annotations from its beginning, those for all of its
                # containers.
                said = self._said.setdefault(_pod_id(step), {})
                said.update(step.row.annotations)
        for number, step in enumerate(scenario.steps):
            self._at, self._node.book.step = f"$.story[{number}]", number
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
            case AnnouncePod(pod, rows):
                self._said.setdefault(pod, {}).update(announcement(rows))
                self._pod(pod, next(iter(rows.values()), _NO_ROW))
            case StopPod(pod):
                self._end_pod(pod)
            case Delete(name):
                self._delete(name)
            case Reconfigure() | Hotplug() | Restart() | Wait():
                self._change(step)
            case _:
                if self._is_there(step.name):
                    self._play_container(step)

    def _play_container(
        self, step: Update | Start | Stop | Remove | EndColdStart
    ) -> None:
        match step:
            case Update(name, row):
                whole = row.over(self._rows[name])
                if self._node.update(name, resources_of(whole)):
                    self._rows[name] = whole
            case Start(name):
                self._node.start(name)
            case EndColdStart(name):
                self._node.end_cold_start(name)
            case Stop(name) | Remove(name):
                self._node.stop(name)

    def _change(self, step: Reconfigure | Hotplug | Restart | Wait) -> None:
        node = self._node
        match step:
            case Reconfigure(document):
                node.reconfigure(document)
            case Hotplug(machine, document):
                node.change_machine(parse_spec(machine))
                if document:
                    node.reconfigure(document)
            case Restart(remembers, None):
                node.restart(remembers=remembers)
            case Restart():
                why = "here the runtime tells what runs: remembering, or forgetting?"
                raise BadStep(self._at, why)
            case Wait(seconds):
                node.clock.pass_until(node.clock.now + seconds * NANOSECONDS)

    def _run(self, step: RunPods) -> None:
        if step.name in self._pods_of_run:
            raise BadStep(self._at, f"{step.name!r} was run already")
        pods = self._pods_of_run[step.name] = []
        for number in range(step.replicas):
            name = step.name if step.replicas == 1 else f"{step.name}-{number}"
            first = next(iter(step.containers.values()))
            key = f"{first.namespace or 'default'}/{name}"
            if self._pod(key, first, name):
                pods.append(key)
                self._run_containers(key, step)

    def _delete(self, name: str) -> None:
        if name not in self._pods_of_run:
            raise BadStep(self._at, f"nothing named {name!r} was run")
        for pod in self._pods_of_run.pop(name):
            self._end_pod(pod)

    def _run_containers(self, pod: str, step: RunPods) -> None:
        for called, row in step.containers.items():
            key = f"{pod}/{called}"
            if self._create(key, msgspec.structs.replace(row, name=called), pod):
                self._node.start(key)
                if called in step.once:
                    self._node.stop(key)

    def _pod(self, key: str, row: ContainerRow, name: str = "") -> bool:
        if key in self._node.pods:
            return True
        said: Mapping[str, str] = {**(row.annotations or {}), **self._said.get(key, {})}
        pod = pod_of(name or key, msgspec.structs.replace(row, annotations=said))
        return self._node.run_pod(msgspec.structs.replace(pod, id=key))

    def _create(self, key: str, row: ContainerRow, pod: str) -> bool:
        if key in self._node.containers:
            raise BadStep(self._at, f"there is a container {key!r} already")
        self._rows[key] = row
        self._node.hints[key] = row.hints or ()
        made = self._node.create(pod, container_of(key, row, self._node.capacity))
        if not made:
            self._refused.add(key)
        return made

    def _is_there(self, name: str) -> bool:
        if name in self._node.containers:
            return True
        if name in self._refused:
            return False  # what was refused cannot end, and that is no mistake
        raise BadStep(self._at, f"there is no container {name!r}")

    def _end_pod(self, pod: str) -> None:
        if pod not in self._node.pods:
            raise BadStep(self._at, f"there is no pod {pod!r}")
        self._node.stop_pod(pod)


def _pod_id(step: Create) -> str:
    return step.row.pod or f"pod-of-{step.name}"
