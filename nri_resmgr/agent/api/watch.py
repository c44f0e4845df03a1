"""The list/watch machine: what has happened in, what to do out.

It has no clock, socket, event loop or random numbers. `nri_resmgr.agent.api.watcher`
runs it; a test can play any server.

The machine lists all there is, then watches from the version of the list. A watch that
ends, for whatever reason, is continued from the version of the last event or bookmark;
where the server no longer has that version, the machine lists again. What is missing in
a list has been deleted. Lists ask for no version: they are answered from what is
stored, so that an object cannot disappear because a server's cache is old.

What is kept of an object is what shows whether it changed, not the object.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Final, TypeAlias

import msgspec

from nri_resmgr.agent.api.answers import OK, Answer, Asked, error_of, error_of_event
from nri_resmgr.agent.api.errors import (
    ApiError,
    BadAnswer,
    BadObject,
    Forbidden,
    KindMissing,
    ServerFailed,
    TooLarge,
    Unauthorized,
    VersionExpired,
)
from nri_resmgr.agent.api.lines import Lines, LineTooLong
from nri_resmgr.agent.api.news import (
    Changed,
    Failing,
    News,
    Recovered,
    Removed,
    Synced,
    Target,
    Unreadable,
)
from nri_resmgr.agent.api.objects import (
    MOST_BYTES,
    ApiObject,
    Malformed,
    read_event,
    read_object,
    read_page,
    read_version,
)
from nri_resmgr.agent.api.pace import Backoff, asleep
from nri_resmgr.agent.api.queries import Ask, ask_page, ask_watch
from nri_resmgr.agent.api.resources import Ref, Resource

# Of a list, all objects together. A page that is larger is asked for in smaller ones.
MOST_BYTES_OF_A_PAGE: Final = 4 * MOST_BYTES
# Objects of a page, at first.
_PAGE: Final = 250
# Around the object in a line of a watch: {"type":"MODIFIED","object":...}.
_ENVELOPE: Final = 1024
# A watch is ended by the server after 5 to 10 minutes, which spreads the next ones.
_WATCH: Final = 300.0
# The server's time begins earlier than ours.
_EARLY: Final = 5.0
# A watch that lasted as long has worked.
_WORKED: Final = 30.0


class Wait(msgspec.Struct, frozen=True):
    """Call `waited` after some seconds; abandon the response that is being read.

    Attributes:
        seconds: The seconds.
        kind: Where a kind is missing: it. Call `waited` when it is served instead; the
            seconds are for a server that does not let its kinds be looked at.
    """

    seconds: float
    kind: Resource | None = None


class Renew(msgspec.Struct, frozen=True):
    """Read the credentials again, before the next request."""


class Report(msgspec.Struct, frozen=True):
    """Pass on what is new."""

    news: News


Action: TypeAlias = Ask | Wait | Renew | Report
Key: TypeAlias = tuple[object, ...]


class _Phase(enum.Enum):
    LISTING = enum.auto()
    OPENING = enum.auto()
    WATCHING = enum.auto()
    WAITING = enum.auto()


class WatchMachine:
    """One watch, for ever.

    Call `start`, do what it returns, and go on with the method for what happens. Each
    returns what to do next, in order; every list but that of `received`, which may be
    without, ends with an `Ask` or a `Wait`.

    Args:
        target: What to watch.
        server: Address of the API server, for errors.
        credentials: By which it is asked, for errors.
    """

    def __init__(self, target: Target, server: str, credentials: str) -> None:
        self._target = target
        self._server = server
        self._credentials = credentials
        self._known: dict[str, Key] = {}
        self._listed: set[str] = set()
        self._page = _PAGE
        self._rest = ""
        self._version = ""
        self._lines = Lines(MOST_BYTES + _ENVELOPE)
        self._backoff = Backoff()
        self._lasts = 0
        self._failing: tuple[object, ...] | None = None
        self._is_renewed = False
        self._phase = _Phase.WAITING

    def start(self) -> list[Action]:
        """Begin."""
        return [self._list()]

    def answered(self, answer: Answer, chance: float) -> list[Action]:
        """A list was answered, or a watch with another status than 200.

        Args:
            answer: All of it.
            chance: A random number from 0 to 1, as everywhere.
        """
        if answer.status != OK:
            return self._failed(error_of(answer, self._asked()), chance)
        try:
            return self._take_page(answer.body, chance)
        except Malformed as error:
            return self._failed(BadAnswer(self._server, str(error)), chance)

    def opened(self) -> list[Action]:
        """A watch was answered with 200; lines follow."""
        self._phase = _Phase.WATCHING
        self._is_renewed = False
        self._lines.clear()
        return self._recovered()

    def received(self, piece: bytes, lasted: float, chance: float) -> list[Action]:
        """A piece of the response of a watch arrived; it can be cut anywhere.

        Args:
            piece: Some bytes.
            lasted: For how many seconds the watch is open.
            chance: A random number from 0 to 1.
        """
        self._note(lasted)
        actions: list[Action] = []
        try:
            for line in self._lines.feed(piece):
                actions += self._take_line(line, chance)
                if self._phase is not _Phase.WATCHING:
                    break
        except LineTooLong:
            # The list has its name, and says the same of it.
            self._version = ""
            actions.append(self._wait(self._backoff.next(chance)))
        except Malformed as error:
            self._version = ""
            actions += self._failed(BadAnswer(self._server, str(error)), chance)
        return actions

    def ended(self, lasted: float, chance: float) -> list[Action]:
        """The response of a watch ended, was cut, or passed its deadline.

        Args:
            lasted: For how many seconds the watch was open.
            chance: A random number from 0 to 1.
        """
        self._note(lasted)
        if lasted >= self._lasts - _EARLY:
            return [self._watch(chance)]
        # A server that stops ends all its watches at once.
        return [self._wait(self._backoff.next(chance))]

    def failed(self, error: ApiError, chance: float) -> list[Action]:
        """A request had no answer, or one that was too large to be read."""
        is_part = not self._target.name and self._page > 1
        if isinstance(error, TooLarge) and is_part:
            self._page = max(1, self._page // 4)
            return [self._list()]
        return self._failed(error, chance)

    def waited(self, chance: float) -> list[Action]:
        """The time of a `Wait` is over."""
        renewal: list[Action] = [Renew()] if self._is_renewed else []
        return [*renewal, self._watch(chance) if self._version else self._list()]

    # Requests

    def _list(self) -> Ask:
        self._phase = _Phase.LISTING
        self._listed = set()
        self._rest = ""
        self._version = ""
        return self._ask_page()

    def _ask_page(self) -> Ask:
        return ask_page(self._target, self._page, self._rest)

    def _watch(self, chance: float) -> Ask:
        self._phase = _Phase.OPENING
        self._lasts = int(_WATCH + _WATCH * chance)
        return ask_watch(self._target, self._version, self._lasts)

    def _wait(self, seconds: float, kind: Resource | None = None) -> Action:
        self._phase = _Phase.WAITING
        return Wait(seconds, kind)

    # What a server sends

    def _take_page(self, body: bytes, chance: float) -> list[Action]:
        self._is_renewed = False
        page = read_page(body)
        # All are read before any is noted: a page with a malformed one reports nothing.
        items = [(self._read(json), json) for json in page.items]
        actions: list[Action] = []
        for found, json in items:
            self._listed.add(found.name)
            actions += self._see(found, json)
        if page.rest:
            self._rest = page.rest
            return [*actions, self._ask_page()]
        actions += self._remove_unlisted()
        self._listed = set()
        self._version = page.version
        return [*actions, Report(Synced()), self._watch(chance)]

    def _remove_unlisted(self) -> Iterator[Action]:
        for name in [name for name in self._known if name not in self._listed]:
            yield self._remove(name)

    def _take_line(self, line: bytes, chance: float) -> list[Action]:
        event = read_event(line)
        json = bytes(event.object)
        match event.type:
            case "ADDED" | "MODIFIED":
                found = self._read(json)
                self._version = found.version
                return self._see(found, json)
            case "DELETED":
                found = self._read(json)
                self._version = found.version
                return [self._remove(found.name)] if found.name in self._known else []
            case "BOOKMARK":
                self._version = read_version(json)
            case "ERROR":
                return self._failed(error_of_event(json, self._asked()), chance)
        return []

    def _read(self, json: bytes) -> ApiObject:
        return read_object(json, self._target.resource, with_body=False)

    def _see(self, found: ApiObject, json: bytes) -> list[Action]:
        key = self._key(found)
        if self._known.get(found.name) == key:
            return []
        self._known[found.name] = key
        return [Report(self._news_of(found, json))]

    def _news_of(self, found: ApiObject, json: bytes) -> News:
        if self._target.metadata_only:
            return Changed(found)
        what = str(Ref(found.resource, found.name, found.namespace))
        if len(json) > MOST_BYTES:
            return Unreadable(found.name, found.uid, TooLarge(what, MOST_BYTES))
        try:
            return Changed(read_object(json, found.resource, with_body=True))
        except Malformed as error:
            return Unreadable(found.name, found.uid, BadObject(what, str(error)))

    def _key(self, found: ApiObject) -> Key:
        if self._target.metadata_only:
            return (found.uid, found.labels, found.annotations)
        return (found.uid, found.generation or found.version)

    def _remove(self, name: str) -> Action:
        return Report(Removed(name, str(self._known.pop(name)[0])))

    # Failures

    def _note(self, lasted: float) -> None:
        if lasted >= _WORKED:
            self._backoff.reset()

    def _asked(self) -> Asked:
        target = self._target
        return Asked(
            verb="list" if self._phase is _Phase.LISTING else "watch",
            ref=Ref(target.resource, target.name, target.namespace),
            server=self._server,
            credentials=self._credentials,
        )

    def _failed(self, error: ApiError, chance: float) -> list[Action]:
        is_first = self._backoff.is_fresh
        match error:
            case VersionExpired():
                self._version = ""
                pause = self._backoff.next(chance)
                return [self._list() if is_first else self._wait(pause)]
            case Unauthorized() if not self._is_renewed:
                self._is_renewed = True
                again = self._watch(chance) if self._version else self._list()
                return [Renew(), again]
            case KindMissing():
                wait = self._wait(asleep(chance), self._target.resource)
                return [*self._report(error), wait]
            # Before, a server may have just started: it refuses everything until it has
            # read its rules.
            case Forbidden() if self._backoff.is_at_its_end:
                return [*self._report(error), self._wait(asleep(chance))]
            case ServerFailed(retry_after=float()) if is_first:
                # As for a second after the start of an API server: no reason to worry.
                reports: list[Action] = []
            case _:
                reports = self._report(error)
        pause = self._backoff.next(chance, error.retry_after)
        return [*reports, self._wait(pause)]

    def _report(self, error: ApiError) -> list[Action]:
        sort = (type(error), error.status if isinstance(error, ServerFailed) else 0)
        if self._failing == sort:
            return []
        self._failing = sort
        return [Report(Failing(error))]

    def _recovered(self) -> list[Action]:
        if self._failing is None:
            return []
        self._failing = None
        return [Report(Recovered())]
