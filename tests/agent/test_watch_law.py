"""However a server and the network behave, in the end the view is the server's."""

from __future__ import annotations

import random
from typing import Final

import hypothesis.strategies as st
import pytest
from hypothesis import given

from nri_resmgr.agent.api.answers import Answer
from nri_resmgr.agent.api.errors import TooLarge, Unreachable
from nri_resmgr.agent.api.news import (
    Changed,
    Failing,
    News,
    Recovered,
    Removed,
    Synced,
    Target,
)
from nri_resmgr.agent.api.queries import Ask
from nri_resmgr.agent.api.resources import Resource
from nri_resmgr.agent.api.watch import Action, Renew, Report, Wait, WatchMachine
from tests.agent.model_server import ModelServer

BALLOONS: Final = Resource(
    "config.nri", "v1alpha1", "balloonspolicies", "BalloonsPolicy", True
)
SERVER: Final = "https://10.96.0.1:443"
NAMES: Final = ("default", "group.a", "node.b", "node.c", "node.d")
# Of an answer that is no success: what a server or a proxy before it may say.
REFUSALS: Final = (
    Answer(401, b'{"kind":"Status","code":401}'),
    Answer(403, b'{"kind":"Status","code":403,"message":"no"}'),
    Answer(404, b"404 page not found\n"),
    Answer(410, b'{"kind":"Status","code":410}'),
    Answer(429, b"", {"retry-after": "1"}),
    Answer(500, b"{}"),
    Answer(503, b"<html>", {"retry-after": "soon"}),
    Answer(302, b""),
    Answer(200, b"<html>a portal</html>"),
    Answer(200, b"[" * 5_000),
)


class Life:
    """A machine, a model of a server, and what the machine reported.

    Args:
        target: What is watched.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self.server = ModelServer()
        self.machine = WatchMachine(target, SERVER, "the token of FILE")
        self.view: dict[str, tuple[str, int]] = {}
        self.published: dict[str, list[int]] = {}
        self.failing = False
        self.open: Ask | None = None
        self.sent = 0  # by the watch that is open, up to this version
        self.next: Ask | Wait = Wait(0)
        self.follow(self.machine.start())

    def step(self, number: int) -> None:
        """Do one of all things that can happen; a number is cheaper than a rule."""
        kind, number = number % 12, number // 12
        dice = random.Random(number)  # noqa: S311 - any choice
        match kind:
            case 0 | 1:
                self.server.change(dice.choice(NAMES))
            case 2:
                self.server.touch(dice.choice(NAMES))
            case 3:
                self.server.delete(dice.choice(NAMES))
            case 4:
                self.server.delete(name := dice.choice(NAMES))
                self.server.change(name)
            case 5:
                self.server.compact()
            case 6:
                self.refuse(dice.random(), dice.choice(REFUSALS))
            case 7:
                self.be_silent(dice.random())
            case 8 | 9:
                self.serve(dice.random(), dice.choice([1, 2, 3, 250]))
            case _:
                self.stream(dice)

    # What the machine says

    def follow(self, actions: list[Action]) -> None:
        assert not any(isinstance(one, Ask | Wait) for one in actions[:-1])
        for action in actions:
            match action:
                case Report():
                    self.take(action.news)
                case Ask() | Wait():
                    self.next, self.open = action, None
                case Renew():
                    assert isinstance(actions[-1], Ask)

    def take(self, news: News) -> None:
        match news:
            case Changed(found):
                assert self.view.get(found.name) != (found.uid, found.generation)
                self.view[found.name] = (found.uid, found.generation)
                self.published.setdefault(found.uid, []).append(found.generation)
                assert found.body["metadata"]["uid"] == found.uid
            case Removed():
                assert self.view.pop(news.name)[0] == news.uid
            case Failing():
                self.failing = True
                assert str(news.error)
            case Recovered():
                assert self.failing
                self.failing = False
            case Synced():
                pass

    # What happens to requests

    def refuse(self, chance: float, answer: Answer) -> None:
        if self.open is not None or not isinstance(self.next, Ask):
            return
        if self.next.is_watch and answer.status == 200:
            self.follow(self.machine.opened())
            self.follow(self.machine.received(answer.body, 0.1, chance))
            if isinstance(self.next, Ask) and self.next.is_watch:
                self.follow(self.machine.ended(0.2, chance))
            return
        self.follow(self.machine.answered(answer, chance))

    def be_silent(self, chance: float) -> None:
        if self.open is None and isinstance(self.next, Ask):
            self.follow(self.machine.failed(Unreachable(SERVER, "refused"), chance))

    def serve(self, chance: float, most: int = 250) -> None:
        if isinstance(self.next, Wait):
            self.follow(self.machine.waited(chance))
        elif self.open is None and self.next.is_watch:
            self.open = self.next
            self.sent = int(self.open.query["resourceVersion"])
            self.follow(self.machine.opened())
        elif self.open is None:
            self.serve_list(self.next, chance, most)

    def serve_list(self, ask: Ask, chance: float, most: int) -> None:
        if int(ask.query.get("limit", 0)) > most:
            error = TooLarge("the answer", 1000)
            self.follow(self.machine.failed(error, chance))
        else:
            self.follow(self.machine.answered(self.server.list(ask.query), chance))

    def stream(self, dice: random.Random) -> None:
        """Send all there is, in pieces, up to somewhere; then end."""
        if self.open is None:
            return
        lasted = dice.uniform(0, 600)
        stream = b"".join(self.server.events(self.open.query, self.sent))
        if self.sent >= self.server.compacted and dice.random() < 0.5:
            stream += self.server.bookmark()
        end = dice.choice([len(stream), dice.randint(0, len(stream))])
        self.send(stream[:end], lasted, dice)
        if self.open is not None:
            self.follow(self.machine.ended(lasted, dice.random()))

    def send(self, stream: bytes, lasted: float, dice: random.Random) -> None:
        while stream and self.open is not None:
            size = dice.choice([1, 7, 100, 100_000])
            piece, stream = stream[:size], stream[size:]
            self.follow(self.machine.received(piece, lasted, dice.random()))

    # In the end

    def finish(self) -> None:
        """Be a server without faults: soon the views are equal, and a watch is open."""
        for _ in range(60):
            if self.open is not None:
                self.send_all()
                if self.open is not None:
                    break
            self.serve(0)
        assert self.open is not None
        assert not self.failing
        self.check()
        self.server.change("default")
        self.server.delete("node.b")
        self.send_all()
        self.check()

    def send_all(self) -> None:
        assert self.open is not None
        stream = b"".join(self.server.events(self.open.query, self.sent))
        self.sent = self.server.version
        self.send(stream, 1, random.Random(1))  # noqa: S311 - where to cut

    def check(self) -> None:
        there = {
            name: (found["metadata"]["uid"], found["metadata"]["generation"])
            for name, found in self.server.objects.items()
            if self.target.name in ("", name)
        }
        assert self.view == there
        # Each generation once, in order.
        for generations in self.published.values():
            assert generations == sorted(set(generations))


@pytest.mark.parametrize("name", ["", "default"])
# Short lives do not get as far as an object that goes while its version expires.
@given(steps=st.lists(st.integers(0, 1 << 20), min_size=40, max_size=100))
def test_the_view_becomes_that_of_the_server(name: str, steps: list[int]) -> None:
    life = Life(Target(BALLOONS, "kube-system", name))

    for step in steps:
        life.step(step)

    life.finish()
