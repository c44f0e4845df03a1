"""Which running containers the runtime has yet to be sent something for."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import attrs

from nri_proto import nri_pb2
from nri_resmgr.stub.convert import to_message
from nri_resmgr.stub.replies import synchronize_response
from nri_resmgr.stub.snapshot import UPDATES_BUDGET, entry_size, split_updates
from nri_resmgr.stub.update import ContainerUpdate
from nri_resmgr.stub.update_merge import merge_update, merged

Source: TypeAlias = Callable[[str], ContainerUpdate | None]
"""Computes what one kind of values should be for a container, given its id, at the
moment of the call. None if there is nothing to send: the container is gone."""

_NEVER: Final = float("inf")


@attrs.define(eq=False, repr=False)
class _Entry:
    """What one container waits for.

    Attributes:
        since: When it began to wait, on the clock of `PendingUpdates`.
        sources: A set in order: the kinds of values to send.
        fixed: Values that do not change until they are sent.
        needs_reply: Whether only a reply may carry it: a call has failed.
    """

    since: float
    sources: dict[Source, None] = attrs.field(factory=dict)
    fixed: ContainerUpdate | None = None
    needs_reply: bool = False

    def value(self, container: str) -> ContainerUpdate | None:
        """Compute the update as it should be sent now; None for nothing."""
        parts = [one for source in self.sources if (one := source(container))]
        if self.fixed is not None:
            parts.append(self.fixed)
        return merged(*parts) if parts else None

    def add(self, later: _Entry) -> None:
        """Merge what was added later; its values win."""
        self.sources |= later.sources
        if later.fixed is not None:
            self.fixed = merged(self.fixed, later.fixed) if self.fixed else later.fixed
        self.needs_reply = later.needs_reply


class PendingUpdates:
    """Has at most one entry for each container, waiting or in flight.

    An entry names sources of values, not values: what is sent is what should hold
    when it is sent, however long it waited. Plugins without sources of their own add
    fixed values.

    Args:
        clock: Returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._waiting: dict[str, _Entry] = {}
        self._in_flight: dict[str, _Entry] = {}

    def __len__(self) -> int:
        return len(self._waiting.keys() | self._in_flight.keys())

    @property
    def oldest_seconds(self) -> float:
        """How long the oldest entry has waited; 0 if there is none."""
        first = min((one.since for _, one in self._entries()), default=_NEVER)
        return max(0.0, self._clock() - first)

    def containers(self, source: Source | None = None) -> frozenset[str]:
        """Return the containers that wait or are in flight.

        Args:
            source: Count only entries that name it; None counts all.
        """
        return frozenset(
            key
            for key, one in self._entries()
            if source is None or source in one.sources
        )

    def add(self, source: Source, containers: Iterable[str]) -> None:
        """Have what *source* gives for containers sent."""
        now = self._clock()
        for key in containers:
            self._put(key, _Entry(now, {source: None}))

    def add_fixed(self, updates: Iterable[ContainerUpdate]) -> None:
        """Have fixed values sent."""
        now = self._clock()
        for one in updates:
            self._put(one.container_id, _Entry(now, fixed=one))

    def forget(self, container: str) -> None:
        """Drop a container that is gone: its update could only fail."""
        self._waiting.pop(container, None)
        self._in_flight.pop(container, None)

    def drop(self, source: Source) -> None:
        """Drop what waits of one source: its values are about to be sent otherwise."""
        for one in self._waiting.values():
            one.sources.pop(source, None)
        self._drop_empty()

    def drop_fixed(self) -> None:
        """Drop all fixed values: they were meant for a session that has ended."""
        for _, one in self._entries():
            one.fixed = None
        self._drop_empty()

    def take(self) -> dict[str, ContainerUpdate]:
        """Take the updates for one call, by container; they are in flight then.

        Returns:
            As many as fit into a message. One at least: what is too large for any
            message must not wait for ever.
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
        """Note that a call ended: what failed waits for a reply.

        What should hold otherwise by now waits for the next call: a reply may have
        overtaken this one.
        """
        in_flight, self._in_flight = self._in_flight, {}
        for key, one in in_flight.items():
            if key in failed:
                self._put_back(key, one, needs_reply=True)
            elif one.value(key) not in (None, sent[key]):
                self._put(key, _Entry(self._clock(), one.sources))

    def put_back(self, *, needs_reply: bool) -> None:
        """Have what is in flight wait again: it was not sent, or it failed.

        Args:
            needs_reply: Whether only a reply may carry it now.
        """
        in_flight, self._in_flight = self._in_flight, {}
        for key, one in in_flight.items():
            self._put_back(key, one, needs_reply=needs_reply)

    def abandon(self) -> None:
        """Drop what is in flight: it can never be sent."""
        self._in_flight = {}

    def attach(self, response: Any, busy: str) -> None:
        """Add what waits to a reply that can carry updates.

        Args:
            response: Has a repeated field ``update``; its own values win.
            busy: The container the request is about. Fixed values for it wait on:
                they are older than what the request asks for. Computed ones go with
                its own update.
        """
        if not self._waiting:
            return
        # An update of the container that is being created fails its creation.
        is_creation = isinstance(response, nri_pb2.CreateContainerResponse)
        for update in response.update:
            entry = self._waiting.pop(update.container_id, None)
            if entry and (value := entry.value(update.container_id)):
                whole: Any = to_message(value)
                merge_update(whole, update)
                update.CopyFrom(whole)
        room = UPDATES_BUDGET - response.ByteSize()
        for key, one in list(self._waiting.items()):
            if key == busy and (is_creation or not one.sources):
                continue
            if (value := one.value(key)) is None:
                del self._waiting[key]
                continue
            message: Any = to_message(value)
            if (size := entry_size(message)) <= room:
                room -= size
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
