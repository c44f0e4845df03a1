"""Stories played on a real runtime with the real daemon."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from tests.policy.stories import KINDS
from tests.real_host.containerd import Containerd
from tests.real_host.pods import Container, ContainerSpec, Pod, PodSpec
from tests.real_host.resources import MIB, QosClass, Resources
from tests.real_host.stage_plugins import StagePlugin

_CPU = Path("/sys/devices/system/cpu")
_FILE = "/.nri-resource-policy/resources.sh"
_QOS = {
    "guaranteed": QosClass.GUARANTEED,
    "burstable": QosClass.BURSTABLE,
    "best-effort": QosClass.BEST_EFFORT,
}


class Stage:
    """Performs the steps of a story; `with` starts the plugin and ends it.

    The pods stay: ending the daemon removes them much faster.

    Args:
        daemon: A running containerd without pods.
        plugin: The plugin that is tested.
        kind: Of the plugin's document.
        settings: ``spec`` of the document.
    """

    def __init__(
        self,
        daemon: Containerd,
        plugin: StagePlugin,
        kind: str,
        settings: Mapping[str, Any],
    ) -> None:
        self._daemon = daemon
        self._plugin = plugin
        self._document = kind, settings
        self._pods: dict[str, Pod] = {}
        self._steps: dict[str, Mapping[str, Any]] = {}
        self._offline: list[Path] = []
        self._ended_in_time: set[str] = set()
        self.containers: dict[str, Container] = {}
        self.plugin = plugin.process

    def __enter__(self) -> Self:
        self._plugin.configure(*self._document)
        return self

    def __exit__(self, *_: object) -> None:
        self.plugin.kill()
        for switch in self._offline:
            switch.write_text("1")

    def play(self, step: Mapping[str, Any]) -> None:
        """Perform one step; see ``tests/policy/stories.py`` for the words.

        Raises:
            CallFailed: The runtime refused it.
        """
        match step:
            case {"create": str(name)}:
                self._create(name, step)
            case {"update": str(name)}:
                self.containers[name].update(resources_of(step))
                self._steps[name] = step
            case {"stop": str(name)}:
                self.containers.pop(name).stop()
            case {"cold-start-ends": str(name)}:
                self.plugin.wait_for("cold-start.ended")
                self._ended_in_time.add(name)
                self._let_reply(name)
            case {"pod": str(name), "expects": dict(rows)}:
                self._run(PodSpec(name, annotations=requests_of(rows)))
            case {"hotplug": [str(machine), _]}:
                self._take_offline(re.findall(r"offline=(\d+)", machine))
            case {"start": _}:
                pass  # to create is to start here
            case _:
                self._change_plugin(step)

    def seen(self) -> dict[str, str]:
        """CPUs and memory nodes of all containers, as they see them."""
        return {
            name: f"{container.cpus()} on {container.mems()}"
            for name, container in self.containers.items()
        }

    def ended_early(self) -> set[str]:
        """Containers whose cold start ended before its step, on a slow machine."""
        ended = self.plugin.events("cold-start.ended")
        names = {line["title"].rpartition("/")[-1] for line in ended}
        return names - self._ended_in_time

    def shows(self, container: str, story: str) -> bool:
        """Whether a container's resource file has what a story says."""
        text = self.containers[container].file(_FILE).replace('"', "")
        rows = (line.split("=") for line in text.splitlines())
        reported = (
            f"{name.split('_')[0].lower()} {value}"
            for name, value in rows
            if name != "ALL_MEMS"
        )
        return ", ".join(reported) == story

    def weight(self, container: str) -> int:
        """A container's ``cpu.weight``."""
        return int(self.containers[container].cgroup.read("cpu.weight"))

    def _create(self, name: str, step: Mapping[str, Any]) -> None:
        pod = self._pods.get(step["pod"]) or self._run(
            PodSpec(
                step["pod"],
                next(_QOS[key] for key in _QOS if key in step),
                step.get("namespace", "default"),
                step.get("annotations", {}),
                step.get("pod-labels", {}),
            )
        )
        container = pod.create(ContainerSpec(name, resources_of(step)))
        container.start()
        self.containers[name] = container
        self._steps[name] = step

    def _run(self, spec: PodSpec) -> Pod:
        pod = self._pods[spec.name] = self._daemon.run_pod(spec)
        return pod

    def _take_offline(self, cpus: list[str]) -> None:
        for cpu in cpus:
            switch = _CPU / f"cpu{cpu}" / "online"
            switch.write_text("0")
            self._offline.append(switch)
        self.plugin.wait_for("topology.changed")
        self._let_reply(next(iter(self.containers)))

    def _let_reply(self, name: str) -> None:
        """Request the present values, so that the reply carries pending updates."""
        self.containers[name].update(resources_of(self._steps[name]))

    def _change_plugin(self, step: Mapping[str, Any]) -> None:
        match step:
            case {"reconfigure": dict(settings)}:
                self._configure(self._document[0], settings)
            case {"switch": [str(folder), dict(settings)]}:
                self._configure(KINDS[folder], settings)
            case {"restart": "forgetting"}:
                self.plugin.kill()
                self.plugin.start()

    def _configure(self, kind: str, settings: Mapping[str, Any]) -> None:
        self._document = kind, settings
        self._plugin.configure(kind, settings)
        if self._plugin.changes_live:
            self._let_reply(next(iter(self.containers)))


def resources_of(step: Mapping[str, Any]) -> Resources:
    """Read what a step asks for."""
    match step:
        case {"guaranteed": cpus, "memory": str(memory)}:
            amount = int(memory.removesuffix("Mi")) * MIB
            return Resources.guaranteed(_cpus(cpus), amount)
        case {"burstable": cpus}:
            return Resources.burstable(_cpus(cpus))
    return Resources.best_effort()


def requests_of(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Annotate the requests of a pod's Guaranteed containers, as a webhook does."""
    containers = {
        name: {"limits": {"cpu": row["guaranteed"], "memory": row["memory"]}}
        for name, row in rows.items()
    }
    return {"noderesource.dev/resources": json.dumps({"containers": containers})}


def _cpus(amount: int | str) -> float:
    text = str(amount)
    return float(text.removesuffix("m")) / (1000 if text.endswith("m") else 1)
