"""The route of each event: its handler's arguments and the encoding of its reply."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeAlias

import msgspec
from google.protobuf.message import Message

from nri_proto import STATE_CHANGES, Event, nri_pb2
from nri_resmgr.stub.adjustment import ContainerAdjustment
from nri_resmgr.stub.convert import from_message
from nri_resmgr.stub.model import Container, OwningPlugins, PluginInstance, Pod
from nri_resmgr.stub.replies import create_response, stop_response, update_response
from nri_resmgr.stub.update import ContainerUpdate
from nri_resmgr.values.printable import printable

# Each route has its own type of request message, known from the method only: Any.
Arguments: TypeAlias = Callable[[Any], tuple[object, ...]]
Encoder: TypeAlias = Callable[[object, Any], Message | None]


class _PodRequest(Protocol):
    """Any request message about a pod."""

    @property
    def pod(self) -> nri_pb2.PodSandbox: ...


class _ContainerRequest(_PodRequest, Protocol):
    """Any request message about a container."""

    @property
    def container(self) -> nri_pb2.Container: ...


class Validation(msgspec.Struct, frozen=True):
    """The argument of a ``validate_container_adjustment`` handler.

    Attributes:
        pod: The pod of the container.
        container: The container before any adjustment.
        adjustment: The adjustments of all plugins, merged.
        updates: The updates of other containers.
        owners: The plugin that set each field.
        plugins: All plugins that were called, in order.
    """

    pod: Pod
    container: Container
    adjustment: ContainerAdjustment
    updates: tuple[ContainerUpdate, ...] = ()
    owners: OwningPlugins = OwningPlugins()
    plugins: tuple[PluginInstance, ...] = ()


class EventRoute(msgspec.Struct, frozen=True):
    """The route of one event to its handler and back.

    Attributes:
        method: The name of the event's method, such as ``CreateContainer``.
        handler: The name of the handler.
        arguments: Extracts the handler's arguments from the request message.
        encode: Builds the response from the handler's result and the request.
        rejects: Whether an exception is an answer, a rejection, instead of a failure.
        ends: Whether the container has ended after this event.
    """

    method: str
    handler: str
    arguments: Arguments
    encode: Encoder
    rejects: bool = False
    ends: bool = False


def _pod(request: _PodRequest) -> tuple[object, ...]:
    return (from_message(request.pod),)


def _pod_and_resources(
    request: nri_pb2.UpdatePodSandboxRequest,
) -> tuple[object, ...]:
    return (
        from_message(request.pod),
        from_message(request.overhead_linux_resources),
        from_message(request.linux_resources),
    )


def _pod_and_container(request: _ContainerRequest) -> tuple[object, ...]:
    return from_message(request.pod), from_message(request.container)


def _container_and_resources(
    request: nri_pb2.UpdateContainerRequest,
) -> tuple[object, ...]:
    return (*_pod_and_container(request), from_message(request.linux_resources))


def _validation(
    request: nri_pb2.ValidateContainerAdjustmentRequest,
) -> tuple[object, ...]:
    validation = Validation(
        pod=from_message(request.pod),
        container=from_message(request.container),
        adjustment=from_message(request.adjust),
        updates=tuple(from_message(update) for update in request.update),
        owners=from_message(request.owners),
        plugins=tuple(from_message(plugin) for plugin in request.plugins),
    )
    return (validation,)


def _nothing(result: object, _: object) -> None:
    if result is not None:
        raise TypeError(f"this handler returns nothing, not {type(result).__name__}")


# Events that are more than a notification about a container.
_SPECIAL: Final[Mapping[Event, tuple[Arguments, Encoder]]] = {
    Event.RUN_POD_SANDBOX: (_pod, _nothing),
    Event.UPDATE_POD_SANDBOX: (_pod_and_resources, _nothing),
    Event.POST_UPDATE_POD_SANDBOX: (_pod, _nothing),
    Event.STOP_POD_SANDBOX: (_pod, _nothing),
    Event.REMOVE_POD_SANDBOX: (_pod, _nothing),
    Event.CREATE_CONTAINER: (
        _pod_and_container,
        lambda result, request: create_response(result, request.container.id),
    ),
    Event.UPDATE_CONTAINER: (
        _container_and_resources,
        lambda result, _: update_response(result),
    ),
    Event.STOP_CONTAINER: (
        _pod_and_container,
        lambda result, _: stop_response(result),
    ),
    Event.VALIDATE_CONTAINER_ADJUSTMENT: (_validation, _nothing),
}

# Made once: reading the name of a member of an enumeration is slow.
ROUTES: Final[Mapping[str, EventRoute]] = MappingProxyType(
    {
        event.method: EventRoute(
            event.method,
            event.name.lower(),
            *_SPECIAL.get(event, (_pod_and_container, _nothing)),
            rejects=event is Event.VALIDATE_CONTAINER_ADJUSTMENT,
            ends=event in (Event.STOP_CONTAINER, Event.REMOVE_CONTAINER),
        )
        for event in Event
    }
)


def route_of_state_change(number: int) -> EventRoute | None:
    """Return the route of the event in a StateChange; None for an unknown event."""
    if number not in STATE_CHANGES:
        return None
    return ROUTES[Event(number).method]


def rejection(error: Exception) -> nri_pb2.ValidateContainerAdjustmentResponse:
    """Convert a validator's exception to its response."""
    reason = str(error) or type(error).__name__
    return nri_pb2.ValidateContainerAdjustmentResponse(
        reject=True, reason=printable(reason)
    )
