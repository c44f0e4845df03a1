"""What a kubelet asks of the runtime about pods."""

from __future__ import annotations

from typing import Final

from nri_proto import Event, nri_pb2
from nri_resmgr.stub.convert import to_message
from nri_resmgr.stub.model import LinuxResources, Pod
from nri_resmgr.testing.container_requests import ContainerRequests
from nri_resmgr.testing.errors import RuntimeRefusal
from nri_resmgr.testing.results import value_of
from nri_resmgr.testing.rounds import (
    ask_pod_update,
    tell_all,
)

_EMPTY: Final = LinuxResources()


class PodRequests(ContainerRequests):
    """Requests about pods, which take their containers along."""

    async def run_pod(self, pod: Pod) -> Pod:
        """Run a sandbox; id, uid, name and namespace are filled in if empty."""
        message = self.world.new_pod(to_message(pod))
        async with self._events() as plugins:
            try:
                await tell_all(plugins, Event.RUN_POD_SANDBOX, message)
            except RuntimeRefusal:
                await self._tell(Event.STOP_POD_SANDBOX, message)
                await self._tell(Event.REMOVE_POD_SANDBOX, message)
                raise
            self.world.pods[message.id] = message
        running: Pod = value_of(message)
        return running

    async def update_pod(
        self,
        pod_id: str,
        *,
        overhead: LinuxResources = _EMPTY,
        resources: LinuxResources = _EMPTY,
    ) -> None:
        """Update a sandbox's resources; what the pod says stays as it is."""
        pod = self.world.pods[pod_id]
        request = nri_pb2.UpdatePodSandboxRequest(
            pod=pod,
            overhead_linux_resources=to_message(overhead),
            linux_resources=to_message(resources),
        )
        async with self._events() as plugins:
            await ask_pod_update(plugins, request)
            await self._tell(Event.POST_UPDATE_POD_SANDBOX, pod)

    async def stop_pod(self, pod_id: str) -> None:
        """Stop the containers of a pod, then its sandbox."""
        pod = self.world.pods[pod_id]
        for container in self.world.containers_of(pod_id):
            if container.state != nri_pb2.CONTAINER_STOPPED:
                await self.stop_container(container.id)
        async with self._events() as plugins:
            try:
                await tell_all(plugins, Event.STOP_POD_SANDBOX, pod)
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
            await self._tell(Event.REMOVE_POD_SANDBOX, pod)
