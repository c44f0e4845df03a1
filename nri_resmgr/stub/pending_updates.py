"""Updates of running containers that are yet to be sent to the runtime.

Updates come from several sources (pins, memory limits, block I/O), and leave by replies
and by calls. `PendingUpdates` merges what waits to one entry for each container, and
`update_sender` decides when calls are made. docs/running-containers.md, "The runtime's
record", says when users see the result; docs/nri-levels.md, where calls may dead-lock.

What it guarantees:

* Nothing is lost: as long as the runtime does not have a container's present values,
  the container has an entry, waiting or in flight.
* No container is twice in a reply or call: the runtime would report a conflict of the
  plugin with itself. For the same reason, and so that other plugins can set the rest,
  only fields that change are sent.
* What is sent is what holds at that moment, not when the change was decided.
* A record (a value that is in force already) delays nothing: it goes after urgent ones,
  never in the reply to a creation, and its failure fails no request.

How: an entry names its sources, and is asked for values when it is sent. So a hundred
changes between two replies cost one update, and a record that was taken back costs
none. A call may be overtaken by a reply with later values; when it ends, `settle`
compares what was sent with what would be sent now, and a container that differs waits
again. What fails in a call goes by a reply, or by another call if it is added again.

Values are merged field by field, the later one wins: entries of a list by their key,
keys of a map one by one. The reply's own update of a container wins over what waits,
since it was decided later. The failure of a merged update is only ignored if that of
all its parts is, as runtimes do.

What was rejected:

* A queue for each source, as there were three at first. Each kept what the runtime was
  yet to take, so that a container could be in all of them.
* protobuf's ``MergeFrom``. It appends lists, so that a page size stands twice, and a
  wrapper's later value of 0 does not replace the earlier one.
* All updates of a node in one call. To compute and to write 5,000 took 26 to 30 ms in
  one piece (docs/benchmarks.md); a call carries `MOST_IN_CALL`.

What it costs: to add is a step for each container; to attach to a reply looks once at
each entry that waits. The runtime pays more, some 12 ms for each update, which is why
replies carry at most `MOST_RECORDS_IN_REPLY` records.

Checked by: tests/laws/test_pending_updates.py (any order of changes, calls, failures
and replies); tests/stub/test_updates_merged.py, field by field;
tests/stub/test_update_sender.py and tests/stub/test_records.py, with a runtime.

An example: two sources have something for container `a`, and CPUs change once more
before a reply takes them along.

>>> from nri_resmgr.stub.replies import stop_response
>>> cpus = {"a": "0-3", "b": "4-7"}
>>> def pin(container: str) -> ContainerUpdate:
...     return ContainerUpdate(container).set_cpus(cpus[container])
>>> def limit(container: str) -> ContainerUpdate:
...     return ContainerUpdate(container).set_memory_limit(1 << 30)

>>> pending = PendingUpdates()
>>> pending.add(pin, ["a", "b"])
>>> pending.add(limit, ["a"])
>>> cpus["a"] = "0-1"
>>> reply = stop_response(())
>>> carried = pending.attach(reply, busy="c")
>>> for one in reply.update:
...     resources = one.linux.resources
...     print(one.container_id, resources.cpu.cpus, resources.memory.limit.value >> 20)
a 0-1 1024
b 4-7 0
>>> len(pending)
0
"""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import attrs
from google.protobuf.message import Message

from nri_proto import nri_pb2
from nri_resmgr.stub.convert import from_message, to_message
from nri_resmgr.stub.replies import UpdatesResponse, synchronize_response
from nri_resmgr.stub.schema import is_map, is_wrapper
from nri_resmgr.stub.synchronize import UPDATES_BUDGET, entry_size, split_updates
from nri_resmgr.stub.update import ContainerUpdate

Source: TypeAlias = Callable[[str], ContainerUpdate | None]
"""Computes the present update of one kind for a container, given its id. Returns None
if there is nothing to send: the container has ended, or the runtime's record has it."""

OnTaken: TypeAlias = Callable[[Mapping[str, ContainerUpdate]], None]
"""Receives the updates that the runtime was given, by container id; must not raise."""

# A stop or an update of a container may take some 25 ms longer for them. A creation may
# not: users wait for it, and there are many in a row.
MOST_RECORDS_IN_REPLY: Final = 2

MOST_IN_CALL: Final = 1000
"""Updates of one call: to compute and to write so many takes 6 ms, in one piece."""

_NEVER: Final = float("inf")

# The responses whose requests may take longer for records.
_CARRY_RECORDS: Final = (nri_pb2.StopContainerResponse, nri_pb2.UpdateContainerResponse)

# The field that identifies the entries of a list; lists without one are replaced.
_KEYS: Final = {"hugepage_limits": "page_size"}


