"""Results of handlers, checked and converted to response messages.

The functions raise `ReplyError` for a reply that contradicts itself or names no
container, and `TypeError` if the handler returned something else than a reply.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias, cast

import msgspec

from nri_proto import nri_pb2
from nri_resmgr.stub.adjustment import ContainerAdjustment
from nri_resmgr.stub.convert import write_to
from nri_resmgr.stub.errors import (
    DuplicateKey,
    InvalidKey,
    MissingContainerId,
    SelfUpdate,
)
from nri_resmgr.stub.fields import FIELDS, KEYED, Field, content_at, keys_of
from nri_resmgr.stub.model import ContainerEviction, LinuxContainerUpdate
from nri_resmgr.stub.update import ContainerUpdate
from nri_resmgr.values.identity_cache import IdentityCache

# Responses that can carry updates of other containers.
UpdatesResponse: TypeAlias = (
    nri_pb2.CreateContainerResponse
    | nri_pb2.UpdateContainerResponse
    | nri_pb2.StopContainerResponse
    | nri_pb2.SynchronizeResponse
)

# Fields with keys, by the attributes that lead to them from an adjustment or update.
Tree: TypeAlias = "Mapping[str, Field | Tree]"


def _tree(fields: Iterable[Field]) -> Tree:
    root: dict[str, Any] = {}
    for field in fields:
        *parents, name = field.path.split(".")
        node = root
        for parent in parents:
            node = node.setdefault(parent, {})
        node[name] = field
    return root


_ADJUSTMENT_TREE: Final = _tree(KEYED)
_PLAIN_TREE: Final = {key: n for key, n in _ADJUSTMENT_TREE.items() if key != "linux"}
_LINUX_TREE: Final = cast("Tree", _ADJUSTMENT_TREE["linux"])
_UPDATE_TREE: Final = {"resources": _LINUX_TREE["resources"]}

# Most contents of updates that are remembered in case another update has the same.
_SHARED: Final = 16


class CreateReply(msgspec.Struct, frozen=True):
    """The complete answer to CreateContainer.

    Attributes:
        adjustment: Changes to the container being created.
        updates: Updates of other containers; the runtime applies them first.
        evictions: Part of the schema; present runtimes ignore them.
    """

    adjustment: ContainerAdjustment | None = None
    updates: tuple[ContainerUpdate, ...] = ()
    evictions: tuple[ContainerEviction, ...] = ()


class UpdateReply(msgspec.Struct, frozen=True):
    """The complete answer to UpdateContainer.

    Attributes:
        updates: Updates of any container; one of the requested container changes the
            request.
        evictions: Part of the schema; present runtimes ignore them.
    """

    updates: tuple[ContainerUpdate, ...] = ()
    evictions: tuple[ContainerEviction, ...] = ()


def create_response(
    result: object, container_id: str
) -> nri_pb2.CreateContainerResponse:
    """Convert a create_container handler's result: None, an adjustment or a reply."""
    match result:
        case None:
            return nri_pb2.CreateContainerResponse()
        case ContainerAdjustment():
            reply = CreateReply(result)
        case CreateReply():
            reply = result
        case _:
            raise _wrong(result, "None, a ContainerAdjustment or a CreateReply")
    updates = tuple(reply.updates)
    if container_id in [update.container_id for update in updates]:
        raise SelfUpdate(container_id)
    response = nri_pb2.CreateContainerResponse()
    _add_updates(response, updates)
    _add_evictions(response, reply.evictions)
    if reply.adjustment is not None:
        # Methods of the value check its keys; its constructor does not.
        _check_parts(reply.adjustment, _PLAIN_TREE)
        if reply.adjustment.linux is not None:
            _check_linux(reply.adjustment.linux)
        response.adjust.SetInParent()  # present, also if it is empty
        write_to(response.adjust, reply.adjustment)
    return response


def update_response(result: object) -> nri_pb2.UpdateContainerResponse:
    """Convert an update_container handler's result: an UpdateReply, or updates."""
    reply = result if isinstance(result, UpdateReply) else UpdateReply(_updates(result))
    response = nri_pb2.UpdateContainerResponse()
    updates = [update for update in reply.updates if not _is_empty(update)]
    _add_updates(response, tuple(updates))
    _add_evictions(response, reply.evictions)
    return response


