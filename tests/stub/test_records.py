"""Updates whose values are in force already: they follow when they delay nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Collection, Mapping
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from nri_proto import NriLevel, nri_pb2
from nri_resmgr.stub import (
    ConnectionLost,
    Container,
    ContainerUpdate,
    LinuxResources,
    Stub,
    StubOptions,
    UnsolicitedUpdates,
)
from nri_resmgr.stub.errors import CallTimedOut
from nri_resmgr.stub.pending_updates import PendingUpdates, Source
from nri_resmgr.stub.record_pace import RecordPace
from nri_resmgr.stub.update_sender import UpdateSender
from nri_resmgr.testing import Runtime
from tests.stub.live import NAME, plugged, recording
from tests.stub.scheduling import Scheduler, containers_in, cpus
from tests.stub.slow_runtime import (
    SlowRuntime,
    cpus_of,
    open_runtime,
    settled,
    updates,
)
from tests.waiting import until

OLDEST, OLD, NEW = NriLevel(0, 6, 1), NriLevel(0, 8), NriLevel(0, 13)
NEVER = StubOptions(unsolicited_updates=UnsolicitedUpdates.NEVER)
SOON = 0.05  # seconds without a request


class Application:
    """Writes CPUs into cgroups, and knows by the sender what the runtime has recorded.

    Attributes:
        written: The CPUs in force, by container.
        recorded: Those that the runtime was given.
        refused: Containers whose update was refused, in order.
    """

    def __init__(self, sender: UpdateSender, *containers: str) -> None:
        self.written = dict.fromkeys(containers, "1")
        self.recorded: dict[str, str] = {}
        self.refused: list[str] = []
        self._sender = sender
        sender.on_taken, sender.on_refused = self._take, self._refuse

    def record(self, *containers: str) -> None:
        """Have the runtime's record follow."""
        self._sender.record(self.record_of, containers or self.written)

    def record_of(self, key: str) -> ContainerUpdate | None:
        """Return what the record lacks."""
        lacks = key in self.written and self.written[key] != self.recorded.get(key)
        return cpus(key, self.written[key]) if lacks else None

    def _take(self, taken: Mapping[str, ContainerUpdate]) -> None:
        self.recorded |= {key: cpus_in(one) for key, one in taken.items()}

    def _refuse(self, containers: Collection[str]) -> None:
        self.refused += containers


def cpus_in(update: ContainerUpdate) -> str:
    assert update.linux is not None
    assert update.linux.resources is not None
    assert update.linux.resources.cpu is not None
    return update.linux.resources.cpu.cpus


def paced(runtime: SlowRuntime | None, pace: RecordPace | None = None) -> UpdateSender:
    """Make a sender that has other times than a daemon, and a pace of its own.

    A pace keeps the rest after a call, which must not delay those of another test.
    """
    sender = UpdateSender(runtime)
    sender.pace = pace or RecordPace(quiet=SOON)
    return sender


def batches(runtime: SlowRuntime) -> list[list[str]]:
    return [[one.container_id for one in call] for call in runtime.calls]


def called(runtime: Runtime) -> list[list[str]]:
    return [
        [one.container_id for one in record.body.update]
        for record in runtime.records
        if isinstance(record.body, nri_pb2.UpdateContainersRequest)
    ]


# By calls.


async def test_record_updates_are_sent_in_batches_after_a_quiet_time() -> None:
    runtime = open_runtime()
    runtime.quiet_seconds = 0.01
    sender = paced(runtime, RecordPace(quiet=0.05, per_update=0.025))
    application = Application(sender, *"abcde")
    application.record()
    await settled()
    at_once = batches(runtime)
    runtime.quiet_seconds = 1.0
    await until(lambda: sender.pending.records == 0)

    assert at_once == []
    assert batches(runtime)[0] == ["a", "b"]
    assert [key for call in batches(runtime) for key in call] == list("abcde")
    assert application.recorded == application.written
    assert (sender.sent, sender.failed) == (5, 0)


async def test_on_a_busy_node_record_updates_wait_for_a_limited_time() -> None:
    runtime = open_runtime()
    runtime.quiet_seconds = 0.001
    sender = paced(runtime, RecordPace(quiet=60.0, patience=0.1))
    Application(sender, "a").record()
    await settled()
    early = batches(runtime)
    await until(lambda: batches(runtime) == [["a"]])

    assert early == []


async def test_no_call_is_made_while_a_request_is_handled() -> None:
    runtime = open_runtime()
    runtime.quiet_seconds = 0.0
    sender = paced(runtime, RecordPace(quiet=0.05, patience=0.0))
    Application(sender, "a").record()
    await asyncio.sleep(0.2)
    during = batches(runtime)
    runtime.quiet_seconds = 0.001
    await until(lambda: batches(runtime) == [["a"]])

    assert during == []


async def test_urgent_updates_are_sent_first_and_at_once() -> None:
    runtime = SlowRuntime()
    sender = paced(runtime, RecordPace(per_update=0.05))
    application = Application(sender, *"abc")
    application.record()
    await settled()
    sender.send(cpus_of({"z": "1"}), ["z"])
    runtime.gate.set()
    await settled()
    first = batches(runtime)
    await until(lambda: sender.pending.records == 0)

    assert first == [["a"], ["z"]]
    assert batches(runtime) == [["a"], ["z"], ["b"], ["c"]]


