"""Plays the steps of stories as a kubelet would, through a runtime's socket."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs
import msgspec

from nri_resmgr.policy.events import Pin
from nri_resmgr.scenario.kubelet import (
    announcement,
    container_of,
    pod_of,
    resources_of,
)
from nri_resmgr.scenario.rows import ContainerRow
from nri_resmgr.scenario.steps import (
    AnnouncePod,
    Create,
    Restart,
    Step,
    Stop,
    StopPod,
    Update,
)
from nri_resmgr.stub import LinuxCpu
from nri_resmgr.stub.update import ContainerUpdate
from nri_resmgr.testing import PluginRefused, Runtime
from nri_resmgr.values import Bytes, CpuSet, NodeSet
from tests.policy.story_outcomes import news_of, quoted, text_of

_HINTS: Final = "test.topologyhints.resource-policy.nri.io/container."


@attrs.define
class Kubelet:
    """Makes pods and containers of a story's steps.

    Attributes:
        runtime: Where they are made.
        plugin: The name of the plugin under test.
        capacity: The memory of the node.
        steps: The whole story: the annotations of a pod are those of all steps.
    """

    runtime: Runtime
    plugin: str
    capacity: Bytes
    steps: Sequence[Step]
    rows: dict[str, ContainerRow] = attrs.field(factory=dict)

    async def play(self, written: Mapping[str, Any], step: Step) -> dict[str, Any]:
        """Let one step happen; return what came of it as the step would write it."""
        try:
            found = await self._play(step)
        except PluginRefused as refusal:
            return {"refused": quoted(refusal.message, written.get("refused"))}
        if "gets" in found and "shares" in written:
            found["shares"] = self._shares(written)
        return found

    async def _play(self, step: Step) -> dict[str, Any]:
        match step:
            case Create(name, row):
                pod = row.pod or f"pod-of-{name}"
                await self._run_pod(pod, row)
                container = container_of(name, row, self.capacity)
                made = await self.runtime.create_container(pod, container)
                self.rows[name] = row
                return self._outcome(name, made.updates)
            case Update(name, row):
                row = row.over(self.rows[name])
                resources = resources_of(row)
                changed = await self.runtime.update_container(name, resources)
                self.rows[name] = row
                return self._outcome(name, changed.updates)
            case Stop(name):
                stopped = await self.runtime.stop_container(name)
                return {"updates": _updates(stopped.updates)}
            case Restart(restores=True, rows=None):
                return {"updates": await self._reconnect()}
            case StopPod(pod):
                await self.runtime.stop_pod(pod)
            case AnnouncePod(pod, rows, overhead):
                first = next(iter(rows.values()), overhead or ContainerRow())
                await self._run_pod(pod, first, announcement(rows), overhead)
            case _:
                raise ValueError(f"no kubelet does {step}")
        return {"updates": {}}

    def _outcome(self, name: str, updates: Iterable[ContainerUpdate]) -> dict[str, Any]:
        others = [u for u in updates if u.container_id != name]
        return {"gets": text_of(self._pin(name)), "updates": _updates(others)}

    def _shares(self, written: Mapping[str, Any]) -> int:
        # A story of a container whose weight is left alone says 0.
        name = written.get("create") or written["update"]
        cpu, shares = resources_of(self.rows[name]).cpu, self._pin(name).shares
        return 0 if not written["shares"] and cpu and shares == cpu.shares else shares

    async def _reconnect(self) -> dict[str, str]:
        before = {name: self._pin(name) for name in self.rows}
        await self.runtime.stop()
        await self.runtime.start()
        await self.runtime.synchronized(self.plugin)
        after = {name: self._pin(name) for name in self.rows}
        return {
            name: news_of(pin.since(before[name]))
            for name, pin in after.items()
            if pin != before[name]
        }

    async def _run_pod(
        self,
        name: str,
        row: ContainerRow,
        said: Mapping[str, str] = {},
        overhead: ContainerRow | None = None,
    ) -> None:
        if name in self.runtime.world.pods:
            return
        annotations = dict(said)
        for step in self.steps:
            if isinstance(step, Create) and _pod(step) == name:
                annotations |= step.row.annotations or {}
                annotations |= _given_hints(step)
        whole = msgspec.structs.replace(row, annotations=annotations)
        await self.runtime.run_pod(pod_of(name, whole, overhead))

    def _pin(self, name: str) -> Pin:
        cpu = self.runtime.container(name).resources.cpu or LinuxCpu()
        cpus, mems = CpuSet.parse(cpu.cpus), NodeSet.parse(cpu.mems)
        return Pin(cpus, mems, cpu.shares or 0)


def _pod(step: Create) -> str:
    return step.row.pod or f"pod-of-{step.name}"


def _updates(updates: Iterable[ContainerUpdate]) -> dict[str, str]:
    found = {}
    for one in updates:
        cpu = one.linux.resources.cpu if one.linux and one.linux.resources else None
        cpu = cpu or LinuxCpu()
        cpus, mems = CpuSet.parse(cpu.cpus), NodeSet.parse(cpu.mems)
        found[one.container_id] = news_of(Pin(cpus, mems, cpu.shares or 0))
    return found


def _given_hints(step: Create) -> dict[str, str]:
    """Write ``nic at nodes 2`` as an annotation that tests may use."""
    given = {
        hint.provider: {"NUMAs": str(hint.nodes)}
        if hint.nodes
        else {"CPUs": str(hint.cpus)}
        for hint in step.row.hints or ()
    }
    name = step.row.name or step.name
    return {f"{_HINTS}{name}": json.dumps(given)} if given else {}
