"""The queue of updates: what is sent by calls and by replies, and how it stands now."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from nri_proto import MessageTooLarge
from nri_resmgr.stub import ConnectionLost, ContainerUpdate
from nri_resmgr.stub.convert import from_message
from nri_resmgr.stub.errors import CallTimedOut, UnsolicitedUpdatesUnsafe
from nri_resmgr.stub.pending_updates import MOST_IN_CALL, PendingUpdates, Source
from nri_resmgr.stub.replies import create_response, update_response
from nri_resmgr.stub.update_sender import UpdateSender
from tests.stub.slow_runtime import (
    SlowRuntime,
    cpus_of,
    open_runtime,
    settled,
    updates,
)


def mems_of(wanted: dict[str, str]) -> Source:
    """Make a source of other values."""

    def source(key: str) -> ContainerUpdate | None:
        return ContainerUpdate(key).set_mems(wanted[key]) if key in wanted else None

    return source


def reply(
    pending: PendingUpdates, *own: ContainerUpdate, busy: str = ""
) -> tuple[ContainerUpdate, ...]:
    """Return what a reply carries that has some updates of its own."""
    response = update_response(own)
    pending.attach(response, busy)
    return tuple(from_message(one) for one in response.update)


async def test_values_changed_by_a_reply_meanwhile_are_sent_again() -> None:
    wanted, runtime = {"a": "1", "b": "2"}, SlowRuntime()
    sender = UpdateSender(runtime)
    sender.send(cpus_of(wanted), ["a", "b"])
    await settled()
    wanted["a"] = "3"
    runtime.gate.set()
    await settled()

    assert runtime.calls == [updates(a="1", b="2"), updates(a="3")]


async def test_after_an_internal_error_updates_are_sent_again() -> None:
    wanted, runtime = {"a": "1"}, open_runtime(MemoryError())
    sender = UpdateSender(runtime, again=0.01)
    with capture_logs() as lines:
        sender.send(cpus_of(wanted), ["a"])
        await settled()
        runtime.error = None
        await asyncio.sleep(0.1)

    assert runtime.calls == [updates(a="1")] * 2
    assert (sender.sent, len(sender.pending)) == (1, 0)
    assert [line["event"] for line in lines] == ["updates.failed"]


async def test_updates_queued_during_a_call_are_sent_with_the_next() -> None:
    wanted, runtime = {"a": "1", "b": "2", "c": "3"}, SlowRuntime()
    sender, source = UpdateSender(runtime), cpus_of(wanted)
    for key in wanted:
        sender.send(source, [key])
        await settled()
    del wanted["c"]
    runtime.gate.set()
    await settled()

    assert runtime.calls == [updates(a="1"), updates(b="2")]


async def test_very_many_go_in_several_calls() -> None:
    wanted, runtime = (
        {f"c{n}": "1" for n in range(2 * MOST_IN_CALL + 1)},
        open_runtime(),
    )
    sender = UpdateSender(runtime)
    sender.send(cpus_of(wanted), wanted)
    await settled()

    assert [len(one) for one in runtime.calls] == [MOST_IN_CALL, MOST_IN_CALL, 1]
    assert [one for some in runtime.calls for one in some] == [*updates(**wanted)]


async def test_updates_refused_by_the_runtime_are_added_to_one_reply() -> None:
    wanted, runtime = {"a": "1", "b": "2"}, open_runtime()
    runtime.refused.add("b")
    sender = UpdateSender(runtime)
    sender.send(cpus_of(wanted), wanted)
    await settled()
    own = updates(c="4")

    assert reply(sender.pending, *own) == (*own, *updates(b="2"))
    assert reply(sender.pending, *own) == own
    assert (sender.sent, sender.failed) == (1, 1)


async def test_a_reply_carries_each_update_once_with_its_present_value() -> None:
    wanted = {"a": "1", "b": "2"}
    sender = UpdateSender(open_runtime(CallTimedOut("UpdateContainers", 1.0)))
    with capture_logs() as lines:
        sender.send(cpus_of(wanted), wanted)
        await settled()
    wanted |= {"a": "7", "b": "8"}

    assert reply(sender.pending, *updates(a="7")) == updates(a="7", b="8")
    assert [(one["event"], one["containers"]) for one in lines] == [
        ("updates.failed", ["a", "b"])
    ]
    assert (sender.sent, sender.failed) == (0, 2)


async def test_a_new_beginning_makes_all_of_one_source_moot() -> None:
    cpus, mems = cpus_of({"a": "1"}), mems_of({"a": "0"})
    sender = UpdateSender()
    sender.send(cpus, ["a"])
    sender.pending.drop(cpus)
    after_one = len(sender.pending)
    sender.send(cpus, ["a"])
    sender.send(mems, ["a"])
    sender.pending.drop(cpus)

    assert after_one == 0
    assert reply(sender.pending) == (ContainerUpdate("a").set_mems("0"),)


async def test_an_update_is_waiting_until_the_runtime_has_taken_it() -> None:
    wanted, runtime = {"a": "1", "b": "2", "c": "3"}, SlowRuntime()
    runtime.refused = {"b"}
    sender, source = UpdateSender(runtime), cpus_of(wanted)
    sender.send(source, ["a", "b"])
    await settled()
    sender.send(source, ["c"])
    sender.pending.add(mems_of({"d": "0"}), ["d"])
    on_their_way, all_of_them = sender.pending.containers(source), len(sender.pending)
    runtime.gate.set()
    await settled()

    assert on_their_way == {"a", "b", "c"}
    assert all_of_them == 4
    assert sender.pending.containers() == {"b"}


async def test_values_of_several_kinds_are_one_update() -> None:
    runtime = open_runtime()
    sender = UpdateSender(runtime)
    sender.pending.add(mems_of({"a": "0"}), ["a"])
    sender.send(cpus_of({"a": "1"}), ["a"])
    await settled()

    assert runtime.calls == [(ContainerUpdate("a").set_mems("0").set_cpus("1"),)]


async def test_where_calls_are_unsafe_nothing_has_failed() -> None:
    sender = UpdateSender(open_runtime(UnsolicitedUpdatesUnsafe(None)))
    sender.send(cpus_of({"a": "1"}), ["a"])
    await settled()

    assert (sender.sent, sender.failed) == (0, 0)
    assert reply(sender.pending) == updates(a="1")


def test_the_container_of_a_request_gets_only_present_values() -> None:
    pending, source = PendingUpdates(), cpus_of({"new": "1", "old": "2"})
    pending.add(source, ["new", "old"])
    pending.add_fixed(updates(stale="3"))
    created = create_response(None, "new")
    pending.attach(created, busy="new")
    updated = reply(pending, busy="stale")
    pending.add(source, ["old"])

    assert [one.container_id for one in created.update] == ["old", "stale"]
    assert updated == updates(new="1")
    assert reply(pending, busy="old") == updates(old="2")


async def test_failed_updates_are_called_again_only_when_queued_again() -> None:
    runtime = open_runtime(CallTimedOut("UpdateContainers", 1.0))
    sender, source = UpdateSender(runtime), cpus_of({"a": "1", "b": "2"})
    sender.send(source, ["a"])
    await settled()
    runtime.error = None
    sender.send(source, ["b"])
    await settled()
    sender.send(source, ["a"])
    await settled()

    assert runtime.calls == [updates(a="1"), updates(b="2"), updates(a="1")]
    assert len(sender.pending) == 0


async def test_a_removed_container_is_not_queued_again() -> None:
    runtime = SlowRuntime(CallTimedOut("UpdateContainers", 1.0))
    sender = UpdateSender(runtime)
    sender.send(cpus_of({"a": "1", "b": "2"}), ["a", "b"])
    await settled()
    sender.pending.forget("a")
    runtime.gate.set()
    await settled()

    assert reply(sender.pending) == updates(b="2")


async def test_computed_values_outlive_a_session_and_fixed_ones_do_not() -> None:
    first, second = SlowRuntime(ConnectionLost("end of file")), open_runtime()
    sender = UpdateSender(first)
    sender.send(cpus_of({"a": "1"}), ["a"])
    sender.schedule(updates(b="2"))
    await settled()
    sender.disconnect()
    first.gate.set()
    await settled()
    sender.connect(second)
    before = list(second.calls)
    sender.wake()
    await settled()

    assert first.calls == [updates(a="1", b="2")]
    assert (before, second.calls) == ([], [updates(a="1")])


async def test_an_update_too_large_for_any_message_is_not_retried() -> None:
    runtime = open_runtime(MessageTooLarge(5, 4))
    sender = UpdateSender(runtime)
    sender.send(cpus_of({"a": "1"}), ["a"])
    await settled()

    assert (len(sender.pending), sender.failed) == (0, 1)


@pytest.mark.parametrize("is_in_flight", [False, True])
async def test_an_age_counts_from_when_a_container_began_to_wait(
    *, is_in_flight: bool
) -> None:
    now = 100.0
    pending, source = PendingUpdates(lambda: now), cpus_of({"a": "1", "b": "2"})
    empty = pending.oldest_seconds
    pending.add(source, ["a"])
    now = 107.0
    pending.add(source, ["a", "b"])
    if is_in_flight:
        pending.take()
    now = 110.0

    assert (empty, len(pending), pending.oldest_seconds) == (0.0, 2, 10.0)
    pending.forget("a")
    assert pending.oldest_seconds == 3.0
