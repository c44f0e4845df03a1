"""Objects of the API server: their JSON, and the few fields that a client needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar

import msgspec

from nri_resmgr.agent.api.resources import Resource
from nri_resmgr.values.documents import JsonObject

# etcd takes 1.5 MiB for a request. JSON of an object has a little more than what is
# stored, such as escapes of characters.
MOST_BYTES: Final = 2 << 20


class ApiObject(msgspec.Struct, frozen=True):
    """An object as the API server sent it.

    Attributes:
        resource: Its kind.
        name: Its name.
        namespace: Empty for a kind without namespaces.
        uid: Identity: another object of this name has another one.
        generation: Counts changes of the specification; 0 for kinds without, such as
            ConfigMaps and Nodes.
        version: ``resourceVersion``: opaque, and changes with every write.
        labels: Its labels.
        annotations: Its annotations.
        body: The whole object; empty where only metadata was asked for.
    """

    resource: Resource
    name: str
    namespace: str
    uid: str
    generation: int
    version: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    body: JsonObject


class Page(msgspec.Struct, frozen=True):
    """A part of a list, or all of it.

    Attributes:
        items: JSON of the objects.
        version: Of the list.
        rest: Asks for the next part; empty for the last one.
    """

    items: tuple[bytes, ...]
    version: str
    rest: str


class WatchEvent(msgspec.Struct, frozen=True):
    """A line of a watch.

    Attributes:
        type: ``ADDED``, ``MODIFIED``, ``DELETED``, ``BOOKMARK`` or ``ERROR``.
        object: JSON of the object; of a ``Status`` for an error.
    """

    type: str
    object: msgspec.Raw


class Malformed(Exception):
    """JSON is not what an API server sends; the text says why."""


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    uid: str
    resource_version: str
    namespace: str = ""
    generation: int = 0
    labels: Mapping[str, str] | None = None
    annotations: Mapping[str, str] | None = None


class _WithMetadata(msgspec.Struct, frozen=True):
    metadata: _Metadata


class _Version(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str


class _OnlyVersion(msgspec.Struct, frozen=True):
    metadata: _Version


class _ListMetadata(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str
    rest: str = msgspec.field(default="", name="continue")


class _List(msgspec.Struct, frozen=True):
    metadata: _ListMetadata
    items: list[msgspec.Raw] | None = None


_OBJECT: Final = msgspec.json.Decoder(_WithMetadata)
_BODY: Final = msgspec.json.Decoder(JsonObject)
_VERSION: Final = msgspec.json.Decoder(_OnlyVersion)
_LIST: Final = msgspec.json.Decoder(_List)
_EVENT: Final = msgspec.json.Decoder(WatchEvent)

_T = TypeVar("_T")


def read_object(json: bytes, resource: Resource, *, with_body: bool) -> ApiObject:
    """Read an object.

    Args:
        json: Its JSON.
        resource: Its kind.
        with_body: Whether all of it is kept, or only the named fields.

    Raises:
        Malformed: It is no object, or has no name, UID or version.
    """
    found = _decode(_OBJECT, json).metadata
    return ApiObject(
        resource=resource,
        name=found.name,
        namespace=found.namespace,
        uid=found.uid,
        generation=found.generation,
        version=found.resource_version,
        labels=found.labels or {},
        annotations=found.annotations or {},
        body=_decode(_BODY, json) if with_body else {},
    )


def read_page(json: bytes) -> Page:
    """Read a list, without the objects in it; raises `Malformed`."""
    found = _decode(_LIST, json)
    return Page(
        items=tuple(bytes(item) for item in found.items or ()),
        version=found.metadata.resource_version,
        rest=found.metadata.rest,
    )


def read_event(json: bytes) -> WatchEvent:
    """Read a line of a watch, without the object in it; raises `Malformed`."""
    return _decode(_EVENT, json)


def read_version(json: bytes) -> str:
    """Read the version of an object that has no more, as a bookmark's."""
    return _decode(_VERSION, json).metadata.resource_version


def _decode(decoder: msgspec.json.Decoder[_T], json: bytes) -> _T:
    try:
        return decoder.decode(json)
    # Nested deeper than the interpreter's limit, or not UTF-8.
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise Malformed(str(error)) from None
