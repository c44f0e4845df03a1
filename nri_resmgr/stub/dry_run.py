"""Dry run: handlers run, and what they ask for is logged instead of sent.

The runtime gets empty replies, also where a handler refuses a request or fails: no
container is different from what it would be without the plugin.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from google.protobuf.message import Message

from nri_proto import PLUGIN_METHODS, nri_pb2
from nri_resmgr.log import Logger
from nri_resmgr.stub.runner import Invocation, StatusOf

log = Logger(__name__)


def withholding(
    invocation: Invocation, method: str, request: Message, status_of: StatusOf
) -> Invocation:
    """Return an invocation whose reply is empty, and whose real one is logged."""
    if isinstance(request, nri_pb2.ConfigureRequest):
        return invocation  # it changes no container, and has to be answered
    title = _title(request)

    def encode(result: object) -> Message | None:
        response = invocation.encode(result)
        if response is None:
            return None
        empty = _empty(response)
        # An adjustment may be there and be empty.
        if response != empty and (found := _contents(response)):
            log.info("reply.withheld", method=method, about=title, reply=found)
        return empty

    def refuse(error: Exception) -> Message:
        _, why = status_of(error)
        log.info("reply.withheld", method=method, about=title, refusal=why)
        return PLUGIN_METHODS[method].response()

    return msgspec.structs.replace(invocation, encode=encode, on_error=refuse)


def withhold_updates(updates: Iterable[nri_pb2.ContainerUpdate]) -> None:
    """Log a call of UpdateContainers, which is not made."""
    log.info("updates.withheld", updates=[_contents(one) for one in updates])


def _empty(response: Message) -> Message:
    if isinstance(response, nri_pb2.SynchronizeResponse):
        # More: it asks for the next message.
        return nri_pb2.SynchronizeResponse(more=response.more)
    return type(response)()


def _title(request: Any) -> str:
    """Name the pod, and the container, that a request is about."""
    pod, container = getattr(request, "pod", None), getattr(request, "container", None)
    names = [pod.namespace, pod.name] if pod is not None else []
    if container is not None:
        names.append(container.name)
    return "/".join(filter(None, names))


def _contents(message: Message) -> dict[str, object]:
    # Late: no other session needs it.
    from google.protobuf.json_format import MessageToDict

    found = MessageToDict(message, preserving_proto_field_name=True)
    return {name: value for name, value in found.items() if value}