@attrs.define(eq=False, repr=False)
class _Entry:
    """The pending update of one container.

    Attributes:
        since: Time at which it was added, or became urgent, on the clock of
            `PendingUpdates`.
        sources: The sources of its values in order, and whether each is urgent.
        fixed: Values that do not change until they are sent.
        needs_reply: Whether only a reply may carry it, because a call has failed.
    """

    since: float
    sources: dict[Source, bool] = attrs.field(factory=dict)
    fixed: ContainerUpdate | None = None
    needs_reply: bool = False

    @property
    def is_urgent(self) -> bool:
        """True if a value of it is not in force yet; otherwise it is a record."""
        return self.fixed is not None or any(self.sources.values())

    def value(self, container: str) -> ContainerUpdate | None:
        """Compute the update to send now; None if there is nothing to send."""
        parts = [one for source in self.sources if (one := source(container))]
        if self.fixed is not None:
            parts.append(self.fixed)
        return merged(*parts) if parts else None

    def add(self, later: _Entry) -> None:
        """Merge an entry that was added later; its values win."""
        was_urgent = self.is_urgent
        if later.is_urgent and not was_urgent:
            self.since = later.since
        # A record makes no call worth another attempt that carries urgent values.
        if later.is_urgent or not was_urgent:
            self.needs_reply = later.needs_reply
        for source, is_urgent in later.sources.items():
            self.sources[source] = self.sources.get(source, False) or is_urgent
        if later.fixed is not None:
            self.fixed = merged(self.fixed, later.fixed) if self.fixed else later.fixed


class PendingUpdates:
    """At most one entry for each container, waiting or in flight.

    An entry names sources of values, not values: the values are computed when they are
    sent, so they are never out of date. Plugins without sources add fixed values.

    An entry is urgent if one of its values is not in force before the runtime applies
    it. Otherwise it is a *record*: its values are in force already, such as by a write
    to the container's cgroup, and only the runtime's own record is to follow. Records
    go when they delay nothing else.

    Args:
        clock: Returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # A container may be in both: its entry in flight has values of earlier changes.
        self._waiting: dict[str, _Entry] = {}
        self._in_flight: dict[str, _Entry] = {}

    def __len__(self) -> int:
        return len(self.urgent())

    @property
    def oldest_seconds(self) -> float:
        """Age of the oldest urgent entry in seconds; 0 if there is none."""
        return self._age(one for _, one in self._entries() if one.is_urgent)

    @property
    def records(self) -> int:
        """Number of containers with a record and nothing urgent."""
        return len({key for key, _ in self._entries()} - self.urgent())

    @property
    def oldest_record_seconds(self) -> float:
        """Age of the oldest record in seconds; 0 if there is none."""
        return self._age(one for _, one in self._entries() if not one.is_urgent)

    @property
    def in_flight(self) -> int:
        """Number of updates in a call that is not answered yet."""
        return len(self._in_flight)

    @property
    def has_records_to_call(self) -> bool:
        """True if records wait that a call may carry."""
        return any(map(_may_be_called_for, self._waiting.values()))

    def urgent(self) -> frozenset[str]:
        """Return the containers with an urgent entry."""
        return frozenset(key for key, one in self._entries() if one.is_urgent)

    def seconds_of(self, container: str) -> float:
        """Return the age of a container's urgent entry in seconds; 0 without one."""
        both = (self._waiting.get(container), self._in_flight.get(container))
        return self._age(one for one in both if one is not None and one.is_urgent)

    def containers(self, source: Source | None = None) -> frozenset[str]:
        """Return the containers that wait or are in flight, by *source* or by any.

        Those of records are among them.
        """
        return frozenset(
            key
            for key, one in self._entries()
            if source is None or source in one.sources
        )

    def add(self, source: Source, containers: Iterable[str]) -> None:
        """Add containers whose update *source* computes."""
        self._add(source, containers, is_urgent=True)

    def add_records(self, source: Source, containers: Iterable[str]) -> None:
        """Add containers whose update *source* computes, which is in force already."""
        self._add(source, containers, is_urgent=False)

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
        """Move urgent updates for one call to the entries in flight.

        Returns:
            Updates by container id, at most `MOST_IN_CALL`, as many as fit into a
            message, but at least one: an update that is too large for any message must
            not wait for ever.
        """
        return self._take(
            lambda one: one.is_urgent and not one.needs_reply, MOST_IN_CALL
        )

    def take_records(self, most: int) -> dict[str, ContainerUpdate]:
        """Move the oldest records, at most so many; see `take`."""
        return self._take(_may_be_called_for, most)

    def _take(
        self, may_go: Callable[[_Entry], bool], most: int
    ) -> dict[str, ContainerUpdate]:
        found: dict[str, ContainerUpdate] = {}
        for key, one in list(self._waiting.items()):
            if len(found) >= most:
                break
            if not may_go(one):
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
        self,
        sent: Mapping[str, ContainerUpdate],
        failed: Collection[str],
        on_taken: OnTaken | None = None,
    ) -> None:
        """Finish a call: failed updates wait for a reply.

        Updates whose values have changed since wait for the next call: a reply with
        other values may have overtaken this one. *on_taken* is called before values are
        compared, because records depend on what the runtime was given; containers that
        have ended meanwhile are left out.
        """
        if on_taken is not None:
            taken = (key for key in self._in_flight if key not in failed)
            on_taken({key: sent[key] for key in taken})
        in_flight, self._in_flight = self._in_flight, {}
        for key, one in in_flight.items():
            if key in failed:
                self._put_back(key, one, needs_reply=True)
            elif _adds(one.value(key), sent[key]):
                self._put(key, _Entry(self._clock(), one.sources))

    def put_back(self, *, needs_reply: bool) -> None:
        """Move the entries in flight back: they were not sent, or they failed."""
        in_flight, self._in_flight = self._in_flight, {}
        for key, one in in_flight.items():
            self._put_back(key, one, needs_reply=needs_reply)

    def abandon(self) -> None:
        """Drop the entries in flight: they can never be sent."""
        self._in_flight = {}

    def attach(
        self, response: UpdatesResponse, busy: str, *, with_records: bool = False
    ) -> dict[str, ContainerUpdate]:
        """Add waiting updates to a reply that can carry them: all urgent ones that fit.

        Records are added only to replies of StopContainer and UpdateContainer, at most
        `MOST_RECORDS_IN_REPLY`. The runtime ignores it if one of them fails, because
        the request has nothing to do with it.

        Args:
            response: Has a repeated field ``update``; its own values win.
            busy: Id of the container that the request is about. Computed values are
                merged into its update, if that is the request. Fixed values for it keep
                waiting, because they are older than the request.
            with_records: Whether records are added. Without it, only those that no
                call can carry any more are.

        Returns:
            What the reply says of the containers that no longer wait, by their ids.
        """
        if not self._waiting:
            return {}
        # An update of the container being created would fail its creation, and one that
        # stops has no use for it.
        is_update = isinstance(response, nri_pb2.UpdateContainerResponse)
        carries_records = isinstance(response, _CARRY_RECORDS)

        def may_ride(one: _Entry) -> bool:
            may = carries_records and (with_records or one.needs_reply)
            return may or one.is_urgent

        carried = self._merge_into(response, may_ride)
        free = UPDATES_BUDGET - response.ByteSize()
        records = MOST_RECORDS_IN_REPLY
        # Few ride, so that filtering first spares a creation the sorting of records.
        riders = [item for item in self._waiting.items() if may_ride(item[1])]
        for key, one in sorted(riders, key=_urgent_first):
            if key == busy and not (is_update and one.sources):
                continue
            if not one.is_urgent and not records:
                break
            if (value := one.value(key)) is None:
                del self._waiting[key]
                continue
            message = _message_of(one, value)
            if (size := entry_size(message)) <= free:
                free -= size
                records -= not one.is_urgent
                response.update.append(message)
                carried[key] = value
                del self._waiting[key]
        return carried

    def _merge_into(
        self, response: UpdatesResponse, may_ride: Callable[[_Entry], bool]
    ) -> dict[str, ContainerUpdate]:
        """Merge entries into the reply's own updates: no container is there twice."""
        carried: dict[str, ContainerUpdate] = {}
        for update in response.update:
            key = update.container_id
            if (entry := self._waiting.get(key)) is None or not may_ride(entry):
                continue
            del self._waiting[key]
            if value := entry.value(key):
                whole = _message_of(entry, value)
                merge_update(whole, update)
                update.CopyFrom(whole)
                carried[key] = from_message(update)
        return carried

    def _age(self, entries: Iterable[_Entry]) -> float:
        first = min((one.since for one in entries), default=_NEVER)
        return max(0.0, self._clock() - first)

    def _add(
        self, source: Source, containers: Iterable[str], *, is_urgent: bool
    ) -> None:
        now = self._clock()
        for key in containers:
            self._put(key, _Entry(now, {source: is_urgent}))

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


