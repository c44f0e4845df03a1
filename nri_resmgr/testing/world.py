"""The pods and containers of the test runtime."""

from __future__ import annotations

import itertools
from typing import Final

from nri_proto import nri_pb2
from nri_resmgr.testing.merge.applying import apply_resources, overlay_resources

# Time starts here, and each step takes one second, so that tests are repeatable.
_START: Final = 1_700_000_000_000_000_000
_SECOND: Final = 1_000_000_000
_FIRST_PID: Final = 1000

_SEEN_BY_PLUGINS: Final = frozenset(
    {
        nri_pb2.CONTAINER_CREATED,
        nri_pb2.CONTAINER_RUNNING,
        nri_pb2.CONTAINER_PAUSED,
    }
)


class World:
    """Pods and containers by id; ids, times and pids are the same in every run.

    Messages that are passed in are copied. Returned messages are not copies: only the
    runtime may use them.
    """

    def __init__(self) -> None:
        self.pods: dict[str, nri_pb2.PodSandbox] = {}
        self.containers: dict[str, nri_pb2.Container] = {}
        self._pod_numbers = itertools.count()
        self._container_numbers = itertools.count()
        self._times = itertools.count(_START + _SECOND, _SECOND)
        self._pids = itertools.count(_FIRST_PID + 1)

    def new_pod(self, wanted: nri_pb2.PodSandbox) -> nri_pb2.PodSandbox:
        """Copy a pod and generate what it lacks: id, uid, name, namespace, pid."""
        pod = nri_pb2.PodSandbox()
        pod.CopyFrom(wanted)
        number = next(self._pod_numbers)
        pod.id = pod.id or f"pod{number}"
        pod.uid = pod.uid or f"uid{number}"
        pod.name = pod.name or pod.id
        pod.namespace = pod.namespace or "default"
        pod.pid = pod.pid or next(self._pids)
        pod.linux.SetInParent()  # always present
        return pod

    def new_container(
        self, pod: nri_pb2.PodSandbox, wanted: nri_pb2.Container
    ) -> nri_pb2.Container:
        """Copy a container and generate id and name if it lacks them."""
        container = nri_pb2.Container()
        container.CopyFrom(wanted)
        number = next(self._container_numbers)
        container.id = container.id or f"ctr{number}"
        container.name = container.name or container.id
        container.pod_sandbox_id = pod.id
        container.state = nri_pb2.CONTAINER_UNKNOWN
        container.linux.resources.SetInParent()  # always present
        return container

    def created(self, container: nri_pb2.Container) -> None:
        """Store a created container."""
        container.state = nri_pb2.CONTAINER_CREATED
        container.created_at = next(self._times)
        self.containers[container.id] = container

    def started(self, container: nri_pb2.Container) -> None:
        """Record that its process runs."""
        container.state = nri_pb2.CONTAINER_RUNNING
        container.started_at = next(self._times)

    def starting(self, container: nri_pb2.Container) -> None:
        """Record its process, which exists before it runs."""
        container.pid = next(self._pids)

    def stopped(self, container: nri_pb2.Container) -> None:
        """Record that its process has ended."""
        container.state = nri_pb2.CONTAINER_STOPPED
        container.finished_at = next(self._times)
        container.pid = 0

    def snapshot(
        self,
    ) -> tuple[list[nri_pb2.PodSandbox], list[nri_pb2.Container]]:
        """Return what Synchronize sends: pods, and containers that have not exited."""
        containers = [
            container
            for container in self.containers.values()
            if container.state in _SEEN_BY_PLUGINS
        ]
        return list(self.pods.values()), containers

    def containers_of(self, pod_id: str) -> list[nri_pb2.Container]:
        """Return the containers of a pod, in order of creation."""
        return [
            container
            for container in self.containers.values()
            if container.pod_sandbox_id == pod_id
        ]

    def update(
        self, container_id: str, changes: nri_pb2.LinuxResources, *, all_fields: bool
    ) -> None:
        """Apply an update; an unknown id is ignored, as real runtimes do."""
        if (container := self.containers.get(container_id)) is not None:
            apply = overlay_resources if all_fields else apply_resources
            apply(changes, container.linux.resources)