async def test_urgent_and_record_updates_of_a_container_are_sent_as_one() -> None:
    runtime = open_runtime()
    runtime.quiet_seconds = 0.001
    sender = paced(runtime)
    application = Application(sender, "a", "b")
    application.record()
    sender.send(lambda key: ContainerUpdate(key).set_mems("0"), ["a"])
    counts = len(sender.pending), sender.pending.records
    await settled()

    assert counts == (1, 1)
    assert runtime.calls == [(ContainerUpdate("a").set_cpus("1").set_mems("0"),)]
    assert sender.pending.containers() == {"b"}
    assert application.recorded == {"a": "1"}


async def test_a_change_that_is_undone_needs_no_call() -> None:
    runtime = open_runtime()
    runtime.quiet_seconds = 0.001
    sender = paced(runtime)
    application = Application(sender, "a")
    application.recorded["a"] = "2"
    application.record()
    application.written["a"] = "2"
    runtime.quiet_seconds = 1.0
    await until(lambda: sender.pending.records == 0)

    assert runtime.calls == []


async def test_a_record_that_changes_during_its_call_is_sent_again() -> None:
    runtime = SlowRuntime()
    sender = paced(runtime)
    application = Application(sender, "a", "b")
    application.record()
    await until(lambda: len(runtime.calls) == 1)
    application.written["a"] = "2"
    runtime.gate.set()
    await until(lambda: len(runtime.calls) == 2)
    await until(lambda: sender.pending.records == 0)

    assert runtime.calls == [updates(a="1", b="1"), updates(a="2")]
    assert application.recorded == {"a": "2", "b": "1"}


async def test_refused_record_updates_are_logged_and_sent_with_a_reply() -> None:
    runtime = open_runtime()
    runtime.refused.add("a")
    sender = paced(runtime)
    application = Application(sender, "a", "b")
    with capture_logs() as lines:
        application.record()
        await until(lambda: bool(application.refused))
    reply = nri_pb2.StopContainerResponse()
    sender.attach(reply, busy="z")

    assert (application.refused, application.recorded) == (["a"], {"a": "1", "b": "1"})
    assert [one.container_id for one in reply.update] == ["a"]
    assert [line["event"] for line in lines] == ["updates.failed"]


async def test_a_failed_call_loses_no_record_update() -> None:
    runtime = open_runtime(CallTimedOut("UpdateContainers", 1.0))
    sender = paced(runtime)
    application = Application(sender, "a", "b")
    application.record()
    await until(lambda: application.refused == ["a", "b"])
    runtime.error = None
    application.record("a")
    await until(lambda: application.recorded == {"a": "1"})

    assert sender.pending.containers() == {"b"}


async def test_record_updates_outlive_a_session() -> None:
    first, second = SlowRuntime(ConnectionLost("end of file")), open_runtime()
    sender = paced(first)
    application = Application(sender, "a", "b")
    application.record()
    await settled()
    sender.disconnect()
    first.gate.set()
    await settled()
    application.written["b"] = "2"
    sender.connect(second)
    sender.schedule(())  # the end of the handshake
    await until(lambda: sender.pending.records == 0)

    assert second.calls == [updates(a="1", b="2")]
    assert application.refused == []


async def test_after_an_internal_error_the_call_is_not_repeated_at_once() -> None:
    runtime = open_runtime(MemoryError())
    sender = UpdateSender(runtime, again=0.4)
    application = Application(sender, "a")
    with capture_logs() as lines:
        application.record()
        await asyncio.sleep(0.2)
        attempts = len(runtime.calls)
        runtime.error = None
        await until(lambda: application.recorded == {"a": "1"})

    assert attempts == 1
    assert [line["event"] for line in lines] == ["updates.failed"]


def test_ages_are_of_their_own() -> None:
    now = 100.0
    pending = PendingUpdates(lambda: now)
    source: Source = cpus_of({"a": "1", "b": "2"})
    pending.add_records(source, ["a", "b"])
    now = 110.0
    pending.add(source, ["b"])
    now = 113.0

    assert (len(pending), pending.oldest_seconds) == (1, 3.0)
    assert (pending.records, pending.oldest_record_seconds) == (1, 13.0)


# With a runtime.


async def recording_stub(runtime: Runtime, stub: Stub, count: int) -> Application:
    """Create containers, and begin with a record for each."""
    await containers_in(runtime, count)
    application = Application(stub.updates, *(f"ctr{n}" for n in range(count)))
    application.record()
    return application


