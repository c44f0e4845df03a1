"""Updates that no request asked for, sent on their own."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from nri_proto import MessageTooLarge, NriLevel, nri_pb2
from nri_resmgr.stub import (
    CalledFromHandler,
    CallFailed,
    CallTimedOut,
    ConnectionLost,
    Container,
    ContainerEviction,
    ContainerUpdate,
    Plugin,
    Pod,
    ReplyError,
    Stub,
    StubOptions,
    UnsolicitedUpdates,
    UnsolicitedUpdatesUnsafe,
    current_request,
)
from nri_resmgr.testing import Runtime, Sender
from tests.stub.live import NAME, live, plugged, recording, stub_at
from tests.waiting import until

ALWAYS = StubOptions(unsolicited_updates=UnsolicitedUpdates.ALWAYS)
NEVER = StubOptions(unsolicited_updates=UnsolicitedUpdates.NEVER)
TOO_LONG = bytes.fromhex("00000001 ffffffff")  # a trunk frame of 4 GiB
CPUS = ContainerUpdate("ctr0").set_cpus("3")


def idle_plugin() -> Plugin:
    return recording([], "stop_container")


async def container_in(runtime: Runtime) -> None:
    """Create the container that is to be updated."""
    pod = await runtime.run_pod(Pod())
    await runtime.create_container(pod.id, Container())


def requests(runtime: Runtime) -> list[nri_pb2.UpdateContainersRequest]:
    return [
        record.body
        for record in runtime.records
        if isinstance(record.body, nri_pb2.UpdateContainersRequest)
    ]


async def test_unsolicited_updates_are_applied(tmp_path: Path) -> None:
    async with plugged(tmp_path, idle_plugin()) as (runtime, stub):
        await container_in(runtime)
        failed = await stub.update_containers([CPUS, ContainerUpdate("unknown")])

        assert failed == ()
        assert runtime.container("ctr0").cpu.cpus == "3"


async def test_evictions_are_sent_along(tmp_path: Path) -> None:
    async with plugged(tmp_path, idle_plugin()) as (runtime, stub):
        await stub.update_containers([], [ContainerEviction("c", "too loud")])

        assert requests(runtime) == [
            nri_pb2.UpdateContainersRequest(
                evict=[nri_pb2.ContainerEviction(container_id="c", reason="too loud")]
            )
        ]


async def test_a_failure_is_a_status_without_names(tmp_path: Path) -> None:
    async with plugged(tmp_path, idle_plugin()) as (runtime, stub):
        runtime.unupdatable.add("ctr0")
        with pytest.raises(CallFailed) as failure:
            await stub.update_containers([CPUS])

        assert str(failure.value) == (
            "UpdateContainers: NRI update of (some) containers failed"
        )
        assert runtime.plugins == (NAME,)


@pytest.mark.parametrize(
    ("updates", "sentence"),
    [
        pytest.param([ContainerUpdate("")], "container", id="of no container"),
        pytest.param([CPUS, CPUS], "linux.resources.cpu.cpus", id="a field twice"),
    ],
)
@pytest.mark.parametrize("schedules", [False, True], ids=["called", "scheduled"])
async def test_inconsistent_updates_are_not_sent(
    updates: list[ContainerUpdate],
    sentence: str,
    schedules: bool,  # noqa: FBT001 - a parameter of the table
    tmp_path: Path,
) -> None:
    async with plugged(tmp_path, idle_plugin()) as (runtime, stub):
        if schedules:
            with pytest.raises(ReplyError, match=sentence):
                stub.schedule_updates(updates)
        else:
            with pytest.raises(ReplyError, match=sentence):
                await stub.update_containers(updates)

        assert requests(runtime) == []


async def test_a_call_over_4_mib_is_refused_and_the_session_continues(
    tmp_path: Path,
) -> None:
    huge = ContainerUpdate("ctr0").set_unified("memory.high", "9" * (4 << 20))
    async with plugged(tmp_path, idle_plugin()) as (runtime, stub):
        with pytest.raises(MessageTooLarge):
            await stub.update_containers([huge])

        assert await stub.update_containers([CPUS]) == ()
        assert (len(requests(runtime)), runtime.plugins) == (1, (NAME,))


async def test_without_a_session_there_is_nothing_to_call(tmp_path: Path) -> None:
    stub = stub_at(tmp_path / "nri.sock", idle_plugin())
    with pytest.raises(ConnectionLost, match="no session"):
        await stub.update_containers([CPUS])
    with pytest.raises(ConnectionLost, match="no session"):
        stub.schedule_updates([CPUS])


async def test_a_connection_lost_during_a_call_is_an_error(tmp_path: Path) -> None:
    async with plugged(tmp_path, idle_plugin()) as (runtime, stub):
        await runtime.lock.acquire()  # an event of others: no answer now
        calling = asyncio.create_task(stub.update_containers([CPUS]))
        await until(lambda: len(requests(runtime)) == 1)
        runtime.write(NAME, TOO_LONG)
        with pytest.raises(ConnectionLost, match="multiplexer frame"):
            await calling
        runtime.lock.release()


async def test_a_call_without_an_answer_times_out(tmp_path: Path) -> None:
    options = StubOptions(update_timeout=0.1)
    async with plugged(tmp_path, idle_plugin(), options=options) as (runtime, stub):
        async with runtime.lock:
            with pytest.raises(CallTimedOut) as late:
                await stub.update_containers([CPUS])
        assert str(late.value) == (
            "the runtime did not answer UpdateContainers within 0.1 s"
        )
        # The late answer is dropped, and the next call gets its own.
        assert await stub.update_containers([CPUS]) == ()


async def test_calls_go_out_one_at_a_time_and_50_ms_apart(tmp_path: Path) -> None:
    async with plugged(tmp_path, idle_plugin()) as (runtime, stub):
        start = time.monotonic()
        async with runtime.lock:
            calls = [
                asyncio.create_task(stub.update_containers([CPUS])) for _ in range(4)
            ]
            await asyncio.sleep(0.12)
            while_unanswered = len(requests(runtime))
        await asyncio.gather(*calls)

        assert while_unanswered == 1
        assert time.monotonic() - start >= 0.12 + 2 * 0.05


class _Handling:
    """Has a request under way for as long as a test wants."""

    def __init__(self) -> None:
        self.stub: Stub | None = None
        self.begun = asyncio.Event()
        self.may_end = asyncio.Event()
        self.errors: list[Exception] = []
        self.background: asyncio.Task[tuple[ContainerUpdate, ...]] | None = None

    async def update(self) -> tuple[ContainerUpdate, ...]:
        assert self.stub is not None
        return await self.stub.update_containers([CPUS])

    async def start_container(self, _: Pod, __: Container) -> None:
        """Wait until the test says so."""
        self.begun.set()
        await self.may_end.wait()

    async def stop_container(self, _: Pod, __: Container) -> None:
        """Call directly, then by a task that is waited for."""
        for attempt in (self.update(), asyncio.create_task(self.update())):
            try:
                await attempt
            except CalledFromHandler as error:
                self.errors.append(error)

    async def remove_container(self, _: Pod, __: Container) -> None:
        """Leave a task behind that calls once the request is answered."""
        self.background = asyncio.create_task(self.update_later())

    async def update_later(self) -> tuple[ContainerUpdate, ...]:
        """Update when the request that started this is over."""
        await self.may_end.wait()
        assert current_request() is None
        return await self.update()


async def test_no_call_is_made_while_a_request_is_handled(tmp_path: Path) -> None:
    plugin = _Handling()
    async with plugged(tmp_path, plugin) as (runtime, stub):
        await container_in(runtime)
        starting = asyncio.create_task(runtime.start_container("ctr0"))
        await plugin.begun.wait()
        updating = asyncio.create_task(stub.update_containers([CPUS]))
        await asyncio.sleep(0.08)
        before = requests(runtime)
        plugin.may_end.set()
        await asyncio.gather(starting, updating)

        said = [item.method for item in runtime.records if item.sender is Sender.PLUGIN]
        assert before == []
        assert said.index("StartContainer") < said.index("UpdateContainers")


async def test_inside_a_handler_the_call_is_an_error_also_by_a_task(
    tmp_path: Path,
) -> None:
    plugin = _Handling()
    async with plugged(tmp_path, plugin) as (runtime, plugin.stub):
        await container_in(runtime)
        await runtime.stop_container("ctr0")

        sentence = (
            "update_containers() inside a handler dead-locks the runtime: return "
            "the updates in the reply, or use schedule_updates()"
        )
        assert [str(error) for error in plugin.errors] == [sentence] * 2
        assert requests(runtime) == []


async def test_a_task_of_a_handler_may_call_once_the_request_is_answered(
    tmp_path: Path,
) -> None:
    plugin = _Handling()
    async with plugged(tmp_path, plugin) as (runtime, plugin.stub):
        await container_in(runtime)
        await runtime.remove_container("ctr0")
        plugin.may_end.set()

        assert plugin.background is not None
        assert await plugin.background == ()


@pytest.mark.parametrize(
    ("level", "options"),
    [
        pytest.param(NriLevel(0, 12), StubOptions(), id="0.12.0 can dead-lock"),
        pytest.param(NriLevel(0, 3), StubOptions(), id="so can older ones"),
        pytest.param(NriLevel(0, 13), NEVER, id="by the plugin's choice"),
    ],
)
async def test_where_it_is_unsafe_the_call_is_an_error(
    level: NriLevel, options: StubOptions, tmp_path: Path
) -> None:
    async with plugged(tmp_path, idle_plugin(), level, options=options) as (_, stub):
        with pytest.raises(UnsolicitedUpdatesUnsafe) as refusal:
            await stub.update_containers([CPUS])

    assert str(refusal.value).startswith(f"containerd with NRI {level} can dead-lock")


@pytest.mark.parametrize("level", [NriLevel(0, 12, 1), NriLevel(0, 13)], ids=str)
async def test_cri_o_can_dead_lock_at_each_level(
    level: NriLevel, tmp_path: Path
) -> None:
    async with (
        Runtime(tmp_path, level, "cri-o") as runtime,
        live(runtime, idle_plugin()) as stub,
    ):
        with pytest.raises(UnsolicitedUpdatesUnsafe) as refusal:
            await stub.update_containers([CPUS])
        stub.schedule_updates([CPUS])

        assert str(refusal.value).startswith(f"cri-o with NRI {level} can dead-lock")
        assert not stub.updates.may_call
        assert requests(runtime) == []


async def test_calls_to_cri_o_can_be_enabled(tmp_path: Path) -> None:
    async with (
        Runtime(tmp_path, name="cri-o") as runtime,
        live(runtime, idle_plugin(), ALWAYS) as stub,
    ):
        assert await stub.update_containers([CPUS]) == ()


async def test_0_12_1_is_the_first_that_is_safe(tmp_path: Path) -> None:
    async with plugged(tmp_path, idle_plugin(), NriLevel(0, 12, 1)) as (_, stub):
        assert await stub.update_containers([CPUS]) == ()


@pytest.mark.parametrize("level", [NriLevel(0, 3), NriLevel(0, 12)], ids=str)
async def test_calls_to_old_runtimes_can_be_enabled(
    level: NriLevel, tmp_path: Path
) -> None:
    async with plugged(tmp_path, idle_plugin(), level, options=ALWAYS) as (_, stub):
        assert await stub.update_containers([CPUS]) == ()
