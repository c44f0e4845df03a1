"""Pods of manifests on the test runtime, and what a plugin makes of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from nri_proto import nri_pb2
from nri_resmgr.config import BadSetting
from nri_resmgr.host.fields import memory_total
from nri_resmgr.host.tree import HostTree
from nri_resmgr.scenario.kubelet import container_of, pod_of
from nri_resmgr.scenario.steps import RunPods, Scenario
from nri_resmgr.sdk.chain import as_plain
from nri_resmgr.stub import ContainerAdjustment, ContainerUpdate, Sender
from nri_resmgr.stub.convert import from_message
from nri_resmgr.testing import PluginRefused, Runtime, RuntimeRefusal
from nri_resmgr.values import Bytes, InputError
from nri_resmgr.values.documents import JsonObject
from nri_resmgr.values.sha256 import sha256_of

_NO_CHANGE = ContainerAdjustment()


class TriedUpdate(msgspec.Struct, frozen=True):
    """An update of a container.

    Attributes:
        container: ``namespace/pod/container``, or its id if there is no such container.
        changes: The contents of the fields, as in `as_plain`.
    """

    container: str
    changes: JsonObject


class Outcome(msgspec.Struct, frozen=True):
    """What the plugin made of one request.

    Attributes:
        request: Such as ``CreateContainer``; ``UpdateContainers`` is a call of the
            plugin's own.
        about: ``namespace/pod`` or ``namespace/pod/container``; empty for its own.
        adjustment: What it adjusts, as far as the NRI level reads it.
        updates: What it updates in other containers.
        refused: Why the request failed; empty if it did not.
    """

    request: str
    about: str
    adjustment: JsonObject = {}
    updates: tuple[TriedUpdate, ...] = ()
    refused: str = ""


@dataclass(eq=False)
class NotManifests(InputError):
    """The file is a scenario, whose steps are those of the resource policy."""

    def __str__(self) -> str:
        return "a scenario is for `nri-resmgr simulate`; expected Kubernetes manifests"


@dataclass(eq=False)
class PluginGone(Exception):
    """The runtime has lost the plugin during a request."""

    request: str
    about: str


class Trial:
    """Runs the pods of manifests, and stops them.

    Args:
        runtime: A started runtime, with the plugin.
        plugin: ``NN-name``.

    Attributes:
        outcomes: What the plugin made of each request, in order.
    """

    def __init__(self, runtime: Runtime, plugin: str) -> None:
        self.outcomes: list[Outcome] = []
        self._runtime = runtime
        self._plugin = plugin
        self._titles: dict[str, str] = {}  # of containers, by their ids
        self._pods: dict[str, str] = {}  # the ids of those that run, by their titles
        self._capacity = memory_total(HostTree(), "/proc/meminfo")
        self._ignored = 0

    async def run_pods(self, workload: Scenario) -> None:
        """Run all pods with their containers; a refused one is left out.

        Raises:
            NotManifests: The workload has other steps.
            BadSetting: Two pods have the same name.
            PluginGone: The plugin has ended, or was too late.
        """
        for step in workload.steps:
            if not isinstance(step, RunPods):
                raise NotManifests
            for name in step.pod_names:
                await self._run_pod(step, name)

    async def stop_pods(self) -> None:
        """Stop and remove the pods, in the order in which they began.

        Raises:
            PluginGone: The plugin has ended, or was too late.
        """
        for title, pod in self._pods.items():
            for one in self._runtime.world.containers_of(pod):
                await self._stop(one.id)
            await self._runtime.stop_pod(pod)
            self._check("StopPodSandbox", title)
            await self._runtime.remove_pod(pod)
            self._check("RemovePodSandbox", title)
        self._pods.clear()

    def note_own_updates(self) -> None:
        """Add the updates that the plugin has sent by itself, as the last outcomes."""
        for record in self._runtime.records:
            body = record.body
            if record.sender is Sender.PLUGIN and isinstance(
                body, nri_pb2.UpdateContainersRequest
            ):
                updates = self._updates(map(from_message, body.update))
                self.outcomes.append(Outcome(record.method, "", updates=updates))

    async def _run_pod(self, step: RunPods, name: str) -> None:
        title = f"{step.namespace}/{name}"
        if title in self._pods:
            raise BadSetting(title, "two pods have this name")
        row = next(iter(step.containers.values()))
        pod = msgspec.structs.replace(pod_of(name, row), id=_id_of(title))
        try:
            await self._runtime.run_pod(pod)
        except RuntimeRefusal as refusal:
            self._refused("RunPodSandbox", title, refusal)
            return
        self._check("RunPodSandbox", title)
        self._pods[title] = pod.id
        for container in step.containers:
            key = await self._create(step, title, container)
            if key and container in step.once:
                await self._stop(key)

    async def _create(self, step: RunPods, pod: str, name: str) -> str:
        """Create and start a container; return its id, empty if it was refused."""
        title = f"{pod}/{name}"
        row = msgspec.structs.replace(step.containers[name], name=name)
        key = _id_of(title)
        self._titles[key] = title
        container = container_of(key, row, Bytes(self._capacity))
        request = "CreateContainer"
        try:
            created = await self._runtime.create_container(self._pods[pod], container)
            self._check(request, title)
            self._note(request, title, created.adjustment, created.updates)
            request = "StartContainer"
            await self._runtime.start_container(key)
        except RuntimeRefusal as refusal:
            self._refused(request, title, refusal)
            return ""
        self._check(request, title)
        return key

    async def _stop(self, key: str) -> None:
        title = self._titles[key]
        stopped = await self._runtime.stop_container(key)
        self._check("StopContainer", title)
        if stopped.updates:
            self._note("StopContainer", title, _NO_CHANGE, stopped.updates)
        await self._runtime.remove_container(key)
        self._check("RemoveContainer", title)

    def _note(
        self,
        request: str,
        about: str,
        adjustment: ContainerAdjustment,
        updates: Iterable[ContainerUpdate],
    ) -> None:
        found = self._updates(updates)
        self.outcomes.append(Outcome(request, about, as_plain(adjustment), found))

    def _updates(self, updates: Iterable[ContainerUpdate]) -> tuple[TriedUpdate, ...]:
        return tuple(
            TriedUpdate(
                self._titles.get(one.container_id, one.container_id),
                as_plain(one.linux.resources)
                if one.linux and one.linux.resources
                else {},
            )
            for one in updates
        )

    def _check(self, request: str, about: str) -> None:
        """Add the errors that a real runtime only logs; notice the plugin's end."""
        for refusal in self._runtime.ignored[self._ignored :]:
            self._refused(request, about, refusal)
        if self._plugin not in self._runtime.plugins:
            raise PluginGone(request, about)

    def _refused(self, request: str, about: str, refusal: RuntimeRefusal) -> None:
        why = str(refusal)
        if isinstance(refusal, PluginRefused):
            request, why = refusal.method, refusal.message
        self._ignored = len(self._runtime.ignored)
        self.outcomes.append(Outcome(request, about, refused=why))


def _id_of(title: str) -> str:
    """Return an id as runtimes have them, the same in every trial."""
    return sha256_of(title.encode())
