"""Plays the steps of stories as a kubelet would, through a runtime's socket."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from nri_resmgr.policy.events import Pin
from nri_resmgr.policy.requests import oom_score_adj_of, quota_of, shares_of
from nri_resmgr.stub import Container, LinuxCpu, LinuxMemory, LinuxResources, Pod
from nri_resmgr.stub.model import HugepageLimit, LinuxContainer, LinuxPod
from nri_resmgr.stub.update import ContainerUpdate
from nri_resmgr.testing import PluginRefused, Runtime
from nri_resmgr.values import Bytes, CpuSet, MilliCpus, NodeSet, parse_bytes, parse_cpus
from tests.policy.story_containers import merged
from tests.policy.story_outcomes import news_of, quoted, text_of

Row = Mapping[str, Any]

_PERIOD: Final = 100_000
_UID: Final = "11111111-2222-3333-4444-555555555555"
_SLICE: Final = "/kubepods.slice/kubepods"
_PARENTS: Final = {
    "guaranteed": f"{_SLICE}-pod{_UID}.slice",
    "burstable": f"{_SLICE}-burstable.slice/kubepods-burstable-pod{_UID}.slice",
    "best-effort": f"{_SLICE}-besteffort.slice/kubepods-besteffort-pod{_UID}.slice",
}
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
    steps: Sequence[Row]
    rows: dict[str, Row] = attrs.field(factory=dict)

    async def play(self, step: Row) -> dict[str, Any]:
        """Let one step happen; return what came of it as the step would write it."""
        try:
            return await self._play(step)
        except PluginRefused as refusal:
            return {"refused": quoted(refusal.message, step.get("refused"))}

    async def _play(self, step: Row) -> dict[str, Any]:
        match step:
            case {"create": str(name)}:
                await self._run_pod(step)
                container = self._container(name, step)
                made = await self.runtime.create_container(_pod(step), container)
                self.rows[name] = step
                return self._outcome(name, step, made.updates)
            case {"update": str(name)}:
                row = merged(self.rows[name], step)
                resources = self._resources(row)
                changed = await self.runtime.update_container(name, resources)
                self.rows[name] = row
                return self._outcome(name, step, changed.updates)
            case {"stop": str(name)}:
                stopped = await self.runtime.stop_container(name)
                return {"updates": _updates(stopped.updates)}
            case {"restart": "remembering"}:
                return {"updates": await self._reconnect()}
            case {"stop-pod": str(pod)}:
                await self.runtime.stop_pod(pod)
            case {"pod": _, "expects": _}:
                await self._run_pod(step)
            case _:
                raise ValueError(f"no kubelet does {step}")
        return {"updates": {}}

    def _outcome(
        self, name: str, step: Row, updates: Iterable[ContainerUpdate]
    ) -> dict[str, Any]:
        pin, others = self._pin(name), [u for u in updates if u.container_id != name]
        found = {"gets": text_of(pin), "updates": _updates(others)}
        if "shares" not in step:
            return found
        # A story of a container whose weight is left alone says 0.
        cpu = self._resources(self.rows[name]).cpu or LinuxCpu()
        alone = not step["shares"] and pin.shares == cpu.shares
        return found | {"shares": 0 if alone else pin.shares}

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

    async def _run_pod(self, row: Row) -> None:
        pod = _pod(row)
        if pod in self.runtime.world.pods:
            return
        qos = next((key for key in _PARENTS if key in row), "guaranteed")
        annotations: dict[str, str] = dict(row.get("pod-tags", {}))
        for step in self.steps:
            if "create" in step and _pod(step) == pod:
                annotations |= step.get("annotations", {})
                annotations |= _given_hints(step)
        if "expects" in row:
            annotations["noderesource.dev/resources"] = _announced(row["expects"])
        await self.runtime.run_pod(
            Pod(
                id=pod,
                name=pod,
                namespace=row.get("namespace", "default"),
                labels=row.get("pod-labels", {}),
                annotations=annotations,
                linux=LinuxPod(cgroup_parent=_PARENTS[qos]),
            )
        )

    def _container(self, name: str, row: Row) -> Container:
        slot = {"io.kubernetes.container.name": row["slot"]} if "slot" in row else {}
        return Container(
            id=name,
            name=row.get("name", name),
            labels={**row.get("labels", {}), **slot},
            annotations=row.get("tags", {}),
            linux=LinuxContainer(
                resources=self._resources(row), oom_score_adj=self._oom_score(row)
            ),
        )

    def _resources(self, row: Row) -> LinuxResources:
        (qos,) = _PARENTS.keys() & row.keys()
        request = parse_cpus(str(row[qos] or 0))
        limit = request if qos == "guaranteed" else MilliCpus(row.get("limit", 0))
        memory = row.get("memory-limit", 0)
        if qos == "guaranteed":
            memory = row.get("memory", 0)
        quota = quota_of(limit) if limit else 0
        pages = row.get("hugepages", {}).items()
        return LinuxResources(
            cpu=LinuxCpu(shares_of(request), quota, _PERIOD),
            memory=LinuxMemory(limit=parse_bytes(str(memory))),
            hugepage_limits=tuple(
                HugepageLimit(f"{size[:-1]}B", count * parse_bytes(size))
                for size, count in pages
            ),
        )

    def _oom_score(self, row: Row) -> int:
        if "burstable" in row:
            memory = parse_bytes(str(row.get("memory", 0)))
            return oom_score_adj_of(memory, self.capacity)
        return -997 if "guaranteed" in row else 1000

    def _pin(self, name: str) -> Pin:
        cpu = self.runtime.container(name).resources.cpu or LinuxCpu()
        cpus, mems = CpuSet.parse(cpu.cpus), NodeSet.parse(cpu.mems)
        return Pin(cpus, mems, cpu.shares or 0)


def _pod(row: Row) -> str:
    return str(row.get("pod") or f"pod-of-{row['create']}")


def _updates(updates: Iterable[ContainerUpdate]) -> dict[str, str]:
    found = {}
    for one in updates:
        cpu = one.linux.resources.cpu if one.linux and one.linux.resources else None
        cpu = cpu or LinuxCpu()
        cpus, mems = CpuSet.parse(cpu.cpus), NodeSet.parse(cpu.mems)
        found[one.container_id] = news_of(Pin(cpus, mems, cpu.shares or 0))
    return found


def _given_hints(row: Row) -> dict[str, str]:
    """Write ``nic at nodes 2`` as an annotation that tests may use."""
    given = {}
    for text in row.get("hints", ()):
        provider, _, place = text.partition(" at ")
        what, _, ids = place.partition(" ")
        given[provider] = {"NUMAs" if what == "nodes" else "CPUs": ids}
    name = row.get("name", row["create"])
    return {f"{_HINTS}{name}": json.dumps(given)} if given else {}


def _announced(rows: Mapping[str, Row]) -> str:
    """Write what a pod's Guaranteed containers ask for, as the webhook does."""
    amounts = {name: {"cpu": str(row["guaranteed"])} for name, row in rows.items()}
    containers = {
        name: {"requests": one, "limits": one} for name, one in amounts.items()
    }
    return json.dumps({"containers": containers})
