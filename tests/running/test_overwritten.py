"""Cpusets that another program writes are written again, with a pause if need be."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from nri_resmgr.app.background.repairs import (
    CONTEST_PAUSE,
    FORGIVEN,
    MOST_ATTEMPTS,
)
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.app.running.containers import DeliveredContainers
from nri_resmgr.app.running.overwrites import Overwrites
from nri_resmgr.app.running.parts import DeliveryTimes
from nri_resmgr.app.running.waiting import WaitingPins
from nri_resmgr.stub.update import ContainerUpdate
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import NO_CPUS, CpuSet
from tests.app.node import SAFE, UNSAFE
from tests.running.node import (
    NO_EXTRAS,
    NodeExtras,
    cgroup_node,
    cpus,
    decided,
)
from tests.waiting import until

WATCHES = NodeExtras(watches=True)
SHORT_CHECKS = DeliveryTimes(check_after=0.05)


async def test_values_overwritten_by_another_program_are_written_again(
    tmp_path: Path,
) -> None:
    async with cgroup_node(tmp_path) as node:
        await node.run("shared", 0.5)
        await node.run("exclusive", 2)
        wanted = cpus(node, "shared")
        (node.path("shared") / "cpuset.cpus").write_text("0-7\n")
        await until(lambda: cpus(node, "shared") == wanted)

        await until(lambda: node.delivery.counts.rewritten == 1)


@pytest.mark.parametrize("extras", [NO_EXTRAS, WATCHES], ids=["", "watched"])
async def test_repeated_overwrites_are_repaired_at_a_slow_pace(
    extras: NodeExtras, tmp_path: Path
) -> None:
    async with cgroup_node(tmp_path, times=SHORT_CHECKS, extras=extras) as node:
        await node.run("shared", 0.5)
        await node.run("exclusive", 2)
        rounds, loop = 0, asyncio.get_running_loop()
        begun = loop.time()
        while node.delivery.counts.rewritten < MOST_ATTEMPTS + 2:
            (node.path("shared") / "cpuset.cpus").write_text("0-7\n")
            await asyncio.sleep(0.005)
            rounds += 1
        took = loop.time() - begun
        (node.path("shared") / "cpuset.cpus").write_text("0-7\n")
        await until(lambda: cpus(node, "shared") == decided(node, "shared"))

        assert node.delivery.overwrites.is_contested("shared")
        assert took >= 2 * CONTEST_PAUSE
        assert rounds > 2 * MOST_ATTEMPTS


async def test_a_much_later_overwrite_is_repaired_at_once(
    tmp_path: Path,
) -> None:
    async with cgroup_node(tmp_path, times=SHORT_CHECKS, extras=WATCHES) as node:
        found: list[tuple[CpuSet, CpuSet]] = []
        node.delivery.overwrites.on_found = lambda write, result: found.append(
            (write.pin.cpus, result.before.cpus if result.before else NO_CPUS)
        )
        await node.run("shared", 0.5)
        await node.run("other", 0.5)
        wanted = cpus(node, "shared")
        await asyncio.sleep(0.5)  # until nothing is compared any more
        for name in ("shared", "other"):
            (node.path(name) / "cpuset.cpus").write_text("0-7\n")
        await until(lambda: cpus(node, "shared") == cpus(node, "other") == wanted)

        assert node.delivery.counts.rewritten == 2
        assert found == [(wanted, CpuSet.parse("0-7"))] * 2


async def test_overwritten_memory_nodes_are_written_again(tmp_path: Path) -> None:
    async with cgroup_node(
        tmp_path, "1s2n4c1t", times=SHORT_CHECKS, extras=WATCHES
    ) as node:
        await node.run("shared", 0.5)
        file = node.path("shared") / "cpuset.mems"
        wanted = file.read_text()
        await asyncio.sleep(0.5)  # until nothing is compared any more
        file.write_text("0-1\n" if wanted != "0-1\n" else "0\n")
        await until(lambda: file.read_text() == wanted)


async def test_memory_nodes_are_left_to_a_program_that_keeps_writing(
    tmp_path: Path,
) -> None:
    async with cgroup_node(
        tmp_path, "1s2n4c1t", times=SHORT_CHECKS, extras=WATCHES
    ) as node:
        contested: list[str] = []
        node.delivery.overwrites.on_contested = contested.append
        await node.run("shared", 0.5)
        nodes = node.path("shared") / "cpuset.mems"
        await asyncio.sleep(0.5)  # until nothing is compared any more
        while not contested:
            (node.path("shared") / "cpuset.cpus").write_text("0-3\n")
            nodes.write_text("0-1\n")
            await asyncio.sleep(0.3)
        await asyncio.sleep(0.5)  # until nothing is compared any more
        for _ in range(2):
            (node.path("shared") / "cpuset.cpus").write_text("4-7\n")
            nodes.write_text("0-1\n")
            await until(lambda: cpus(node, "shared") == decided(node, "shared"))
        left_alone = nodes.read_text()
        # Another decision: attempts count anew.
        await node.run("exclusive", 1)
        await until(lambda: cpus(node, "shared") == decided(node, "shared"))

        assert left_alone == "0-1\n"
        assert contested == ["shared"]
        assert not node.delivery.overwrites.is_contested("shared")


@pytest.mark.parametrize(
    ("pause", "at_once"),
    [
        pytest.param(FORGIVEN / MOST_ATTEMPTS, 100, id="five in ten minutes, for ever"),
        pytest.param(FORGIVEN / (MOST_ATTEMPTS + 1), 84, id="six in ten minutes"),
        pytest.param(1.0, MOST_ATTEMPTS, id="one each second, for 100 s"),
    ],
)
async def test_a_container_is_contested_after_a_number_within_ten_minutes(
    pause: float, at_once: int
) -> None:
    now = 0.0
    policy = ResourcePolicy(parse_spec("1s1n1c1t"))
    known, waiting = DeliveredContainers(policy, 60.0), WaitingPins(0.05)
    overwrites = Overwrites(None, known, waiting, lambda: now)

    rewritten = 0
    for number in range(100):
        now = number * pause
        if not overwrites.is_contested("shared"):
            overwrites.note_rewritten("shared")
            rewritten += 1

    assert rewritten == at_once


async def test_a_contest_ends_with_the_writes_of_the_other_program() -> None:
    now = 0.0
    policy = ResourcePolicy(parse_spec("1s1n1c1t"))
    known, waiting = DeliveredContainers(policy, 60.0), WaitingPins(0.05)
    overwrites = Overwrites(None, known, waiting, lambda: now)
    contested: list[str] = []
    overwrites.on_contested = contested.append
    for second in range(2 * MOST_ATTEMPTS):
        now = float(second)
        overwrites.note_rewritten("shared")
    was_contested = overwrites.is_contested("shared")
    pause = overwrites.pause_of("shared")
    now += FORGIVEN

    assert contested == ["shared"]
    assert was_contested
    assert pause == pytest.approx(CONTEST_PAUSE)
    assert not overwrites.is_contested("shared")
    assert overwrites.pause_of("shared") == 0.0


async def test_files_that_cannot_be_watched_are_logged_once(tmp_path: Path) -> None:
    async with cgroup_node(tmp_path, extras=WATCHES) as node:
        watch = node.delivery.overwrites.watch
        assert watch is not None
        (node.root / "loop").symlink_to("loop")
        with capture_logs() as lines:
            for _ in range(2):
                watch.add("shared", ["/loop"])
                node.delivery.overwrites.listen()

    (line,) = [one for one in lines if one["event"] == "cpusets.not-watched"]
    assert line["why"].startswith("inotify: too many levels of symbolic links")


async def test_a_start_waits_for_the_repair_of_values_overwritten_by_a_call(
    tmp_path: Path,
) -> None:
    async with cgroup_node(tmp_path, level=SAFE) as node:
        await node.run("shared", 0.5)
        await node.run("first", 2)
        pending = node.plugin.updates.pending
        sent = pending.take_records(1)  # a call that waits for the runtime's lock
        await node.create("second", 2)
        node.make_cgroup("second")
        await until(lambda: cpus(node, "shared") == decided(node, "shared"))
        # Applied before the start; its answer is read together with the request.
        update = sent["shared"].linux
        assert update
        assert update.resources
        assert update.resources.cpu
        (node.path("shared") / "cpuset.cpus").write_text(update.resources.cpu.cpus)
        loop = asyncio.get_running_loop()
        loop.call_soon(pending.settle, sent, (), node.delivery.taken)
        if waiting := node.delivery.before_start("second"):
            await waiting

        assert cpus(node, "shared").isdisjoint(cpus(node, "second"))


async def test_a_write_that_the_runtime_may_overwrite_is_not_noted_as_in_force(
    tmp_path: Path,
) -> None:
    async with cgroup_node(tmp_path, level=UNSAFE, times=SHORT_CHECKS) as node:
        await node.run("shared", 0.5)
        await asyncio.sleep(0.5)  # until nothing is compared any more
        file = node.path("shared") / "cpuset.cpus"
        before = file.read_text()
        node.tree.hold("cri-shared.scope/cpuset.cpus")
        await node.create("exclusive", 2)
        await until(node.tree.is_held.is_set)
        # The runtime gets the older pin, which it writes after the write that is held.
        older = ContainerUpdate("shared").set_cpus(before.strip())
        node.delivery.taken({"shared": older})
        node.tree.hold("cri-shared.scope/cpuset.cpus")
        node.tree.release()
        await until(node.tree.is_held.is_set)
        file.write_text(before)
        noted = node.delivery.status_of("shared")
        node.tree.release()
        await until(lambda: cpus(node, "shared") == decided(node, "shared"))

        assert noted is not None
        assert noted.in_force is None
        assert before.strip() != node.cpus("shared")
