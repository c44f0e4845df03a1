"""A small typed CRI client: the calls of the kubelet that tests make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypeVar

import grpc
from google.protobuf.message import Message

from tests.real_host._gen import cri_pb2 as pb
from tests.real_host.patience import patience

_Reply = TypeVar("_Reply", bound=Message)

_OPTIONS = (
    # After a restart of containerd the next call must not wait for a back-off.
    ("grpc.initial_reconnect_backoff_ms", 20),
    ("grpc.min_reconnect_backoff_ms", 20),
    ("grpc.max_reconnect_backoff_ms", 100),
)


@dataclass(eq=False)
class CallFailed(Exception):
    """The runtime refused a call.

    Attributes:
        method: The CRI method.
        code: gRPC status in upper case: ``UNKNOWN``, ``NOT_FOUND``,
            ``UNAVAILABLE``.
        details: The runtime's words; they include an NRI plugin's error.
    """

    method: str
    code: str
    details: str

    def __str__(self) -> str:
        return f"{self.method}: {self.code}: {self.details}"


@dataclass(eq=False)
class CommandFailed(Exception):
    """A command inside a container did not exit with 0."""

    command: tuple[str, ...]
    exit_code: int
    stderr: str

    def __str__(self) -> str:
        return f"{' '.join(self.command)}: exit {self.exit_code}: {self.stderr.strip()}"


class CriClient:
    """One connection to a CRI socket; a method per call, ids in and out."""

    def __init__(self, socket: Path, *, deadline: float = 30.0) -> None:
        self._channel = grpc.insecure_channel(f"unix:{socket}", options=_OPTIONS)
        self._deadline = patience(deadline)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Drop the connection; open calls fail."""
        self._channel.close()

    def version(self) -> str:
        """Name and version of the runtime: ``containerd 1.7.24~ds1``."""
        reply = self._call("Version", pb.VersionRequest(), pb.VersionResponse)
        return f"{reply.runtime_name} {reply.runtime_version}"

    def run_pod_sandbox(self, config: pb.PodSandboxConfig, handler: str = "") -> str:
        """Start a pod's sandbox and return its id."""
        request = pb.RunPodSandboxRequest(config=config, runtime_handler=handler)
        reply = self._call("RunPodSandbox", request, pb.RunPodSandboxResponse)
        return reply.pod_sandbox_id

    def stop_pod_sandbox(self, pod: str) -> None:
        """Stop a pod with all its containers; stopping twice is fine."""
        request = pb.StopPodSandboxRequest(pod_sandbox_id=pod)
        self._call("StopPodSandbox", request, pb.StopPodSandboxResponse)

    def remove_pod_sandbox(self, pod: str) -> None:
        """Delete a pod with all its containers; removing twice is fine."""
        request = pb.RemovePodSandboxRequest(pod_sandbox_id=pod)
        self._call("RemovePodSandbox", request, pb.RemovePodSandboxResponse)

    def pod_sandboxes(self) -> Sequence[pb.PodSandbox]:
        """All pods, stopped ones included."""
        request = pb.ListPodSandboxRequest()
        return self._call("ListPodSandbox", request, pb.ListPodSandboxResponse).items

    def create_container(
        self, pod: str, config: pb.ContainerConfig, sandbox: pb.PodSandboxConfig
    ) -> str:
        """Create a container without starting it and return its id."""
        request = pb.CreateContainerRequest(
            pod_sandbox_id=pod, config=config, sandbox_config=sandbox
        )
        reply = self._call("CreateContainer", request, pb.CreateContainerResponse)
        return reply.container_id

    def start_container(self, container: str) -> None:
        """Start a created container."""
        request = pb.StartContainerRequest(container_id=container)
        self._call("StartContainer", request, pb.StartContainerResponse)

    def stop_container(self, container: str, timeout: int = 0) -> None:
        """Stop a container, by SIGKILL after *timeout* seconds."""
        request = pb.StopContainerRequest(container_id=container, timeout=timeout)
        self._call("StopContainer", request, pb.StopContainerResponse)

    def remove_container(self, container: str) -> None:
        """Delete a container; a running one is stopped first."""
        request = pb.RemoveContainerRequest(container_id=container)
        self._call("RemoveContainer", request, pb.RemoveContainerResponse)

    def containers(self) -> Sequence[pb.Container]:
        """All containers, exited ones included."""
        request = pb.ListContainersRequest()
        reply = self._call("ListContainers", request, pb.ListContainersResponse)
        return reply.containers

    def update_container_resources(
        self, container: str, resources: pb.LinuxContainerResources
    ) -> None:
        """Change a container's resources, as the kubelet's resize does."""
        request = pb.UpdateContainerResourcesRequest(
            container_id=container, linux=resources
        )
        self._call(
            "UpdateContainerResources", request, pb.UpdateContainerResourcesResponse
        )

    def exec_sync(self, container: str, command: Sequence[str]) -> str:
        """Run *command* in a container and return what it printed.

        Raises:
            CommandFailed: It exited with another code than 0.
        """
        request = pb.ExecSyncRequest(container_id=container, cmd=command)
        reply = self._call("ExecSync", request, pb.ExecSyncResponse)
        if reply.exit_code:
            stderr = reply.stderr.decode(errors="replace")
            raise CommandFailed(tuple(command), reply.exit_code, stderr)
        return reply.stdout.decode()

    def image_tags(self) -> frozenset[str]:
        """Names of the images that the runtime has."""
        reply = self._call(
            "ListImages", pb.ListImagesRequest(), pb.ListImagesResponse, "ImageService"
        )
        return frozenset(tag for image in reply.images for tag in image.repo_tags)

    def _call(
        self,
        method: str,
        request: Message,
        reply: type[_Reply],
        service: str = "RuntimeService",
    ) -> _Reply:
        call = self._channel.unary_unary(
            f"/runtime.v1.{service}/{method}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=reply.FromString,
        )
        try:
            answer: _Reply = call(request, timeout=self._deadline)
        except grpc.RpcError as error:
            raise CallFailed(method, error.code().name, error.details()) from None
        return answer
