"""Targets of watches, and the news that a watch reports."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from nri_resmgr.agent.api.errors import ApiError
from nri_resmgr.agent.api.objects import ApiObject
from nri_resmgr.agent.api.resources import Resource


class Target(msgspec.Struct, frozen=True):
    """The subject of a watch: one object by its name, or all of a namespace.

    Attributes:
        resource: The kind.
        namespace: Of the objects; empty for a kind without namespaces.
        name: Of the one object; empty for all.
        metadata_only: Have only ``metadata`` sent, as for Nodes, whose status is large
            and changes all the time. Only changes of labels and annotations are
            reported then.
    """

    resource: Resource
    namespace: str = ""
    name: str = ""
    metadata_only: bool = False

    def __str__(self) -> str:
        name = f" {self.name}" if self.name else ""
        place = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{self.resource.plural}{name}{place}"


class Changed(msgspec.Struct, frozen=True):
    """An object is new, or has another generation than the one reported before.

    Objects of kinds without generations, such as ConfigMaps, are compared by their
    version. One that was deleted and made anew while the watch was down is reported
    once, with its new UID.
    """

    object: ApiObject


class Removed(msgspec.Struct, frozen=True):
    """An object that was reported no longer exists."""

    name: str
    uid: str


class Synced(msgspec.Struct, frozen=True):
    """All there is has been reported: what was not does not exist.

    Follows each list, so the first one says that an object is absent.
    """


class Unreadable(msgspec.Struct, frozen=True):
    """An object exists, and is too large or malformed to be used."""

    name: str
    uid: str
    error: ApiError


class Failing(msgspec.Struct, frozen=True):
    """The watch does not work; what was reported may be out of date.

    Reported when an error begins or becomes another one, not at each attempt. Attempts
    go on by themselves. An object is not removed because its kind is gone or because
    this client has no right to it: no `Removed` follows from an error.
    """

    error: ApiError


class Recovered(msgspec.Struct, frozen=True):
    """The watch works again after `Failing`.

    What was missed has been reported, or follows.
    """


News: TypeAlias = Changed | Removed | Synced | Unreadable | Failing | Recovered