def stop_response(result: object) -> nri_pb2.StopContainerResponse:
    """Convert a stop_container handler's result: None, an update or several."""
    response = nri_pb2.StopContainerResponse()
    _add_updates(response, _updates(result))
    return response


def synchronize_response(result: object) -> nri_pb2.SynchronizeResponse:
    """Convert a synchronize handler's result, as in `stop_response`."""
    response = nri_pb2.SynchronizeResponse()
    _add_updates(response, _updates(result))
    return response


def _updates(result: object) -> tuple[ContainerUpdate, ...]:
    if result is None:
        return ()
    if isinstance(result, ContainerUpdate):
        return (result,)
    if not isinstance(result, Iterable):
        raise _wrong(result, "None, a ContainerUpdate or several")
    return tuple(result)


def _is_empty(update: object) -> bool:
    """Return whether it has no resources, which a runtime applies as the request."""
    if not isinstance(update, ContainerUpdate) or not update.container_id:
        return False  # a mistake, which is reported
    return update.linux is None or update.linux.resources is None


def _add_updates(
    response: UpdatesResponse, updates: tuple[ContainerUpdate, ...]
) -> None:
    if not updates:
        return
    # Hundreds of containers that share CPUs have the same content, which is checked and
    # encoded once. With many contents most are sent only once anyway.
    check = IdentityCache(_check_update, most=_SHARED)
    for update in updates:
        if not isinstance(update, ContainerUpdate):
            raise _wrong(update, "a ContainerUpdate for each update")
        if not update.container_id:
            raise MissingContainerId("update")
        check(update.linux)
    _check_claims(updates)
    parts, contents = response.update, list[tuple[LinuxContainerUpdate, bytes]]()
    for update in updates:
        part, linux = parts.add(), update.linux
        content = next((text for one, text in contents if one is linux), None)
        if content is None or update.ignore_failure:
            write_to(part, update)
            if content is None and linux is not None and len(contents) < _SHARED:
                contents.append((linux, part.linux.SerializeToString()))
            continue
        try:
            part.container_id = update.container_id
        except (TypeError, ValueError):
            write_to(part, update)  # raises with the name of the field
        part.linux.MergeFromString(content)


def _add_evictions(
    response: nri_pb2.CreateContainerResponse | nri_pb2.UpdateContainerResponse,
    evictions: tuple[ContainerEviction, ...],
) -> None:
    for eviction in evictions:
        if not eviction.container_id:
            raise MissingContainerId("eviction")
        write_to(response.evict.add(), eviction)


def _wrong(result: object, expected: str) -> TypeError:
    return TypeError(
        f"the handler should return {expected}, not {type(result).__name__}"
    )


def _check_update(linux: LinuxContainerUpdate | None) -> None:
    if linux is not None:
        _check_parts(linux, _UPDATE_TREE)


def _check_parts(part: object, tree: Tree) -> None:
    for name, node in tree.items():
        if not (content := getattr(part, name)):
            continue
        if isinstance(node, Field):
            _check_keys_of(node, content)
        else:
            _check_parts(content, node)


# Few contents are sent to many containers.
_check_linux: Final = IdentityCache(
    partial(_check_parts, tree=_LINUX_TREE), most=_SHARED
)


def _check_keys_of(field: Field, content: object) -> None:
    keys = keys_of(field, content)
    if len(set(keys)) < len(keys):
        raise DuplicateKey(field.path, Counter(keys).most_common(1)[0][0])
    for key in keys:
        if key in ("", "-"):
            raise InvalidKey(field.path, key)


def _check_claims(updates: tuple[ContainerUpdate, ...]) -> None:
    """Check that no field of a container is set by two updates."""
    if len({update.container_id for update in updates}) == len(updates):
        return
    claims: set[tuple[str, str, str]] = set()
    for update in updates:
        for field in FIELDS:
            content = content_at(update, field.path)
            if content is None or field.path == "linux.resources.devices":
                continue
            for key in keys_of(field, content) or ("",):
                claim = (update.container_id, field.path, key)
                if claim in claims:
                    raise DuplicateKey(f"{field.path} of {update.container_id}", key)
                claims.add(claim)
