"""How each event reaches its handler and how the result becomes a reply."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import msgspec
from google.protobuf.message import Message

from nri_proto import STATE_CHANGES, Event, nri_pb2
from nri_resmgr.stub.adjustment import ContainerAdjustment
from nri_resmgr.stub.convert import from_message
from nri_resmgr.stub.model import Container, OwningPlugins, PluginInstance, Pod
from nri_resmgr.stub.replies import create_response, stop_response, update_response
from nri_resmgr.stub.update import ContainerUpdate

# The request message is one of many types, alike in what we take from it.
Arguments: TypeAlias = Callable[[Any], tuple[object, ...]]
Encoder: TypeAlias = Callable[[object, Any], Message | None]


class Validation(msgspec.Struct, frozen=True):
    """What a ``validate_container_adjustment`` handler looks at.

    Attributes:
        container: As it was before any plugin touched it.
        adjustment: Of all plugins, merged.
        updates: Of other containers.
        owners: Who set what.
        plugins: Everybody who was asked, in order.
    """

    pod: Pod
    container: Container
    adjustment: ContainerAdjustment
    updates: tuple[ContainerUpdate, ...] = ()
    owners: OwningPlugins = OwningPlugins()
    plugins: tuple[PluginInstance, ...] = ()


class EventRoute(msgspec.Struct, frozen=True):
    """The way of one event to its handler and back.

    Attributes:
        event: Its name in lower case is the handler's.
        arguments: Takes the handler's arguments out of the request message.
        encode: Makes the response of the handler's result and the request.
        carries_updates: Whether the response can update other containers.
        rejects: Whether an exception is an answer, a veto, and no failure.
    """

    event: Event
    arguments: Arguments
    encode: Encoder
    carries_updates: bool = False
    rejects: bool = False

    @property
    def handler(self) -> str:
        """The name of the handler."""
        return self.event.name.lower()

    @property
    def ends(self) -> bool:
        """Whether the container is gone afterwards."""
        return self.event in (Event.STOP_CONTAINER, Event.REMOVE_CONTAINER)


def _pod(request: Any) -> tuple[object, ...]:
    return (from_message(request.pod),)


def _pod_and_resources(request: Any) -> tuple[object, ...]:
    return (
        from_message(request.pod),
        from_message(request.overhead_linux_resources),
        from_message(request.linux_resources),
    )


def _pod_and_container(request: Any) -> tuple[object, ...]:
    return from_message(request.pod), from_message(request.container)


def _container_and_resources(request: Any) -> tuple[object, ...]:
    return (*_pod_and_container(request), from_message(request.linux_resources))


def _validation(request: Any) -> tuple[object, ...]:
    validation = Validation(
        pod=from_message(request.pod),
        container=from_message(request.container),
        adjustment=from_message(request.adjust),
        updates=tuple(from_message(update) for update in request.update),
        owners=from_message(request.owners),
        plugins=tuple(from_message(plugin) for plugin in request.plugins),
    )
    return (validation,)


def _nothing(result: object, _: Any) -> None:
    if result is not None:
        raise TypeError(f"this handler returns nothing, not {type(result).__name__}")


def _created(result: object, request: Any) -> Message:
    return create_response(result, request.container.id)


def _updated(result: object, _: Any) -> Message:
    return update_response(result)


def _stopped(result: object, _: Any) -> Message:
    return stop_response(result)


# What differs from an event that only tells of a container.
_SPECIAL: Final = (
    EventRoute(Event.RUN_POD_SANDBOX, _pod, _nothing),
    EventRoute(Event.UPDATE_POD_SANDBOX, _pod_and_resources, _nothing),
    EventRoute(Event.POST_UPDATE_POD_SANDBOX, _pod, _nothing),
    EventRoute(Event.STOP_POD_SANDBOX, _pod, _nothing),
    EventRoute(Event.REMOVE_POD_SANDBOX, _pod, _nothing),
    EventRoute(
        Event.CREATE_CONTAINER, _pod_and_container, _created, carries_updates=True
    ),
    EventRoute(
        Event.UPDATE_CONTAINER,
        _container_and_resources,
        _updated,
        carries_updates=True,
    ),
    EventRoute(
        Event.STOP_CONTAINER, _pod_and_container, _stopped, carries_updates=True
    ),
    EventRoute(
        Event.VALIDATE_CONTAINER_ADJUSTMENT, _validation, _nothing, rejects=True
    ),
)

ROUTES: Final[Mapping[str, EventRoute]] = MappingProxyType(
    {
        **{
            event.method: EventRoute(event, _pod_and_container, _nothing)
            for event in Event
        },
        **{route.event.method: route for route in _SPECIAL},
    }
)


def route_of_state_change(number: int) -> EventRoute | None:
    """Find the event of a StateChange; None for one of the future."""
    if number not in STATE_CHANGES:
        return None
    return ROUTES[Event(number).method]


def rejection(error: Exception) -> nri_pb2.ValidateContainerAdjustmentResponse:
    """Turn a validator's exception into its veto."""
    reason = str(error) or type(error).__name__
    return nri_pb2.ValidateContainerAdjustmentResponse(
        reject=True, reason=reason.encode(errors="replace").decode()
    )
