"""The list/watch machine step by step: its requests, pauses and deadlines."""

from __future__ import annotations

import json
from typing import Final

import hypothesis.strategies as st
import pytest
from hypothesis import given

from nri_resmgr.agent.api import Changed, Failing, Resource, Target
from nri_resmgr.agent.api.answers import Answer
from nri_resmgr.agent.api.errors import Unauthorized, Unreachable
from nri_resmgr.agent.api.queries import Ask
from nri_resmgr.agent.api.watch import Action, Renew, Report, Wait, WatchMachine

SERVER: Final = "https://10.96.0.1:443"
BALLOONS: Final = Resource(
    "config.nri", "v1alpha1", "balloonspolicies", "BalloonsPolicy", True
)
EMPTY: Final = Answer(200, b'{"metadata":{"resourceVersion":"7"},"items":null}')
CHANCES: Final = st.floats(0, 1)


def _machine(name: str = "default") -> WatchMachine:
    target = Target(BALLOONS, "kube-system", name)
    return WatchMachine(target, SERVER, "the token of FILE")


def _opened(chance: float = 0.5) -> WatchMachine:
    machine = _machine()
    machine.start()
    machine.answered(EMPTY, chance)
    machine.opened()
    return machine


def _refused(status: int, **headers: str) -> Answer:
    return Answer(
        status, b"", {name.replace("_", "-"): headers[name] for name in headers}
    )


def _pause(actions: list[Action]) -> float:
    wait = actions[-1]
    assert isinstance(wait, Wait)
    return wait.seconds


def _ask(actions: list[Action]) -> Ask:
    ask = actions[-1]
    assert isinstance(ask, Ask)
    return ask


@given(chance=CHANCES)
def test_a_watch_has_a_random_end_and_a_deadline_behind_it(chance: float) -> None:
    machine = _machine()
    first = _ask(machine.start())
    ask = _ask(machine.answered(EMPTY, chance))

    seconds = int(ask.query["timeoutSeconds"])
    assert 300 <= seconds <= 600
    assert ask.deadline == seconds + 30
    assert (ask.is_watch, ask.query["resourceVersion"]) == (True, "7")
    assert (first.is_watch, first.deadline) == (False, 30)
    # Any version would do for a server's cache, which can be older than what was seen.
    assert "resourceVersion" not in first.query


def test_a_watch_that_lasted_as_agreed_is_continued_at_once() -> None:
    machine = _opened(chance=0)

    ask = _ask(machine.ended(299.5, 0.9))

    assert ask.query["resourceVersion"] == "7"


@given(chance=CHANCES)
def test_pauses_are_random_as_a_whole_and_grow_to_5_minutes(chance: float) -> None:
    machine = _machine()
    machine.start()
    pauses = []
    for _ in range(20):
        pauses.append(_pause(machine.failed(Unreachable(SERVER, "away"), chance)))
        machine.waited(chance)

    ends = [min(300.0, 2.0**number) for number in range(20)]
    assert pauses == [chance * end for end in ends]


def test_a_watch_that_has_worked_makes_pauses_short_again() -> None:
    machine = _machine()
    machine.start()
    for _ in range(9):
        machine.failed(Unreachable(SERVER, "away"), 1.0)
        machine.waited(1.0)
    machine.answered(EMPTY, 1.0)
    machine.opened()

    assert _pause(machine.ended(29.0, 1.0)) == 300.0
    machine.waited(1.0)
    machine.opened()
    assert _pause(machine.ended(31.0, 1.0)) == 1.0


@given(chance=CHANCES)
def test_a_missing_kind_is_polled_every_5_minutes(chance: float) -> None:
    machine = _machine()
    machine.start()

    for _ in range(5):
        actions = machine.answered(_refused(404), chance)
        assert 240 <= _pause(actions) <= 360
        assert actions[-1] == Wait(_pause(actions), BALLOONS)
        machine.waited(chance)


@given(chance=CHANCES, seconds=st.integers(0, 10**12))
def test_a_server_is_left_alone_as_long_as_it_asks(chance: float, seconds: int) -> None:
    machine = _machine()
    machine.start()

    pause = _pause(machine.answered(_refused(429, retry_after=str(seconds)), chance))

    # And not for ever.
    assert min(seconds, 600) <= pause <= min(seconds, 600) + 1


