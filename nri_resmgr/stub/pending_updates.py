"""Updates of running containers that are yet to be sent to the runtime."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import reduce
from typing import Any, Final, TypeAlias

import attrs
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from nri_proto import nri_pb2
from nri_resmgr.stub.convert import from_message, to_message
from nri_resmgr.stub.replies import UpdatesResponse, synchronize_response
from nri_resmgr.stub.synchronize import UPDATES_BUDGET, entry_size, split_updates
from nri_resmgr.stub.update import ContainerUpdate

Source: TypeAlias = Callable[[str], ContainerUpdate | None]
"""Computes the present update of one kind for a container, given its id. Returns None
if there is nothing to send because the container has ended."""

_NEVER: Final = float("inf")

# The field that identifies the entries of a list; lists without one are replaced.
_KEYS: Final = {"hugepage_limits": "page_size"}


@attrs.define(eq=False, repr=False)
class _Entry:
    """The pending update of one container.

    Attributes:
        since: Time at which it was added, on the clock of `PendingUpdates`.
        sources: The sources of its values; the keys are an ordered set.
        fixed: Values that do not change until they are sent.
        needs_reply: Whether only a reply may carry it, because a call has failed.
    """

    since: float
    sources: dict[Source, None] = attrs.field(factory=dict)
    fixed: ContainerUpdate | None = None
    needs_reply: bool = False

    def value(self, container: str) -> ContainerUpdate | None:
        """Compute the update to send now; None if there is nothing to send."""
        parts = [one for source in self.sources if (one := source(container))]
        if self.fixed is not None:
            parts.append(self.fixed)
        return merged(*parts) if parts else None

    def add(self, later: _Entry) -> None:
        """Merge an entry that was added later; its values win."""
        self.sources |= later.sources
        if later.fixed is not None:
            self.fixed = merged(self.fixed, later.fixed) if self.fixed else later.fixed
        self.needs_reply = later.needs_reply


class PendingUpdates:
    """At most one entry for each container, waiting or in flight.

    An entry names sources of values, not values: the values are computed when they are
    sent, so they are never out of date. Plugins without sources add fixed values.

    Args:
        clock: Returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # A container may be in both: its entry in flight has values of earlier changes.
        self._waiting: dict[str, _Entry] = {}
        self._in_flight: dict[str, _Entry] = {}

    def __len__(self) -> int:
        return len(self._waiting.keys() | self._in_flight.keys())

    @property
    def oldest_seconds(self) -> float:
        """Age of the oldest entry in seconds; 0 if there is none."""
        first = min((one.since for _, one in self._entries()), default=_NEVER)
        return max(0.0, self._clock() - first)

    def containers(self, source: Source | None = None) -> frozenset[str]:
        """Return the containers that wait or are in flight.

        Args:
            source: Only entries with this source; None for all.
        """
        return frozenset(
            key
            for key, one in self._entries()
            if source is None or source in one.sources
        )

    def add(self, source: Source, containers: Iterable[str]) -> None:
        """Add containers whose update *source* computes."""
        now = self._clock()
        for key in containers:
            self._put(key, _Entry(now, {source: None}))

    def add_fixed(self, updates: Iterable[ContainerUpdate]) -> None:
        """Add updates with fixed values."""
        now = self._clock()
        for one in updates:
            self._put(one.container_id, _Entry(now, fixed=one))

    def forget(self, container: str) -> None:
        """Drop the entry of a container that has ended: its update could only fail."""
        self._waiting.pop(container, None)
        self._in_flight.pop(container, None)

    def drop(self, source: Source) -> None:
        """Drop a source from waiting entries: its values are being sent otherwise."""
        for one in self._waiting.values():
            one.sources.pop(source, None)
        self._drop_empty()

    def drop_fixed(self) -> None:
        """Drop all fixed values: they belong to a session that has ended."""
        for _, one in self._entries():
            one.fixed = None
        self._drop_empty()

    def take(self) -> dict[str, ContainerUpdate]:
        """Move updates for one call to the entries in flight.

        Returns:
            Updates by container id, as many as fit into a message, but at least one:
            an update that is too large for any message must not wait for ever.
        """
        found: dict[str, ContainerUpdate] = {}
        for key, one in list(self._waiting.items()):
            if one.needs_reply:
                continue
            if (update := one.value(key)) is None:
                del self._waiting[key]
            else:
                found[key] = update
        if not found:
            return {}
        surplus = len(split_updates(synchronize_response(found.values())))
        taken = dict(list(found.items())[: max(1, len(found) - surplus)])
        self._in_flight = {key: self._waiting.pop(key) for key in taken}
        return taken

    def settle(
        self, sent: Mapping[str, ContainerUpdate], failed: Collection[str]
    ) -> None:
        """Finish a call: failed updates wait for a reply.

        Updates whose values have changed since wait for the next call: a reply with
        other values may have overtaken this one.

        Args:
            sent: The updates of the call, by container id.
            failed: Ids of the containers whose update failed.
        """
        in_flight, self._in_flight = self._in_flight, {}
        for key, one in in_flight.items():
            if key in failed:
                self._put_back(key, one, needs_reply=True)
            elif one.value(key) not in (None, sent[key]):
                self._put(key, _Entry(self._clock(), one.sources))

    def put_back(self, *, needs_reply: bool) -> None:
        """Move the entries in flight back: they were not sent, or they failed.

        Args:
            needs_reply: Whether only a reply may carry them now.
        """
        in_flight, self._in_flight = self._in_flight, {}
        for key, one in in_flight.items():
            self._put_back(key, one, needs_reply=needs_reply)

    def abandon(self) -> None:
        """Drop the entries in flight: they can never be sent."""
        self._in_flight = {}

    def attach(self, response: UpdatesResponse, busy: str) -> None:
        """Add waiting updates to a reply that can carry them.

        Args:
            response: Has a repeated field ``update``; its own values win.
            busy: Id of the container that the request is about. Fixed values for it
                keep waiting, because they are older than the request. Computed values
                are merged into its update.
        """
        if not self._waiting:
            return
        # An update of the container being created would fail its creation.
        is_creation = isinstance(response, nri_pb2.CreateContainerResponse)
        for update in response.update:
            entry = self._waiting.pop(update.container_id, None)
            if entry and (value := entry.value(update.container_id)):
                whole = to_message(value)
                merge_update(whole, update)
                update.CopyFrom(whole)
        free = UPDATES_BUDGET - response.ByteSize()
        for key, one in list(self._waiting.items()):
            if key == busy and (is_creation or not one.sources):
                continue
            if (value := one.value(key)) is None:
                del self._waiting[key]
                continue
            message = to_message(value)
            if (size := entry_size(message)) <= free:
                free -= size
                response.update.append(message)
                del self._waiting[key]

    def _entries(self) -> Iterator[tuple[str, _Entry]]:
        yield from self._waiting.items()
        yield from self._in_flight.items()

    def _put(self, key: str, entry: _Entry) -> None:
        if (known := self._waiting.get(key)) is None:
            self._waiting[key] = entry
        else:
            known.add(entry)

    def _put_back(self, key: str, entry: _Entry, *, needs_reply: bool) -> None:
        if not (entry.sources or entry.fixed):
            return
        entry.needs_reply = needs_reply
        if (newer := self._waiting.get(key)) is not None:
            entry.add(newer)
        self._waiting[key] = entry

    def _drop_empty(self) -> None:
        for key, one in list(self._waiting.items()):
            if not (one.sources or one.fixed):
                del self._waiting[key]


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
    """Merge *change* into *target*, an update of the same container.

    As in a runtime's merge, the failure of the result is ignored only if that of both
    parts is.
    """
    may_fail = target.ignore_failure and change.ignore_failure
    overlay(target, change)
    target.ignore_failure = may_fail


def overlay(target: Message, change: Message) -> None:
    """Replace fields of *target* with those present in *change*.

    Unlike protobuf's merge it replaces wrappers, so that 0 is a value. Of a list with
    keys it keeps the entries whose key is not in the change, so no key is there twice.
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


def _overlay_entries(field: FieldDescriptor, target: Any, change: Any) -> None:
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


def _is_map(field: FieldDescriptor) -> bool:
    message = field.message_type
    return message is not None and message.GetOptions().map_entry