@pytest.mark.parametrize("level", [OLDEST, OLD])
async def test_where_calls_can_dead_lock_two_record_updates_are_sent_with_a_reply(
    level: NriLevel, tmp_path: Path
) -> None:
    plugin = Scheduler()
    async with plugged(tmp_path, plugin, level) as (runtime, stub):
        stub.updates.pace = RecordPace(quiet=SOON)
        application = await recording_stub(runtime, stub, 7)
        created = await runtime.create_container("pod0", Container())
        updated = await runtime.update_container("ctr6", LinuxResources())
        first = dict(application.recorded)
        stopped = await runtime.stop_container("ctr6")
        await asyncio.sleep(2 * SOON)

        assert created.updates == ()
        assert [one.container_id for one in updated.updates] == ["ctr0", "ctr1"]
        assert [one.container_id for one in stopped.updates] == ["ctr2", "ctr3"]
        assert first == {"ctr0": "1", "ctr1": "1"}
        assert runtime.container("ctr3").cpu.cpus == "1"
        assert called(runtime) == []
        assert stub.updates.pending.records == 2  # ctr6 has ended


@pytest.mark.parametrize("level", [OLDEST, OLD])
async def test_an_update_that_the_runtime_cannot_apply_fails_no_request(
    level: NriLevel, tmp_path: Path
) -> None:
    async with plugged(tmp_path, Scheduler(), level) as (runtime, stub):
        await recording_stub(runtime, stub, 2)
        runtime.unupdatable.add("ctr0")
        await runtime.update_container("ctr1", LinuxResources())

        assert runtime.plugins == (NAME,)
        assert runtime.ignored == []


async def test_a_reply_carries_all_that_is_urgent_before_two_of_them(
    tmp_path: Path,
) -> None:
    plugin = Scheduler(*(cpus(f"ctr{n}") for n in (3, 4, 5)))
    async with plugged(tmp_path, plugin, OLD) as (runtime, plugin.stub):
        await recording_stub(runtime, plugin.stub, 7)
        await runtime.start_container("ctr6")
        stopped = await runtime.stop_container("ctr6")

    assert {one.container_id for one in stopped.updates} == {
        "ctr0",
        "ctr1",
        *("ctr3", "ctr4", "ctr5"),
    }


async def test_record_updates_are_merged_into_updates_of_the_reply(
    tmp_path: Path,
) -> None:
    plugin = Scheduler()
    async with plugged(tmp_path, plugin, OLD) as (runtime, stub):
        await recording_stub(runtime, stub, 4)
        plugin.returned = [ContainerUpdate("ctr2").set_mems("0")]
        stopped = await runtime.stop_container("ctr3")

    own = ContainerUpdate("ctr2").set_mems("0").set_cpus("1")
    assert [one.container_id for one in stopped.updates].count("ctr2") == 1
    assert own in stopped.updates
    assert len(stopped.updates) == 3


@pytest.mark.parametrize("takes_time", [False, True])
async def test_calls_carry_record_updates_where_calls_are_safe(
    takes_time: bool,  # noqa: FBT001 - a parameter of the table
    tmp_path: Path,
) -> None:
    plugin = recording([], "create_container")

    async def slowly() -> None:
        await asyncio.sleep(0.2)

    @plugin.handler
    def stop_container(_: object, __: object) -> Awaitable[None] | None:
        return slowly() if takes_time else None

    async with plugged(tmp_path, plugin, NEW) as (runtime, stub):
        stub.updates.pace = RecordPace(quiet=0.3)
        application = await recording_stub(runtime, stub, 6)
        await asyncio.sleep(0.2)
        stopped = await runtime.stop_container("ctr5")  # quiet begins again
        began = time.monotonic()
        await until(lambda: bool(called(runtime)))
        waited = time.monotonic() - began
        await until(lambda: stub.updates.pending.records == 0)

        assert stopped.updates == ()
        assert waited > 0.9 * stub.updates.pace.quiet
        assert called(runtime)[0] == ["ctr0", "ctr1", "ctr2", "ctr3"]
        assert runtime.container("ctr4").cpu.cpus == "1"
        assert set(application.recorded) == {f"ctr{n}" for n in range(5)}


async def test_without_calls_record_updates_wait_for_replies(
    tmp_path: Path,
) -> None:
    plugin = Scheduler()
    async with plugged(tmp_path, plugin, NEW, options=NEVER) as (runtime, stub):
        stub.updates.pace = RecordPace(quiet=SOON)
        await recording_stub(runtime, stub, 2)
        await asyncio.sleep(2 * SOON)
        stopped = await runtime.stop_container("ctr1")

        assert [one.container_id for one in stopped.updates] == ["ctr0"]
        assert called(runtime) == []


@pytest.mark.parametrize("level", [OLD, NEW])
async def test_a_new_session_sends_record_updates_after_its_synchronize(
    level: NriLevel, tmp_path: Path
) -> None:
    plugin = Scheduler()
    async with plugged(tmp_path, plugin, level) as (runtime, stub):
        stub.updates.pace = RecordPace(quiet=0.3)
        application = await recording_stub(runtime, stub, 2)
        await runtime.stop()
        await runtime.start()
        await runtime.synchronized(NAME)
        at_first = dict(application.recorded)
        if level == OLD:
            await runtime.stop_container("ctr1")
        await until(lambda: "ctr0" in application.recorded)

        assert at_first == {}
        assert runtime.container("ctr0").cpu.cpus == "1"