def test_a_status_can_ask_for_a_pause_as_well() -> None:
    machine = _machine()
    machine.start()
    body = json.dumps({"code": 503, "details": {"retryAfterSeconds": 9}})

    assert _pause(machine.answered(Answer(503, body.encode()), 0.0)) == 9.0


def test_credentials_are_read_before_each_attempt_after_a_401() -> None:
    machine = _machine()
    machine.start()

    first = machine.answered(_refused(401), 0.5)
    second = machine.answered(_refused(401), 0.5)
    third = machine.waited(0.5)

    assert isinstance(first[0], Renew)
    assert not _ask(first).is_watch
    assert isinstance(second[0], Report)
    assert isinstance(second[0].news, Failing)
    assert isinstance(second[0].news.error, Unauthorized)
    assert _pause(second) == 0.5
    assert isinstance(third[0], Renew)


def test_versions_that_expire_again_and_again_are_no_loop() -> None:
    machine = _machine()
    machine.start()
    expired = b'{"type":"ERROR","object":{"code":410,"reason":"Expired"}}\n'
    pauses = 0
    for _ in range(20):
        ask = _ask(machine.answered(EMPTY, 1.0))
        assert ask.is_watch
        machine.opened()
        (action,) = machine.received(expired, 0.0, 1.0)
        if isinstance(action, Wait):
            pauses += 1
            assert not _ask(machine.waited(1.0)).is_watch

    assert pauses == 19


def test_nothing_counts_after_an_error_in_a_stream() -> None:
    expired = b'{"type":"ERROR","object":{"code":410,"reason":"Expired"}}\n'
    added = b'{"type":"ADDED","object":{"metadata":{"name":"default","uid":"u",'
    added += b'"resourceVersion":"9"}}}\n'

    (action,) = _opened().received(expired + added, 1.0, 0.5)

    assert isinstance(action, Ask)
    assert not action.is_watch


def test_a_right_that_comes_and_goes_is_reported_each_time() -> None:
    machine = _machine()
    machine.start()
    reports = 0
    for _ in range(3):
        reports += isinstance(machine.answered(_refused(403), 0.5)[0], Report)
        machine.waited(0.5)
        machine.answered(EMPTY, 0.5)
        machine.opened()
        machine.ended(40.0, 0.5)
        machine.waited(0.5)

    assert reports == 3


def test_names_are_no_selectors() -> None:
    ask = _ask(_machine("group.a,metadata.name=b\\").start())

    assert ask.query == {"fieldSelector": r"metadata.name=group.a\,metadata.name\=b\\"}


@pytest.mark.parametrize(
    "line",
    [
        b"not JSON\n",
        b"{}\n",
        b'{"type":"ADDED","object":{}}\n',
        b'{"type":"ADDED","object":{"metadata":{"name":"a"}}}\n',
        b'{"type":"BOOKMARK","object":{"metadata":{}}}\n',
        b'{"type":"ERROR","object":"no Status"}\n',
        b'{"type":"ADDED","object":' + b"[" * 100_000 + b"\n",
    ],
)
def test_nonsense_is_an_error_and_no_end(line: bytes) -> None:
    actions = _opened().received(line, 1.0, 0.5)

    assert isinstance(actions[0], Report)
    assert isinstance(actions[0].news, Failing)
    assert _pause(actions) <= 1.0


def test_a_page_with_a_malformed_object_loses_none_of_the_others() -> None:
    good = '{"metadata":{"name":"default","uid":"u","resourceVersion":"9"}}'
    page = '{"metadata":{"resourceVersion":"9"},"items":[%s]}'
    machine = _machine()
    machine.start()

    machine.answered(Answer(200, (page % f"{good},7").encode()), 0.5)
    machine.waited(0.5)
    actions = machine.answered(Answer(200, (page % good).encode()), 0.5)

    assert isinstance(actions[0], Report)
    assert isinstance(actions[0].news, Changed)


def test_a_type_of_event_that_is_not_known_is_left_out() -> None:
    machine = _opened()

    assert machine.received(b'{"type":"NEW","object":{}}\n\n', 1.0, 0.5) == []
