"""Updates of one container merged to one."""

from __future__ import annotations

import operator
from functools import reduce
from typing import Any, Final

from google.protobuf.message import Message

from nri_proto import nri_pb2
from nri_resmgr.stub.convert import from_message, to_message
from nri_resmgr.stub.update import ContainerUpdate

# The keys by which entries of a list differ; lists without a key are replaced.
_KEYS: Final = {"hugepage_limits": "page_size"}


def merged(first: ContainerUpdate, *later: ContainerUpdate) -> ContainerUpdate:
    """Merge updates of one container; a later value of a field wins."""
    return reduce(_merged, later, first)


def _merged(first: ContainerUpdate, second: ContainerUpdate) -> ContainerUpdate:
    target = to_message(first)
    merge_update(target, to_message(second))
    return from_message(target)


def merge_update(
    target: nri_pb2.ContainerUpdate, change: nri_pb2.ContainerUpdate
) -> None:
    """Lay *change* over *target*, an update of the same container.

    As in a runtime's merge, the whole may only fail in silence if both parts may.
    """
    may_fail = target.ignore_failure and change.ignore_failure
    overlay(target, change)
    target.ignore_failure = may_fail


def overlay(target: Message, change: Message) -> None:
    """Lay the fields that *change* has over *target*.

    Unlike protobuf's merge it replaces wrappers, so that a zero counts. Of a list
    it keeps the entries whose key the change does not have: no key stands twice.
    """
    for field, value in change.ListFields():
        if field.is_repeated:
            _overlay_entries(field, getattr(target, field.name), value)
        elif field.message_type is None:
            setattr(target, field.name, value)
        elif field.message_type.name.startswith("Optional"):
            getattr(target, field.name).CopyFrom(value)
        else:
            overlay(getattr(target, field.name), value)


def _overlay_entries(field: Any, target: Any, change: Any) -> None:
    if _is_map(field):
        target.update(change)
        return
    if field.name in _KEYS:
        key = operator.attrgetter(_KEYS[field.name])
        new = {key(entry) for entry in change}
        kept = [entry for entry in target if key(entry) not in new]
        change = [*kept, *change]
    del target[:]
    target.extend(change)


def _is_map(field: Any) -> bool:
    message = field.message_type
    return message is not None and message.GetOptions().map_entry
