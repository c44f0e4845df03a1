"""Updates that wait for their moment: the next reply, or the end of the request."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from nri_proto import NriLevel, nri_pb2
from nri_resmgr.stub import (
    Container,
    ContainerUpdate,
    LinuxResources,
    Stub,
    StubOptions,
    UnsolicitedUpdates,
)
from nri_resmgr.testing import Runtime, Sender
from tests.stub.live import NAME, plugged, recording, running, stub_at
from tests.stub.scheduling import Scheduler, containers_in, cpus
from tests.waiting import until

OLD, NEW = NriLevel(0, 11), NriLevel(0, 13)
NEVER = StubOptions(unsolicited_updates=UnsolicitedUpdates.NEVER)


def calls(runtime: Runtime) -> list[nri_pb2.UpdateContainersRequest]:
    return [
        record.body
        for record in runtime.records
        if isinstance(record.body, nri_pb2.UpdateContainersRequest)
    ]


@pytest.mark.parametrize(
    ("level", "options"),
    [
        pytest.param(OLD, StubOptions(), id="a runtime that can dead-lock"),
        pytest.param(NEW, NEVER, id="by the plugin's choice"),
    ],
)
async def test_scheduled_updates_are_sent_with_the_next_reply_that_can_carry_them(
    level: NriLevel, options: StubOptions, tmp_path: Path
) -> None:
    plugin = Scheduler(cpus("ctr0"), cpus("ctr1"))
    async with plugged(tmp_path, plugin, level, options=options) as (runtime, stub):
        plugin.stub = stub
        pod = await containers_in(runtime, 2)
        await runtime.start_container("ctr0")
        first = await runtime.create_container(pod.id, Container())
        second = await runtime.create_container(pod.id, Container())

        assert first.updates == (cpus("ctr0"), cpus("ctr1"))
        assert (second.updates, calls(runtime)) == ((), [])


async def test_where_calls_are_safe_scheduled_updates_are_sent_after_the_reply(
    tmp_path: Path,
) -> None:
    plugin = Scheduler(cpus("ctr0"), cpus("ctr1"))
    async with plugged(tmp_path, plugin, NEW) as (runtime, plugin.stub):
        await containers_in(runtime, 2)
        await runtime.start_container("ctr0")
        await until(lambda: runtime.container("ctr1").cpu.cpus == "3")

        said = [item.method for item in runtime.records if item.sender is Sender.PLUGIN]
        assert said[-2:] == ["StartContainer", "UpdateContainers"]
        assert [len(call.update) for call in calls(runtime)] == [2]


async def test_scheduled_updates_are_sent_after_the_reply_of_a_slow_handler(
    tmp_path: Path,
) -> None:
    plugin = recording([], "stop_container")
    stubs: list[Stub] = []

    @plugin.handler
    async def start_container(_: object, __: object) -> None:
        stubs[0].schedule_updates([cpus("ctr0")])
        await asyncio.sleep(0.08)

    async with plugged(tmp_path, plugin, NEW) as (runtime, stub):
        stubs.append(stub)
        await containers_in(runtime, 1)
        await runtime.start_container("ctr0")
        await until(lambda: runtime.container("ctr0").cpu.cpus == "3")

        said = [item.method for item in runtime.records if item.sender is Sender.PLUGIN]
        assert said[-2:] == ["StartContainer", "UpdateContainers"]


async def test_outside_of_requests_scheduled_updates_are_sent_at_once(
    tmp_path: Path,
) -> None:
    plugin = recording([], "stop_container")
    async with plugged(tmp_path, plugin, NEW) as (runtime, stub):
        await containers_in(runtime, 1)
        stub.schedule_updates([cpus("ctr0", "1")])
        await until(lambda: runtime.container("ctr0").cpu.cpus == "1")
        stub.schedule_updates([cpus("ctr0", "2")])
        await until(lambda: runtime.container("ctr0").cpu.cpus == "2")


async def test_the_handshake_may_schedule_already(tmp_path: Path) -> None:
    plugin = recording([], "stop_container")
    stubs: list[Stub] = []

    @plugin.handler
    def synchronize(_: object, __: object) -> None:
        stubs[0].schedule_updates([cpus("ctr0")])

    async with Runtime(tmp_path, NEW) as runtime:
        await containers_in(runtime, 1)
        stubs.append(stub_at(runtime, plugin))
        async with running(stubs[0]):
            await until(lambda: runtime.container("ctr0").cpu.cpus == "3")


async def test_one_failed_call_does_not_hold_up_the_next(tmp_path: Path) -> None:
    plugin = recording([], "stop_container")
    async with plugged(tmp_path, plugin, NEW) as (runtime, stub):
        await containers_in(runtime, 2)
        runtime.unupdatable.add("ctr0")
        half = "9" * (3 << 20)  # two of them do not fit into one call
        stub.schedule_updates(
            [ContainerUpdate(f"ctr{n}").set_unified("x", half) for n in (0, 1)]
        )
        await until(lambda: bool(runtime.container("ctr1").resources.unified))

        assert [len(call.update) for call in calls(runtime)] == [1, 1]
        assert runtime.plugins == (NAME,)


async def test_an_update_too_large_for_any_message_is_dropped(tmp_path: Path) -> None:
    plugin = recording([], "stop_container")
    async with plugged(tmp_path, plugin, NEW) as (runtime, stub):
        await containers_in(runtime, 1)
        huge = ContainerUpdate("huge").set_unified("x", "9" * (5 << 20))
        stub.schedule_updates([huge, cpus("ctr0")])
        await until(lambda: runtime.container("ctr0").cpu.cpus == "3")

        assert [call.update[0].container_id for call in calls(runtime)] == ["ctr0"]


async def test_the_container_of_the_request_is_left_for_a_later_reply(
    tmp_path: Path,
) -> None:
    plugin = Scheduler(cpus("ctr0"))
    async with plugged(tmp_path, plugin, OLD) as (runtime, plugin.stub):
        await containers_in(runtime, 2)
        await runtime.start_container("ctr0")
        own = await runtime.update_container("ctr0", LinuxResources())
        other = await runtime.update_container("ctr1", LinuxResources())

    assert (own.updates, other.updates) == ((), (cpus("ctr0"),))


@pytest.mark.parametrize("removes", [False, True], ids=["stopped", "removed"])
async def test_a_removed_container_is_not_updated(
    removes: bool,  # noqa: FBT001 - a parameter of the table
    tmp_path: Path,
) -> None:
    plugin = Scheduler(cpus("ctr0"), cpus("ctr1"))
    async with plugged(tmp_path, plugin, OLD) as (runtime, plugin.stub):
        await containers_in(runtime, 3)
        if removes:
            await runtime.stop_container("ctr0")
            await runtime.start_container("ctr2")
            await runtime.remove_container("ctr0")
        else:
            await runtime.start_container("ctr2")
            await runtime.stop_container("ctr0")
        plugin.returned = []
        stopped = await runtime.stop_container("ctr2")

        waited = () if not removes else (cpus("ctr1"),)
        assert stopped.updates == waited


async def test_a_new_session_does_not_inherit_scheduled_updates(tmp_path: Path) -> None:
    plugin = Scheduler(cpus("ctr0"))
    async with plugged(tmp_path, plugin, OLD) as (runtime, plugin.stub):
        pod = await containers_in(runtime, 1)
        await runtime.start_container("ctr0")
        await runtime.stop()
        await runtime.start()
        await runtime.synchronized(NAME)
        created = await runtime.create_container(pod.id, Container())

    assert created.updates == ()
