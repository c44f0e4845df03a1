"""Notices when the API server serves a kind that it did not have.

What waits for a kind does not ask for it: one look at the kinds of its group serves all
that wait, and any account may take that look.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from random import random
from typing import Final

import attrs
import msgspec

from nri_resmgr.agent.api.answers import OK, Answer, Asked, error_of
from nri_resmgr.agent.api.errors import ApiError, BadAnswer, KindMissing
from nri_resmgr.agent.api.pace import Backoff
from nri_resmgr.agent.api.resources import Ref, Resource
from nri_resmgr.agent.api.transport import Call, Transport

LOOK: Final = 30.0
"""Seconds between two looks at a group, and up to as many more, at random."""

_VAIN: Final = 3
_RECENT: Final = 600.0  # seconds

_MOST: Final = 1 << 20  # bytes of the kinds of a group; each has some 200


class _Kind(msgspec.Struct, frozen=True):
    name: str


class _Kinds(msgspec.Struct, frozen=True):
    """``metav1.APIResourceList``."""

    resources: list[_Kind] = []


_KINDS: Final = msgspec.json.Decoder(_Kinds)


@attrs.define(eq=False)
class _Waiter:
    """What waits for a kind, until when if its group cannot be looked at."""

    plural: str
    until: float
    served: asyncio.Future[bool] = attrs.field(
        factory=lambda: asyncio.get_running_loop().create_future()
    )


class MissingKinds:
    """Looks for kinds as long as something waits for them.

    Args:
        transport: Sends the requests.
        sleep: Waits for some seconds.
    """

    def __init__(
        self,
        transport: Transport,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._transport = transport
        self._sleep = sleep
        self._waiting: dict[tuple[str, str], list[_Waiter]] = {}
        self._looking: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._found: dict[Resource, tuple[int, float]] = {}  # how often, and when last

    async def wait(self, resource: Resource, seconds: float) -> None:
        """Wait until a kind is served.

        Args:
            resource: The kind.
            seconds: How long to wait where looks do not help: the kinds of its group
                cannot be looked at, or the kind is among them again and again, and its
                objects, or a part of them, are not.
        """
        now = asyncio.get_running_loop().time()
        times, last = self._found.get(resource, (0, 0.0))
        if times >= _VAIN and now - last < _RECENT:
            await self._sleep(seconds)
            return
        if await self._served(resource, now + seconds):
            count = times + 1 if now - last < _RECENT else 1
            self._found[resource] = count, now

    async def _served(self, resource: Resource, until: float) -> bool:
        """Wait until a look finds a kind; return whether one did."""
        group = resource.group, resource.version
        waiter = _Waiter(resource.plural, until)
        waiting = self._waiting.setdefault(group, [])
        waiting.append(waiter)
        looking = self._looking.get(group)
        if looking is None or looking.done():
            task = asyncio.create_task(self._look(group, waiting))
            self._looking[group] = task
        try:
            return await waiter.served
        finally:
            waiting.remove(waiter)
            if not waiting:
                del self._waiting[group]
                self._looking.pop(group).cancel()

    async def _look(self, group: tuple[str, str], waiting: list[_Waiter]) -> None:
        try:
            await self._look_again_and_again(group, waiting)
        finally:
            _wake(waiting, found=False)  # after a fault of ours: each asks for itself

    async def _look_again_and_again(
        self, group: tuple[str, str], waiting: list[_Waiter]
    ) -> None:
        backoff, loop = Backoff(), asyncio.get_running_loop()
        pause = 0.0
        while True:
            await self._sleep(max(pause, LOOK + LOOK * random()))  # noqa: S311 - spread, no secret
            try:
                served = await self._kinds(*group)
            except ApiError as error:
                pause = backoff.next(random(), error.retry_after)  # noqa: S311 - likewise
                now = loop.time()
                _wake((one for one in waiting if one.until < now), found=False)
            else:
                pause = 0.0
                backoff.reset()
                _wake((one for one in waiting if one.plural in served), found=True)

    async def _kinds(self, group: str, version: str) -> frozenset[str]:
        """Return the plurals that a group has; none if there is no such group.

        Raises:
            ApiError: The server does not say.
        """
        path = Resource(group, version, "", "", is_namespaced=False).path()
        answer = await self._transport.send(Call(path, most=_MOST))
        if answer.status != OK:
            error = self._error_of(answer, group, version)
            if isinstance(error, KindMissing):
                return frozenset()
            raise error
        try:
            found = _KINDS.decode(answer.body)
        except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
            raise BadAnswer(self._transport.server, str(error)) from None
        return frozenset(one.name for one in found.resources)

    def _error_of(self, answer: Answer, group: str, version: str) -> ApiError:
        resource = Resource(group, version, "", "", is_namespaced=False)
        credentials = self._transport.credentials.described
        asked = Asked("get", Ref(resource, ""), self._transport.server, credentials)
        return error_of(answer, asked)


def _wake(waiters: Iterable[_Waiter], *, found: bool) -> None:
    for one in waiters:
        if not one.served.done():
            one.served.set_result(found)
