"""Pins that the runtime has to set, and its record of those that it has not set."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from nri_resmgr.app.running.parts import DeliveryTimes
from nri_resmgr.values import CpuSet
from tests.app.node import SAFE, UNSAFE, asking_for
from tests.host.read_only_mount import read_only
from tests.running.node import (
    cgroup_node,
    cpus,
    decided,
)
from tests.verification.cgroup_trees import MOUNT
from tests.waiting import until


async def test_a_cgroup_that_cannot_be_written_is_left_to_the_runtime(
    tmp_path: Path,
) -> None:
    async with cgroup_node(tmp_path, level=SAFE) as node:
        await node.run("other", 0.5)
        await node.run("shared", 0.5)
        file = node.path("shared") / "cpuset.cpus"
        file.unlink()
        file.mkdir()  # so that a write fails
        await node.run("exclusive", 2)
        wanted = str(decided(node, "shared"))
        await until(lambda: node.recorded("shared") == wanted)
        created = await node.create("second", 1)

        assert cpus(node, "other").isdisjoint(cpus(node, "exclusive"))
        assert node.delivery.by_runtime().keys() == {"shared"}
        # Known now: the reply has its update.
        assert [one.container_id for one in created.updates] == ["shared"]


async def test_a_fall_back_and_its_end_are_logged_once_each(tmp_path: Path) -> None:
    async with cgroup_node(
        tmp_path, level=SAFE, times=DeliveryTimes(retry_after=0.0)
    ) as node:
        await node.run("shared", 0.5)
        file = node.path("shared") / "cpuset.cpus"
        present = file.read_text()
        file.unlink()
        file.mkdir()  # so that a write fails
        with capture_logs() as lines:
            for name in ("first", "second"):
                await node.run(name, 1)
                await until(
                    lambda: node.recorded("shared") == str(decided(node, "shared"))
                )
            file.rmdir()
            file.write_text(present)
            for name in ("third", "fourth"):
                await node.run(name, 1)
                await until(lambda: cpus(node, "shared") == decided(node, "shared"))

    said = [one for one in lines if one["event"].startswith("pin.by-")]
    assert [(one["event"], one["title"]) for one in said] == [
        ("pin.by-runtime", "shop/shared/shared"),
        ("pin.by-cgroup", "shop/shared/shared"),
    ]
    assert "cpuset.cpus" in said[0]["why"]


@pytest.mark.slow
async def test_cgroups_that_become_read_only_are_left_to_the_runtime(
    tmp_path: Path,
) -> None:
    async with cgroup_node(
        tmp_path, level=SAFE, times=DeliveryTimes(retry_after=0.0)
    ) as node:
        await node.run("shared", 0.5)
        await node.run("exclusive", 2)
        await until(lambda: node.recorded("shared") == str(decided(node, "shared")))
        with read_only(node.root / MOUNT):
            await node.runtime.stop_container("exclusive")
            wanted = str(decided(node, "shared"))
            await until(lambda: node.recorded("shared") == wanted)
            (why,) = node.delivery.by_runtime().values()
        await node.run("second", 1)
        await until(lambda: cpus(node, "shared") == decided(node, "shared"))

        assert "read-only file system (mount the host's /sys/fs/cgroup writable)" in why
        assert not node.delivery.by_runtime()


async def test_without_a_cgroup_the_runtime_updates(tmp_path: Path) -> None:
    async with cgroup_node(tmp_path, level=SAFE) as node:
        await node.create("shared", 0.5)
        await node.runtime.start_container("shared")  # in a virtual machine, maybe
        await node.run("exclusive", 2)
        wanted = str(decided(node, "shared"))
        await until(lambda: node.recorded("shared") == wanted)


@pytest.mark.slow
async def test_the_record_of_the_runtime_follows(tmp_path: Path) -> None:
    async with cgroup_node(tmp_path, level=SAFE) as node:
        await node.run("shared", 0.5)
        await node.run("exclusive", 2)
        at_once = node.recorded("shared")
        wanted = str(decided(node, "shared"))
        await until(lambda: node.recorded("shared") == wanted)

        # Its answer comes a moment after the runtime has the value.
        await until(lambda: node.plugin.updates.pending.records == 0)

        assert at_once != wanted


async def test_a_change_that_is_undone_needs_no_record_update(tmp_path: Path) -> None:
    async with cgroup_node(tmp_path, level=SAFE) as node:
        await node.run("shared", 0.5)
        before = node.recorded("shared")
        await node.run("exclusive", 2)
        await node.stop("exclusive")
        await until(lambda: cpus(node, "shared") == CpuSet.parse(before))
        await asyncio.sleep(1.5)

        assert "UpdateContainers" not in [one.method for one in node.runtime.records]
        assert node.recorded("shared") == before


async def test_the_own_event_of_a_container_brings_its_record_in_line(
    tmp_path: Path,
) -> None:
    async with cgroup_node(tmp_path, level=UNSAFE) as node:
        await node.run("shared", 0.5)
        await node.run("exclusive", 2)
        await node.runtime.update_container("shared", asking_for(0.6))

        assert node.recorded("shared") == str(decided(node, "shared"))


async def test_a_thread_that_fails_leaves_all_to_the_runtime(tmp_path: Path) -> None:
    async with cgroup_node(tmp_path, level=SAFE) as node:
        await node.run("shared", 0.5)
        # As a part does that fails, and is not started again yet.
        node.delivery.problem = "RuntimeError: can't start new thread"
        created = await node.create("exclusive", 2)

        assert [one.container_id for one in created.updates] == ["shared"]
        assert node.recorded("shared") == str(decided(node, "shared"))


async def test_after_a_failed_thread_the_cgroups_are_written_again(
    tmp_path: Path,
) -> None:
    # This runtime takes updates with replies only, and no request comes.
    async with cgroup_node(tmp_path, level=UNSAFE) as node:
        await node.run("shared", 0.5)
        before = cpus(node, "shared")
        await node.run("exclusive", 2)
        node.tree.errors.append(RuntimeError("can't start new thread"))
        await node.stop("exclusive")
        await until(lambda: cpus(node, "shared") == before)

        assert not node.tree.errors
        assert node.delivery.by_runtime() == {}


async def test_a_container_without_cgroup_gets_its_cpus_at_its_start(
    tmp_path: Path,
) -> None:
    async with cgroup_node(tmp_path, level=UNSAFE) as node:
        await node.create("shared", 0.5)
        await node.begin_again()
        await until(lambda: "shared" in node.delivery.by_runtime())
        node.make_cgroup("shared", "0-7")  # with the values of its creation
        await node.runtime.start_container("shared")
        await node.run("exclusive", 2)

        assert not node.delivery.by_runtime()
        assert cpus(node, "shared").isdisjoint(cpus(node, "exclusive"))
