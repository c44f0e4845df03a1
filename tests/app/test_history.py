"""What happened is kept in order, story by story, and never grows beyond bounds."""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.app.observers.observer import PolicyDecision, Subject
from nri_resmgr.app.observing.history import MAX_CHANGES, MAX_REMOVED, History
from nri_resmgr.app.observing.refusal_log import REFUSED
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.policy.decision import Decision, PinUpdate, Reason
from nri_resmgr.policy.events import (
    NO_PIN,
    ContainerSpec,
    Created,
    Event,
    PodCreated,
    Stopped,
    Synchronized,
)
from nri_resmgr.policy.ledger import KnowsContainers, Ledger
from nri_resmgr.policy.rules import Rule
from nri_resmgr.stub import Container, Pod
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import InputError
from tests.examples import examples


class State(KnowsContainers, frozen=True):
    """As much of a policy's state as is looked at."""


def state_of(*containers: str) -> State:
    ledger = Ledger.of()
    for one in containers:
        ledger = ledger.put(ContainerSpec(one), NO_PIN)
    return State(ledger)


def created(name: str, *present: str, updated: tuple[str, ...] = ()) -> PolicyDecision:
    reason = Reason(Rule.NOT_GUARANTEED, name, f"shop/{name}/{name}")
    updates = tuple(PinUpdate(one, NO_PIN) for one in updated)
    return Decision(state_of(*present, name), (reason,), updates=updates)


def stopped(name: str, *present: str) -> PolicyDecision:
    return Decision(state_of(*present), (Reason(Rule.RELEASED, name),))


def test_each_row_has_the_next_number_and_its_time() -> None:
    history = History(now=count(100).__next__)
    history.decided(Created(ContainerSpec("a")), created("a"))
    history.refused(Subject("shop", "b"), InputError("no"))
    history.note("session.ended", why="end of file")

    assert [(r.number, r.time, r.kind, r.why) for r in history.since(0, 9)] == [
        (1, 100, "container.placed", ""),
        (2, 101, REFUSED, "no"),
        (3, 102, "session.ended", "end of file"),
    ]
    assert [row.number for row in history.since(1, 1)] == [2]
    assert history.since(3, 9) == ()


def test_decisions_without_content_add_no_row() -> None:
    history = History()
    unknown = Reason(Rule.UNKNOWN_CONTAINER, "x")
    history.decided(Stopped("x"), Decision(state_of(), (unknown,)))
    history.decided(PodCreated("p"), Decision(state_of(), ()))

    assert history.last == 0


def test_a_container_history_keeps_its_first_and_latest_changes() -> None:
    history = History()
    for _ in range(MAX_CHANGES + 5):
        history.decided(Created(ContainerSpec("a")), created("a"))

    numbers = [change.row.number for change in history.changes_of("a")]

    assert numbers == [1, *range(7, MAX_CHANGES + 6)]


def test_the_last_256_removed_containers_can_be_queried() -> None:
    history = History()
    for n in range(MAX_REMOVED + 1):
        history.decided(Created(ContainerSpec(f"{n}")), created(f"{n}"))
        history.decided(Stopped(f"{n}"), stopped(f"{n}"))

    assert history.changes_of("0") == ()
    rules = [change.reason.rule for change in history.changes_of("1")]
    assert rules == [Rule.NOT_GUARANTEED, Rule.RELEASED]
    gone = [change.reason.container for change in history.removed()]
    assert gone == [f"{n}" for n in range(MAX_REMOVED, 0, -1)]


def test_a_replaced_container_counts_as_removed() -> None:
    history = History()
    history.decided(Created(ContainerSpec("old")), created("old"))
    history.decided(Created(ContainerSpec("new")), created("new"))

    assert [change.reason.container for change in history.removed()] == ["old"]


def test_a_pod_has_a_row_and_no_history_of_its_own() -> None:
    history = History()
    reason = Reason(Rule.POD_PLACED, "p", pool="root")
    history.decided(PodCreated("p"), Decision(state_of(), (reason,)))

    assert (history.last, history.changes_of("p"), list(history.removed())) == (
        1,
        (),
        [],
    )


def test_updates_because_of_others_are_found() -> None:
    history = History()
    decision = created("b", "a", updated=("a",))
    history.decided(Created(ContainerSpec("b")), decision)

    ((row, update),) = history.updates_of("a")

    assert (row.number, update) == (1, decision.updates[0])
    assert history.updates_of("b") == ()


def test_large_decisions_leave_fewer_rows() -> None:
    history = History(max_weight=10)
    for n in range(9):
        history.decided(Created(ContainerSpec("b")), created("b", updated=("a",) * n))

    # 1 for the row, 1 for the reason, 8 for the last one's updates.
    assert (history.first, history.last) == (9, 9)


def test_a_row_larger_than_the_limit_is_kept() -> None:
    history = History(max_weight=3)
    history.decided(Created(ContainerSpec("b")), created("b", updated=("a",) * 9))

    assert history.first == history.last == 1


async def test_waiting_clients_are_woken_by_the_next_row() -> None:
    history = History()
    waiting = [asyncio.create_task(history.more(n)) for n in (0, 1)]
    await asyncio.sleep(0)
    history.note("session.synchronized")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    done = [task.done() for task in waiting]
    history.note("session.synchronized")
    await asyncio.gather(*waiting)

    assert done == [True, False]


async def test_a_cancelled_wait_leaves_nothing_behind() -> None:
    history = History()
    waiting = asyncio.create_task(history.more(0))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    history.note("session.synchronized")

    assert waiting.cancelled()
    await history.more(0)


NAMES = st.sampled_from("abcd")


@examples(0.6)
@given(st.lists(st.tuples(st.sampled_from(["come", "go", "sync", "note"]), NAMES)))
def test_present_containers_have_histories_and_no_row_is_lost(
    steps: list[tuple[str, str]],
) -> None:
    history, here, rows = History(max_weight=20), dict[str, int](), Counter[str]()
    for what, name in steps:
        event: Event = Created(ContainerSpec(name))
        match what:
            case "come":
                history.decided(event, created(name, *here))
                here[name] = here.get(name, 0) + 1
            case "go" if name in here:
                del here[name]
                history.decided(Stopped(name), stopped(name, *here))
            case "sync":
                reasons = tuple(Reason(Rule.KEPT, one) for one in here)
                decision: PolicyDecision = Decision(state_of(*here), reasons)
                list(history.decided(Synchronized(()), decision) or ())
                here = {one: times + 1 for one, times in here.items()}
            case _:
                history.note("session.synchronized")
        rows[what] += 1

    updated = [row.number for row in history.since(0, 10**6)]
    assert updated == list(range(history.first, history.last + 1))
    assert {one: len(history.changes_of(one)) for one in here} == {
        one: min(times, MAX_CHANGES) for one, times in here.items()
    }


def test_the_history_records_decisions_of_a_real_plugin() -> None:
    history = History()
    plugin = ResourcePolicy(parse_spec("1s2c1t"), observers=[history])
    pod = Pod(id="p", name="pod", namespace="shop")
    plugin.create_container(pod, Container(id="c", name="web", pod_sandbox_id="p"))

    (change,) = history.changes_of("c")

    assert (change.row.kind, change.reason.title) == (
        "container.placed",
        "shop/pod/web",
    )
