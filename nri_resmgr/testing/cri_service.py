"""Requests about pods and containers, as a kubelet makes them by CRI."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import msgspec

from nri_proto import Event, nri_pb2
from nri_resmgr.stub.adjustment import ContainerAdjustment
from nri_resmgr.stub.convert import from_message, to_message
from nri_resmgr.stub.model import Container, LinuxResources, OwningPlugins, Pod
from nri_resmgr.stub.update import ContainerUpdate
from nri_resmgr.testing.default_validator import check_required
from nri_resmgr.testing.errors import ErrorReply, RuntimeRefusal, UpdatesFailed
from nri_resmgr.testing.merge import apply_adjustment
from nri_resmgr.testing.plugin import ConnectedPlugin, Roster
from nri_resmgr.testing.profile import Profile
from nri_resmgr.testing.rounds import (
    collect_adjustments,
    collect_changes,
    collect_updates,
    notify_all,
    send_pod_update,
)
from nri_resmgr.testing.world import World

_EMPTY: Final = LinuxResources()


class CreateResult(msgspec.Struct, frozen=True):
    """The result of creating a container.

    Attributes:
        container: The container with its adjustments.
        adjustment: The adjustments of all plugins, merged.
        updates: The updates of other containers, merged; they are already applied.
        owners: The plugin that set each field.
    """

    container: Container
    adjustment: ContainerAdjustment
    updates: tuple[ContainerUpdate, ...]
    owners: OwningPlugins


class UpdateResult(msgspec.Struct, frozen=True):
    """The result of updating or stopping a container.

    Attributes:
        container: The container in its present state.
        updates: The updates of all plugins, merged; those of other containers first.
    """

    container: Container
    updates: tuple[ContainerUpdate, ...]


class CriService:
    """Serves requests about pods and containers, and calls the plugins for each.

    Requests raise `RuntimeRefusal` if a plugin fails them, or plugins conflict. Some
    events cannot fail a request on the emulated runtime; errors of plugins for those go
    to `ignored`.

    Attributes:
        world: The pods and containers; tests may read and prepare them.
        ignored: Failures that the runtime would only log.
        unupdatable: Ids of containers whose updates fail.
        profile: The emulated runtime.
        roster: Its plugins.
        lock: Held during each event, like the lock of Go's adaptation.
    """

    def __init__(self, profile: Profile) -> None:
        self.world = World()
        self.ignored: list[RuntimeRefusal] = []
        self.unupdatable: set[str] = set()
        self.profile = profile
        self.roster = Roster()
        self.lock = asyncio.Lock()

    @property
    def pods(self) -> tuple[Pod, ...]:
        """All pods."""
        return tuple(from_message(pod) for pod in self.world.pods.values())

    @property
    def containers(self) -> tuple[Container, ...]:
        """All containers, including exited ones."""
        return tuple(from_message(item) for item in self.world.containers.values())

    def container(self, container_id: str) -> Container:
        """Return a container in its present state.

        Raises:
            KeyError: There is no such container.
        """
        return from_message(self.world.containers[container_id])

    async def serve_updates(self, updates: Sequence[nri_pb2.ContainerUpdate]) -> None:
        """Apply unsolicited updates of a plugin, after the current event.

        Raises:
            ErrorReply: Some failed; runtimes do not report to the plugin which ones.
        """
        async with self.lock:
            try:
                self.apply(updates, must_work=True)
            except UpdatesFailed as error:
                raise ErrorReply(str(error)) from error

    async def run_pod(self, pod: Pod) -> Pod:
        """Run a pod sandbox; empty id, uid, name and namespace are generated.

        Raises:
            RuntimeRefusal: A plugin failed the request; the sandbox is removed again.
        """
        message = self.world.new_pod(to_message(pod))
        async with self._events() as plugins:
            try:
                await notify_all(plugins, Event.RUN_POD_SANDBOX, message)
            except RuntimeRefusal:
                await self._notify(Event.STOP_POD_SANDBOX, message)
                await self._notify(Event.REMOVE_POD_SANDBOX, message)
                raise
            self.world.pods[message.id] = message
        return from_message(message)

    async def update_pod(
        self,
        pod_id: str,
        *,
        overhead: LinuxResources = _EMPTY,
        resources: LinuxResources = _EMPTY,
    ) -> None:
        """Update the resources of a sandbox; the values of the pod do not change."""
        pod = self.world.pods[pod_id]
        request = nri_pb2.UpdatePodSandboxRequest(
            pod=pod,
            overhead_linux_resources=to_message(overhead),
            linux_resources=to_message(resources),
        )
        async with self._events() as plugins:
            await send_pod_update(plugins, request)
            await self._notify(Event.POST_UPDATE_POD_SANDBOX, pod)

    async def stop_pod(self, pod_id: str) -> None:
        """Stop the containers of a pod, then its sandbox."""
        pod = self.world.pods[pod_id]
        for container in self.world.containers_of(pod_id):
            if container.state != nri_pb2.CONTAINER_STOPPED:
                await self.stop_container(container.id)
        async with self._events() as plugins:
            try:
                await notify_all(plugins, Event.STOP_POD_SANDBOX, pod)
            except RuntimeRefusal as refusal:
                if self.profile.is_crio:
                    raise
                self.ignored.append(refusal)

    async def remove_pod(self, pod_id: str) -> None:
        """Remove the containers of a pod, then its sandbox."""
        for container in self.world.containers_of(pod_id):
            await self.remove_container(container.id)
        async with self._events():
            pod = self.world.pods.pop(pod_id)
            await self._notify(Event.REMOVE_POD_SANDBOX, pod)

    async def create_container(self, pod_id: str, container: Container) -> CreateResult:
        """Create a container in a pod; empty id and name are generated."""
        pod = self.world.pods[pod_id]
        message = self.world.new_container(pod, to_message(container))
        async with self._events() as plugins:
            try:
                merge = await collect_adjustments(
                    plugins, pod, message, self.profile.level
                )
                if validator := self.profile.validator:
                    present = {name for one in plugins for name in (one.base, one.name)}
                    check_required(validator, present, pod, message)
                self.apply(merge.updates, must_work=self.profile.is_crio)
            except RuntimeRefusal:
                # containerd removes the container if a plugin failed, CRI-O does not.
                if not self.profile.is_crio:
                    await self._stop(pod, message)
                    await self._notify(Event.REMOVE_CONTAINER, pod, message)
                raise
            apply_adjustment(merge.adjustment, message)
            self.world.created(message)
            await self._notify(Event.POST_CREATE_CONTAINER, pod, message)
        return CreateResult(
            from_message(message),
            from_message(merge.adjustment),
            tuple(map(from_message, merge.updates)),
            from_message(merge.owners.message()),
        )

    async def start_container(self, container_id: str) -> Container:
        """Start a container; on containerd an error of a plugin prevents that."""
        container = self.world.containers[container_id]
        pod = self.world.pods[container.pod_sandbox_id]
        async with self._events() as plugins:
            self.world.starting(container)
            try:
                await notify_all(plugins, Event.START_CONTAINER, pod, container)
            except RuntimeRefusal as refusal:
                if not self.profile.is_crio:
                    self.world.stopped(container)
                    raise
                self.ignored.append(refusal)
            self.world.started(container)
            await self._notify(Event.POST_START_CONTAINER, pod, container)
        return from_message(container)

    async def update_container(
        self, container_id: str, resources: LinuxResources
    ) -> UpdateResult:
        """Update a container's resources, after plugins may have changed them.

        Raises:
            RuntimeRefusal: A plugin failed the request, plugins conflict, or the
                container cannot be updated. In the last case updates of other
                containers stay.
        """
        container = self.world.containers[container_id]
        pod = self.world.pods[container.pod_sandbox_id]
        async with self._events() as plugins:
            merge = await collect_changes(
                plugins, pod, container, to_message(resources), self.profile.level
            )
            others = [
                item for item in merge.updates if item.container_id != container_id
            ]
            self.apply(others, must_work=self.profile.is_crio)
            if container_id in self.unupdatable:
                raise UpdatesFailed((container_id,))
            self.world.update(container_id, merge.applied, all_fields=False)
            await self._notify(Event.POST_UPDATE_CONTAINER, pod, container)
        return UpdateResult(
            from_message(container), tuple(map(from_message, merge.updates))
        )

    async def stop_container(self, container_id: str) -> UpdateResult:
        """Stop a container; an error of a plugin does not prevent that."""
        container = self.world.containers[container_id]
        pod = self.world.pods[container.pod_sandbox_id]
        async with self._events():
            self.world.stopped(container)
            updates = await self._stop(pod, container)
        return UpdateResult(from_message(container), tuple(map(from_message, updates)))

    async def remove_container(self, container_id: str) -> None:
        """Remove a container, after stopping it if it runs."""
        container = self.world.containers[container_id]
        pod = self.world.pods[container.pod_sandbox_id]
        if container.state != nri_pb2.CONTAINER_STOPPED:
            await self.stop_container(container_id)
        async with self._events():
            await self._notify(Event.REMOVE_CONTAINER, pod, container)
            del self.world.containers[container_id]

    @asynccontextmanager
    async def _events(self) -> AsyncIterator[Sequence[ConnectedPlugin]]:
        async with self.lock:
            self.roster.drop_closed()
            try:
                yield tuple(self.roster.plugins)
            finally:
                self.roster.drop_closed()

    async def _notify(
        self,
        event: Event,
        pod: nri_pb2.PodSandbox,
        container: nri_pb2.Container | None = None,
    ) -> None:
        try:
            await notify_all(tuple(self.roster.plugins), event, pod, container)
        except RuntimeRefusal as refusal:
            self.ignored.append(refusal)

    def apply(
        self, updates: Sequence[nri_pb2.ContainerUpdate], *, must_work: bool
    ) -> None:
        """Apply updates to the world.

        Raises:
            UpdatesFailed: Some failed and *must_work* is set.
        """
        failed = []
        for update in updates:
            if update.container_id not in self.unupdatable:
                self.world.update(
                    update.container_id,
                    update.linux.resources,
                    all_fields=self.profile.is_crio,
                )
            elif not update.ignore_failure:
                failed.append(update.container_id)
        if not failed:
            return
        failure = UpdatesFailed(tuple(failed))
        if must_work:
            raise failure
        self.ignored.append(failure)

    async def _stop(
        self, pod: nri_pb2.PodSandbox, container: nri_pb2.Container
    ) -> Sequence[nri_pb2.ContainerUpdate]:
        try:
            plugins = tuple(self.roster.plugins)
            level = self.profile.level
            merge = await collect_updates(plugins, pod, container, level)
        except RuntimeRefusal as refusal:
            self.ignored.append(refusal)
            return ()
        self.apply(merge.updates, must_work=False)
        return merge.updates
