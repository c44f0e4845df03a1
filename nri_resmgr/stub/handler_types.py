"""A protocol for each handler, from which a plugin's class may inherit.

An editor then completes the handler's definition. A type checker reports a wrong
argument or result, and a handler that is missing because its name is misspelled;
Python itself refuses to make such a plugin. The stub takes the arguments and the
results of each handler from here.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Iterable, Mapping
from types import MappingProxyType
from typing import Final, Protocol, TypeAlias

from nri_resmgr.stub.adjustment import ContainerAdjustment
from nri_resmgr.stub.model import Container, LinuxResources, Pod
from nri_resmgr.stub.replies import CreateReply, UpdateReply
from nri_resmgr.stub.routes import Validation
from nri_resmgr.stub.runtime_info import Configuration
from nri_resmgr.stub.update import ContainerUpdate

# Handlers may be coroutines.
_Nothing: TypeAlias = Awaitable[None] | None
_Updates: TypeAlias = ContainerUpdate | Iterable[ContainerUpdate] | None
_Creation: TypeAlias = ContainerAdjustment | CreateReply | None
_Change: TypeAlias = UpdateReply | _Updates


class ConfigureHandler(Protocol):
    """A plugin with the handler `configure`."""

    @abstractmethod
    def configure(
        self, configuration: Configuration
    ) -> Awaitable[int | None] | int | None:
        """Apply the configuration; may return a mask of events to subscribe to."""


class SynchronizeHandler(Protocol):
    """A plugin with the handler `synchronize`."""

    @abstractmethod
    def synchronize(
        self, pods: tuple[Pod, ...], containers: tuple[Container, ...]
    ) -> _Updates | Awaitable[_Updates]:
        """Receive what runs already; return updates of it."""


class ShutdownHandler(Protocol):
    """A plugin with the handler `shutdown`."""

    @abstractmethod
    def shutdown(self) -> _Nothing:
        """Note that the runtime shuts the plugin down."""


class RunPodSandboxHandler(Protocol):
    """A plugin with the handler `run_pod_sandbox`."""

    @abstractmethod
    def run_pod_sandbox(self, pod: Pod) -> _Nothing:
        """Note that a pod starts."""


class UpdatePodSandboxHandler(Protocol):
    """A plugin with the handler `update_pod_sandbox`."""

    @abstractmethod
    def update_pod_sandbox(
        self, pod: Pod, overhead: LinuxResources, resources: LinuxResources
    ) -> _Nothing:
        """Note that a pod's resources are about to change."""


class PostUpdatePodSandboxHandler(Protocol):
    """A plugin with the handler `post_update_pod_sandbox`."""

    @abstractmethod
    def post_update_pod_sandbox(self, pod: Pod) -> _Nothing:
        """Note that a pod's resources have changed."""


class StopPodSandboxHandler(Protocol):
    """A plugin with the handler `stop_pod_sandbox`."""

    @abstractmethod
    def stop_pod_sandbox(self, pod: Pod) -> _Nothing:
        """Note that a pod stops."""


class RemovePodSandboxHandler(Protocol):
    """A plugin with the handler `remove_pod_sandbox`."""

    @abstractmethod
    def remove_pod_sandbox(self, pod: Pod) -> _Nothing:
        """Note that a pod is removed."""


class CreateContainerHandler(Protocol):
    """A plugin with the handler `create_container`."""

    @abstractmethod
    def create_container(
        self, pod: Pod, container: Container
    ) -> _Creation | Awaitable[_Creation]:
        """Return the changes to a container being created."""


class PostCreateContainerHandler(Protocol):
    """A plugin with the handler `post_create_container`."""

    @abstractmethod
    def post_create_container(self, pod: Pod, container: Container) -> _Nothing:
        """Note that a container was created."""


class StartContainerHandler(Protocol):
    """A plugin with the handler `start_container`."""

    @abstractmethod
    def start_container(self, pod: Pod, container: Container) -> _Nothing:
        """Note that a container is about to start."""


class PostStartContainerHandler(Protocol):
    """A plugin with the handler `post_start_container`."""

    @abstractmethod
    def post_start_container(self, pod: Pod, container: Container) -> _Nothing:
        """Note that a container has started."""


class UpdateContainerHandler(Protocol):
    """A plugin with the handler `update_container`."""

    @abstractmethod
    def update_container(
        self, pod: Pod, container: Container, resources: LinuxResources
    ) -> _Change | Awaitable[_Change]:
        """Return changes to a requested update, and other updates."""


class PostUpdateContainerHandler(Protocol):
    """A plugin with the handler `post_update_container`."""

    @abstractmethod
    def post_update_container(self, pod: Pod, container: Container) -> _Nothing:
        """Note that a container was updated."""


class StopContainerHandler(Protocol):
    """A plugin with the handler `stop_container`."""

    @abstractmethod
    def stop_container(
        self, pod: Pod, container: Container
    ) -> _Updates | Awaitable[_Updates]:
        """Return updates of other containers when one stops."""


class RemoveContainerHandler(Protocol):
    """A plugin with the handler `remove_container`."""

    @abstractmethod
    def remove_container(self, pod: Pod, container: Container) -> _Nothing:
        """Note that a container is removed."""


class ValidateContainerAdjustmentHandler(Protocol):
    """A plugin with the handler `validate_container_adjustment`."""

    @abstractmethod
    def validate_container_adjustment(self, validation: Validation) -> _Nothing:
        """Raise an exception to reject the combined changes to a container."""


HANDLER_TYPES: Final[Mapping[str, type]] = MappingProxyType(
    {
        "configure": ConfigureHandler,
        "synchronize": SynchronizeHandler,
        "shutdown": ShutdownHandler,
        "run_pod_sandbox": RunPodSandboxHandler,
        "update_pod_sandbox": UpdatePodSandboxHandler,
        "post_update_pod_sandbox": PostUpdatePodSandboxHandler,
        "stop_pod_sandbox": StopPodSandboxHandler,
        "remove_pod_sandbox": RemovePodSandboxHandler,
        "create_container": CreateContainerHandler,
        "post_create_container": PostCreateContainerHandler,
        "start_container": StartContainerHandler,
        "post_start_container": PostStartContainerHandler,
        "update_container": UpdateContainerHandler,
        "post_update_container": PostUpdateContainerHandler,
        "stop_container": StopContainerHandler,
        "remove_container": RemoveContainerHandler,
        "validate_container_adjustment": ValidateContainerAdjustmentHandler,
    }
)