def _may_be_called_for(one: _Entry) -> bool:
    return not (one.is_urgent or one.needs_reply)


def _urgent_first(item: tuple[str, _Entry]) -> bool:
    return not item[1].is_urgent


def _message_of(entry: _Entry, value: ContainerUpdate) -> nri_pb2.ContainerUpdate:
    message = to_message(value)
    if not entry.is_urgent:
        message.ignore_failure = True
    return message


def _adds(value: ContainerUpdate | None, sent: ContainerUpdate) -> bool:
    """Return whether *value* has something that *sent* does not have."""
    # A part of what was sent adds nothing: a record has None as soon as it was taken.
    return value not in (None, sent) and merged(sent, value) != sent


def merged(first: ContainerUpdate, *later: ContainerUpdate) -> ContainerUpdate:
    """Merge updates of one container; a later value of a field wins."""
    if not later:
        return first
    target = to_message(first)
    for one in later:
        merge_update(target, to_message(one))
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
        kind, present = field.message_type, getattr(target, field.name)
        if kind is not None and is_map(kind):
            present.update(value)
        elif field.is_repeated:
            _overlay_entries(_KEYS.get(field.name), present, value)
        elif kind is None:
            setattr(target, field.name, value)
        elif is_wrapper(kind):
            present.CopyFrom(value)
        else:
            overlay(present, value)


def _overlay_entries(name: str | None, target: Any, change: Any) -> None:
    if name is not None:
        key = operator.attrgetter(name)
        new = {key(entry) for entry in change}
        kept = [entry for entry in target if key(entry) not in new]
        change = [*kept, *change]
    del target[:]
    target.extend(change)
