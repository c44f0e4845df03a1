"""The requests of lists and watches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from nri_resmgr.agent.api.news import Target

# Seconds for a whole answer; those for a watch beyond the end that it asks for.
ANSWER: Final = 30.0
_PATIENCE: Final = 30.0

_METADATA_ONLY: Final = "application/json;as={};g=meta.k8s.io;v=v1,application/json"


class Ask(msgspec.Struct, frozen=True):
    """Send a GET request; abandon the response that is being read, if any.

    Attributes:
        path: Of the URL.
        query: Of the URL.
        accept: The header of this name.
        deadline: The seconds after which to give the request up.
        is_watch: Whether a 200 is a stream of lines, to be handed over by `received`.
    """

    path: str
    query: Mapping[str, str]
    accept: str
    deadline: float
    is_watch: bool


def ask_page(target: Target, limit: int, rest: str = "") -> Ask:
    """Return the request of a list, or of a part of it.

    Args:
        target: What is listed.
        limit: The objects of a part.
        rest: Of the part before.
    """
    query = _query(target)
    if not target.name:
        query["limit"] = str(limit)
    if rest:
        query["continue"] = rest
    return _ask(target, query, "PartialObjectMetadataList", ANSWER)


def ask_watch(target: Target, version: str, seconds: int) -> Ask:
    """Return the request of a watch.

    Args:
        target: What is watched.
        version: After which changes are sent.
        seconds: After which the server is to end it.
    """
    query = _query(target) | {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": version,
        "timeoutSeconds": str(seconds),
    }
    deadline = seconds + _PATIENCE
    return _ask(target, query, "PartialObjectMetadata", deadline, is_watch=True)


def _query(target: Target) -> dict[str, str]:
    name = target.name
    for special in "\\,=":  # of field selectors
        name = name.replace(special, f"\\{special}")
    return {"fieldSelector": f"metadata.name={name}"} if name else {}


def _ask(
    target: Target,
    query: Mapping[str, str],
    form: str,
    deadline: float,
    *,
    is_watch: bool = False,
) -> Ask:
    only = _METADATA_ONLY.format(form)
    return Ask(
        path=target.resource.path(target.namespace),
        query=query,
        accept=only if target.metadata_only else "application/json",
        deadline=deadline,
        is_watch=is_watch,
    )
