"""What the plugin sends to the runtime without being asked."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from nri_proto import NriLevel
from nri_resmgr.app.background.hotplug import INTERVAL, HotplugFollower
from nri_resmgr.app.plugin.changes.reconfiguration import change_machine, reconfigure
from nri_resmgr.app.plugin.timers import Timers
from nri_resmgr.config import BadSetting
from nri_resmgr.policies import parse_config
from nri_resmgr.policy.decision import Timer
from nri_resmgr.policy.events import ColdStartEnded, Event
from nri_resmgr.topology import Machine
from nri_resmgr.topology.synthetic import parse_spec
from tests.app.node import SAFE, UNSAFE, config, running_node
from tests.waiting import until

pytestmark = pytest.mark.slow  # waits for real timers

#  node 0: CPUs 0-3 and DRAM     node 1: slow memory
TIERED = "1s1n4c1t pmem=16G"
COLD: Mapping[str, str] = {
    "cold-start.resource-policy.nri.io/pod": "duration: 1s",
    "memory-type.resource-policy.nri.io/pod": "dram,pmem",
}


async def test_a_cold_start_ends_by_itself(tmp_path: Path) -> None:
    async with running_node(tmp_path, TIERED) as node:
        await node.run("cold", 1, COLD)
        began = asyncio.get_running_loop().time()
        at_first = node.pinned("cold")[1]
        await until(lambda: node.pinned("cold")[1] != at_first)
        passed = asyncio.get_running_loop().time() - began

        assert (at_first, node.pinned("cold")[1]) == ("1", "0-1")
        assert 'DRAM_MEMS="0"\n' in node.published("cold")
        assert passed > 0.9


async def test_no_cold_start_ends_before_it_began(tmp_path: Path) -> None:
    async with running_node(tmp_path, TIERED) as node:
        await node.run_pod("cold", COLD)
        await node.create("cold", 1)
        await asyncio.sleep(1.2)

        assert node.pinned("cold")[1] == "1"


async def test_where_calls_are_unsafe_the_end_is_sent_with_the_next_reply(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path, TIERED, level=UNSAFE) as node:
        await node.run("cold", 1, COLD)
        with capture_logs() as lines:
            await until(lambda: any("cold" in one["event"] for one in lines))
        before = node.pinned("cold")[1]
        await node.run("other", 1)

        assert (before, node.pinned("cold")[1]) == ("1", "0-1")


async def test_a_failed_update_is_sent_with_the_next_reply(tmp_path: Path) -> None:
    async with running_node(tmp_path, TIERED) as node:
        await node.run("cold", 1, COLD)
        node.runtime.unupdatable.add("cold")
        with capture_logs() as lines:
            await until(lambda: any(one["event"] == "updates.failed" for one in lines))
        node.runtime.unupdatable.clear()
        await node.run("other", 1)

        assert node.pinned("cold")[1] == "0-1"


async def test_a_pending_update_of_a_stopped_container_is_dropped(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path, TIERED, level=UNSAFE) as node:
        await node.run("cold", 1, COLD)
        with capture_logs() as lines:
            await until(lambda: any("cold" in one["event"] for one in lines))
        stopped = await node.runtime.stop_container("cold")
        created = await node.run("other", 1)

        assert (stopped.updates, created.updates) == ((), ())


async def test_pending_updates_are_dropped_by_a_synchronize(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path, TIERED, level=UNSAFE) as node:
        await node.run("cold", 1, COLD)
        with capture_logs() as lines:
            await until(lambda: any("cold" in one["event"] for one in lines))
        await node.runtime.stop()
        await node.runtime.start()
        await node.runtime.synchronized("90-resource-policy")
        created = await node.run("other", 1)

        assert (created.updates, node.pinned("cold")[1]) == ((), "0-1")


async def test_a_restart_in_the_middle_of_a_cold_start_ends_it_in_time(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path, TIERED) as node:
        await node.run("cold", 1, {**COLD})
        await node.runtime.stop()
        await node.runtime.start()
        await node.runtime.synchronized("90-resource-policy")
        await until(lambda: node.pinned("cold")[1] == "0-1")


async def test_timers_of_removed_containers_do_not_fire() -> None:
    rung: list[Event] = []
    timers = Timers(rung.append)
    names = ("here", "gone", "late", "early")
    ends = {name: ColdStartEnded(name) for name in names}
    soon = [Timer(ends[name], 0) for name in ("here", "gone", "late")]
    timers.set([*soon, Timer(ends["early"], 60)])
    # A timer that is set again fires at the later time.
    timers.set([Timer(ends["late"], 60), Timer(ends["early"], 60, since=1)])
    timers.keep_only({"here", "late", "early"})
    await asyncio.sleep(0.05)
    timers.keep_only(())

    assert rung == [ends["here"], ends["early"]]


@pytest.mark.parametrize("level", [SAFE, UNSAFE])
async def test_a_new_configuration_moves_running_containers(
    tmp_path: Path, level: NriLevel
) -> None:
    async with running_node(tmp_path, "1s1n6c1t", level=level) as node:
        await node.run("web", 2)
        before = node.pinned("web")[0]
        reconfigure(
            node.plugin,
            parse_config(config(f"{{reservedResources: {{cpu: 'cpuset:{before}'}}}}")),
        )
        if level == SAFE:
            await until(lambda: node.pinned("web")[0] != before)
        else:
            await node.run("other", 0.1)

        assert (before, node.pinned("web")[0]) == ("1-2", "0,3")


def test_a_change_of_cpus_is_found_in_half_of_the_second_that_it_may_take() -> None:
    assert INTERVAL <= 0.5


async def test_cpus_that_come_are_used(tmp_path: Path) -> None:
    machines = [parse_spec("1s1n4c1t offline=0"), parse_spec("1s1n6c1t")]

    def next_machine() -> Machine | None:
        return machines.pop(0) if machines else None

    spec = "{reservedResources: {cpu: 'cpuset:0'}}"
    async with running_node(tmp_path, "1s1n4c1t", spec) as node:
        await node.run("log", 0.2)
        before = node.pinned("log")[0]
        with capture_logs() as lines:
            take = partial(change_machine, node.plugin)
            follower = HotplugFollower(next_machine, take, 0.01)
            watching = asyncio.create_task(follower.follow())
            await until(lambda: node.pinned("log")[0] == "1-5")
        watching.cancel()

        assert before == "1-3"
        assert [one["event"] for one in lines if "topology" in one["event"]] == [
            "topology.changed",
            "topology.changed",
        ]


async def test_a_machine_not_taken_because_of_a_fault_is_taken_again() -> None:
    machine, taken = parse_spec("1s1n6c1t"), list[Machine]()
    found = [machine]

    def take(one: Machine) -> None:
        taken.append(one)
        if len(taken) == 1:
            raise MemoryError

    follower = HotplugFollower(lambda: found.pop() if found else None, take, 0.01)
    with pytest.raises(MemoryError):
        await follower.follow()
    again = asyncio.create_task(follower.follow())
    await until(lambda: len(taken) == 2)
    again.cancel()

    assert taken == [machine, machine]


async def test_a_configuration_is_tried_with_the_present_machine(
    tmp_path: Path,
) -> None:
    spec = "{reservedResources: {cpu: 'cpuset:0'}}"
    async with running_node(tmp_path, "1s1n4c1t", spec) as node:
        change_machine(node.plugin, parse_spec("1s1n4c1t offline=0"))
        too_many = parse_config(config("{reservedResources: {cpu: 4}}"))
        with pytest.raises(BadSetting, match="expected 1 to 3 CPUs"):
            reconfigure(node.plugin, too_many)
        other = config("{reservedResources: {cpu: 'cpuset:1'}}")
        reconfigure(node.plugin, parse_config(other))
        await node.run("log", 0.2)

        assert node.pinned("log")[0] == "2-3"
