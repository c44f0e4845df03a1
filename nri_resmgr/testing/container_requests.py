"""What a kubelet asks of the runtime about containers."""

from __future__ import annotations

from collections.abc import Sequence

from nri_proto import Event, nri_pb2
from nri_resmgr.stub.convert import to_message
from nri_resmgr.stub.model import Container, LinuxResources
from nri_resmgr.testing.errors import RuntimeRefusal
from nri_resmgr.testing.merge import apply_adjustment
from nri_resmgr.testing.node import Node
from nri_resmgr.testing.results import CreateResult, UpdateResult, value_of, values_of
from nri_resmgr.testing.rounds import (
    ask_creation,
    ask_stop,
    ask_update,
    tell_all,
)


class ContainerRequests(Node):
    """Requests about containers; each takes its plugins' say into account."""

    async def create_container(self, pod_id: str, container: Container) -> CreateResult:
        """Create a container in a pod; id and name are filled in if empty."""
        pod = self.world.pods[pod_id]
        message = self.world.new_container(pod, to_message(container))
        async with self._events() as plugins:
            try:
                merge = await ask_creation(plugins, pod, message, self.profile.level)
                self.apply(merge.updates, must_work=self.profile.is_crio)
            except RuntimeRefusal:
                # Source: containerd undoes, CRI-O does not when a plugin failed.
                if not self.profile.is_crio:
                    await self._stop(pod, message)
                    await self._tell(Event.REMOVE_CONTAINER, pod, message)
                raise
            apply_adjustment(merge.adjustment, message)
            self.world.created(message)
            await self._tell(Event.POST_CREATE_CONTAINER, pod, message)
        return CreateResult(
            value_of(message),
            value_of(merge.adjustment),
            values_of(merge.updates),
            value_of(merge.owners.message()),
        )

    async def start_container(self, container_id: str) -> Container:
        """Start a container; on containerd a plugin's error stops that."""
        container = self.world.containers[container_id]
        pod = self.world.pods[container.pod_sandbox_id]
        async with self._events() as plugins:
            self.world.starting(container)
            try:
                await tell_all(plugins, Event.START_CONTAINER, pod, container)
            except RuntimeRefusal as refusal:
                if not self.profile.is_crio:
                    self.world.stopped(container)
                    raise
                self.ignored.append(refusal)
            self.world.started(container)
            await self._tell(Event.POST_START_CONTAINER, pod, container)
        started: Container = value_of(container)
        return started

    async def update_container(
        self, container_id: str, resources: LinuxResources
    ) -> UpdateResult:
        """Update a container's resources, as plugins may change that."""
        container = self.world.containers[container_id]
        pod = self.world.pods[container.pod_sandbox_id]
        async with self._events() as plugins:
            merge = await ask_update(plugins, pod, container, to_message(resources))
            others = [
                item for item in merge.updates if item.container_id != container_id
            ]
            self.apply(others, must_work=self.profile.is_crio)
            self.world.update(container_id, merge.requested, all_fields=False)
            await self._tell(Event.POST_UPDATE_CONTAINER, pod, container)
        return UpdateResult(value_of(container), values_of(merge.updates))

    async def stop_container(self, container_id: str) -> UpdateResult:
        """Stop a container; a plugin's error does not hold that up."""
        container = self.world.containers[container_id]
        pod = self.world.pods[container.pod_sandbox_id]
        async with self._events():
            self.world.stopped(container)
            updates = await self._stop(pod, container)
        return UpdateResult(value_of(container), values_of(updates))

    async def remove_container(self, container_id: str) -> None:
        """Remove a container, stopping it first where that is due."""
        container = self.world.containers[container_id]
        pod = self.world.pods[container.pod_sandbox_id]
        if container.state != nri_pb2.CONTAINER_STOPPED:
            await self.stop_container(container_id)
        async with self._events():
            await self._tell(Event.REMOVE_CONTAINER, pod, container)
            del self.world.containers[container_id]

    async def _stop(
        self, pod: nri_pb2.PodSandbox, container: nri_pb2.Container
    ) -> Sequence[nri_pb2.ContainerUpdate]:
        try:
            merge = await ask_stop(tuple(self.roster.plugins), pod, container)
        except RuntimeRefusal as refusal:
            self.ignored.append(refusal)
            return ()
        self.apply(merge.updates, must_work=False)
        return merge.updates
