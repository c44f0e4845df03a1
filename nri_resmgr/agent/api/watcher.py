"""Runs a list/watch machine on a transport: its clock, random numbers and requests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from random import random

from nri_resmgr.agent.api.answers import OK
from nri_resmgr.agent.api.errors import ApiError
from nri_resmgr.agent.api.kinds import MissingKinds
from nri_resmgr.agent.api.news import Failing, News, Recovered, Target
from nri_resmgr.agent.api.queries import Ask
from nri_resmgr.agent.api.transport import BROKEN, Call, Opened, Transport
from nri_resmgr.agent.api.watch import (
    MOST_BYTES_OF_A_PAGE,
    Action,
    Renew,
    Report,
    Wait,
    WatchMachine,
)


class Watcher:
    """A watch, for ever.

    Args:
        transport: Where to send requests.
        target: What to watch.
        receive: Takes the reports.
        kinds: Notices when a missing kind is served.
        sleep: Waits for some seconds.

    Attributes:
        target: What is watched.
        heard: When the server last said what there is, by the monotonic clock: by a
            list, a change or a bookmark. None before it did.
        error: Why the watch does not work; None while it does.
    """

    def __init__(
        self,
        transport: Transport,
        target: Target,
        receive: Callable[[News], None],
        kinds: MissingKinds,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._sleep = sleep
        self._kinds = kinds
        self._transport = transport
        self._receive = receive
        self.target = target
        self.heard: float | None = None
        self.error: ApiError | None = None
        self._machine = WatchMachine(
            target, transport.server, transport.credentials.described
        )

    async def run(self) -> None:
        """Watch until cancelled."""
        step = self._take(self._machine.start())
        while True:
            actions = await self._do(step)
            step = self._take(actions)

    def _take(self, actions: Sequence[Action]) -> Ask | Wait:
        """Do what takes no time; return the request or pause at the end."""
        step = self._report(actions)
        if step is None:
            raise AssertionError("a list of actions ends with a request or a pause")
        return step

    def _report(self, actions: Sequence[Action]) -> Ask | Wait | None:
        for action in actions:
            match action:
                case Report():
                    self._note(action.news)
                    self._receive(action.news)
                case Renew():
                    self._transport.credentials.renew()
                case Ask() | Wait():
                    return action
        return None

    def _note(self, news: News) -> None:
        match news:
            case Failing(error):
                self.error = error
            case Recovered():
                self.error = None

    async def _do(self, step: Ask | Wait) -> Sequence[Action]:
        if isinstance(step, Wait):
            if step.kind is not None:
                await self._kinds.wait(step.kind, step.seconds)
            else:
                await self._sleep(step.seconds)
            return self._machine.waited(chance())
        try:
            return await self._ask(step)
        except ApiError as error:
            return self._machine.failed(error, chance())

    async def _ask(self, ask: Ask) -> Sequence[Action]:
        call = Call(
            path=ask.path,
            query=ask.query,
            verb="watch" if ask.is_watch else "list",
            headers={"accept": ask.accept},
            deadline=ask.deadline,
            most=MOST_BYTES_OF_A_PAGE,
        )
        if not ask.is_watch:
            answer = await self._transport.send(call)
            if answer.status == OK:
                self.heard = time.monotonic()
            return self._machine.answered(answer, chance())
        async with self._transport.open(call) as opened:
            if opened.status == OK:
                return await self._follow(opened, call)
            answer = await self._transport.read(opened, call)
            return self._machine.answered(answer, chance())

    async def _follow(self, opened: Opened, call: Call) -> Sequence[Action]:
        """Read a watch to its end, or until the machine has something else to do."""
        begin = time.monotonic()
        until = asyncio.get_running_loop().time() + call.deadline
        self._report(self._machine.opened())
        while piece := await next_piece(opened, until):
            self.heard = time.monotonic()
            lasted = self.heard - begin
            step = self._report(self._machine.received(piece, lasted, chance()))
            if step is not None:
                return [step]
        return self._machine.ended(time.monotonic() - begin, chance())


async def next_piece(opened: Opened, until: float) -> bytes:
    """Return a piece of a watch; none at its end, be it cut or past its deadline."""
    try:
        async with asyncio.timeout_at(until):
            return await anext(opened.pieces, b"")
    except BROKEN:
        return b""


def chance() -> float:
    """Return a random number from 0 to 1, which spreads the load of many nodes."""
    return random()  # noqa: S311 - no secret
