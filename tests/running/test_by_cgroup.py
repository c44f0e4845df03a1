"""Running containers follow decisions by their cgroups, in order, and at once."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from nri_proto import NriLevel, nri_pb2
from nri_resmgr.app.observing.history import History
from nri_resmgr.app.running.parts import DeliveryTimes
from nri_resmgr.control.state import state_of
from nri_resmgr.testing import PluginRefused
from tests.app.node import SAFE, UNSAFE, asking_for
from tests.control.daemon_parts import daemon_view
from tests.running.node import (
    IDENTITY,
    CgroupNode,
    NodeExtras,
    cgroup_node,
    cpus,
    decided,
)
from tests.waiting import until

# Comparing a value long after it was written would write the decided one, too.
NO_CHECKS = DeliveryTimes(check_after=60)


def traces(node: CgroupNode) -> dict[str, Any]:
    """Return all that a decision may leave behind, but for times and counts."""
    state = state_of(daemon_view(node.plugin, History()))
    for one in state["containers"]:
        (one["delivery"] or {}).pop("waitingSeconds", None)
    pending = node.plugin.updates.pending
    return {
        "cgroups": {
            path.relative_to(node.root).as_posix(): path.read_text()
            for path in sorted(node.root.rglob("*"))
            if path.is_file()
        },
        "pending": node.plugin.delivery.pending(),
        "runtime": (node.recorded("shared"), node.recorded("exclusive")),
        "records": pending.records,
        "status": [state[key] for key in ("containers", "cpus", "nodes", "pools")],
        "reservations": state["reservations"],
    }


async def at_rest(node: CgroupNode) -> dict[str, Any]:
    """Run two containers, and wait until the runtime's record has followed."""
    await node.run("shared", 0.5)
    await node.run("exclusive", 2)
    await node.runtime.update_container("exclusive", asking_for(2))  # its reply has it
    await until(lambda: not node.plugin.updates.pending.records)
    return traces(node)


async def test_an_exclusive_container_starts_when_the_others_have_left(
    tmp_path: Path,
) -> None:
    async with cgroup_node(tmp_path) as node:
        for number in range(5):
            await node.run(f"shared{number}", 0.5)
        created = await node.create("exclusive", 2)
        node.make_cgroup("exclusive")
        await node.runtime.start_container("exclusive")
        own = cpus(node, "exclusive")

        assert created.updates == ()
        assert len(own) == 2
        for number in range(5):
            name = f"shared{number}"
            assert cpus(node, name).isdisjoint(own)
            assert cpus(node, name) == decided(node, name)


async def test_after_a_stop_the_others_grow(tmp_path: Path) -> None:
    async with cgroup_node(tmp_path) as node:
        await node.run("shared", 0.5)
        before = cpus(node, "shared")
        await node.run("exclusive", 2)
        during = cpus(node, "shared")
        await node.stop("exclusive")
        await until(lambda: cpus(node, "shared") == before)

        assert len(during) == len(before) - 2


async def test_a_creation_that_fails_is_undone(tmp_path: Path) -> None:
    async with cgroup_node(tmp_path) as node:
        await node.run("shared", 0.5)
        before = cpus(node, "shared")
        await node.create("exclusive", 2)
        await until(lambda: cpus(node, "shared") != before)
        await node.runtime.remove_container("exclusive")
        await until(lambda: cpus(node, "shared") == before)


@pytest.mark.parametrize(
    ("cpus", "annotations"),
    [
        pytest.param(64, {}, id="by the policy"),
        # Its place is known by then, and that others would have to leave it.
        pytest.param(
            2, {"cpu-freq-governor.crio.io": "performance"}, id="for its place"
        ),
    ],
)
async def test_a_refused_creation_leaves_no_trace(
    tmp_path: Path, cpus: float, annotations: Mapping[str, str]
) -> None:
    # CRI-O; containerd would report the end of the container, too.
    async with cgroup_node(
        tmp_path, level=UNSAFE, times=NO_CHECKS, extras=NodeExtras(runtime="cri-o")
    ) as node:
        before = await at_rest(node)
        written = list(node.tree.written)
        with pytest.raises(PluginRefused):
            await node.create("refused", cpus, annotations)
        after = traces(node)
        # All that waits is written before a container starts.
        node.delivery.before_start("exclusive")
        await until(lambda: not node.delivery.pending())

        assert after == before == traces(node)
        assert node.tree.written == written
        assert node.delivery.status_of("refused") is None


async def test_a_creation_that_fails_after_its_answer_leaves_no_trace(
    tmp_path: Path,
) -> None:
    async with cgroup_node(tmp_path, level=UNSAFE, times=NO_CHECKS) as node:
        before = await at_rest(node)
        await node.create("second", 2)
        await until(lambda: traces(node)["cgroups"] != before["cgroups"])
        during = traces(node)
        await node.runtime.remove_container("second")
        await until(lambda: traces(node) == before)

        # There was something to undo.
        assert during["status"] != before["status"]
        assert node.delivery.status_of("second") is None


@pytest.mark.parametrize("level", [SAFE, UNSAFE])
async def test_a_pod_that_stops_without_its_container_gives_its_cpus_back(
    tmp_path: Path, level: NriLevel
) -> None:
    """The runtime reports no stop of a container that failed to start."""
    async with cgroup_node(tmp_path, level=level, times=NO_CHECKS) as node:
        await node.run("shared", 0.5)
        before = cpus(node, "shared")
        await node.create("exclusive", 2)
        await until(lambda: cpus(node, "shared") != before)
        stopped = nri_pb2.StateChangeEvent(
            event=nri_pb2.STOP_POD_SANDBOX,
            pod=node.runtime.world.pods["pod-exclusive"],
        )
        await node.runtime.call(IDENTITY, "StateChange", stopped)
        await until(lambda: cpus(node, "shared") == before)


async def test_containers_that_lose_cpus_are_written_first(tmp_path: Path) -> None:
    async with cgroup_node(tmp_path) as node:
        names = ("gains", "loses")
        for name in names:
            await node.create(name, 0.5)
            node.make_cgroup(name)
        # Both are to have the same CPUs: one has too few, the other one too many.
        for name, present in (("gains", "7"), ("loses", "0-7")):
            node.record(name, present)
            (node.path(name) / "cpuset.cpus").write_text(f"{present}\n")
        await node.begin_again()
        await until(lambda: cpus(node, "gains") == decided(node, "gains"))

        order = list(
            dict.fromkeys(path.split("/")[-2] for path, _ in node.tree.written)
        )
        assert order == ["cri-loses.scope", "cri-gains.scope"]


async def test_a_container_that_was_not_started_gets_its_cpus_at_its_start(
    tmp_path: Path,
) -> None:
    async with cgroup_node(tmp_path) as node:
        await node.create("shared", 0.5)
        await node.run("exclusive", 2)
        node.make_cgroup("shared", "0-7")  # with the values of its creation
        await node.runtime.start_container("shared")

        assert cpus(node, "shared") == decided(node, "shared")
        assert cpus(node, "shared").isdisjoint(cpus(node, "exclusive"))


async def test_an_unasked_decision_is_written_where_calls_are_unsafe(
    tmp_path: Path,
) -> None:
    async with cgroup_node(tmp_path, level=UNSAFE) as node:
        await node.run("shared", 0.5)
        (node.path("shared") / "cpuset.cpus").write_text("0-7\n")
        node.plugin.delivery.send(["shared"])
        await until(lambda: cpus(node, "shared") == decided(node, "shared"))

        await until(lambda: not node.plugin.delivery.pending())


async def test_a_session_begins_with_a_comparison_of_all(tmp_path: Path) -> None:
    async with cgroup_node(tmp_path) as node:
        await node.run("shared", 0.5)
        # An earlier process was killed between its writes.
        (node.path("shared") / "cpuset.cpus").write_text("3\n")
        await node.begin_again()
        await until(lambda: cpus(node, "shared") == decided(node, "shared"))


async def test_a_start_waits_for_many_slow_writes(tmp_path: Path) -> None:
    async with cgroup_node(tmp_path, "1s1n16c1t memory=256Gi") as node:
        for number in range(40):
            await node.run(f"s{number}", 0.1)
        # Two writes for each of them take longer in all than one may take.
        node.tree.seconds = 0.018
        await node.create("exclusive", 2)
        node.make_cgroup("exclusive")
        await asyncio.sleep(1.2)
        await node.runtime.start_container("exclusive")
        own = cpus(node, "exclusive")

        assert all(cpus(node, f"s{number}").isdisjoint(own) for number in range(40))


async def test_starts_are_answered_and_counted_while_a_write_hangs(
    tmp_path: Path,
) -> None:
    async with cgroup_node(tmp_path) as node:
        await node.run("shared", 0.5)
        node.tree.hold("cri-shared.scope/cpuset.cpus")
        # By the deadline of its request.
        await node.run("exclusive", 2)
        assert node.delivery.counts.late_starts == 1
        assert not cpus(node, "shared").isdisjoint(cpus(node, "exclusive"))

        # The write has hung for so long that this one does not wait for it.
        await node.run("other", 1)
        assert node.delivery.counts.late_starts == 2

        node.tree.release()
        await until(lambda: cpus(node, "shared") == decided(node, "shared"))
        await node.run("last", 1)
        assert node.delivery.counts.late_starts == 2


async def test_many_are_written_in_one_series(tmp_path: Path) -> None:
    async with cgroup_node(tmp_path, "1s1n16c1t memory=256Gi") as node:
        for number in range(120):
            await node.run(f"s{number}", 0.1)
        await node.run("exclusive", 2)
        own = cpus(node, "exclusive")

        assert all(cpus(node, f"s{number}").isdisjoint(own) for number in range(120))


async def test_memory_nodes_follow_apart_from_cpus(tmp_path: Path) -> None:
    async with cgroup_node(tmp_path, "1s2n4c1t") as node:
        await node.run("shared", 0.5)
        wanted = node.plugin.wanted("shared")
        assert wanted is not None
        file = node.path("shared") / "cpuset.mems"
        file.write_text("0-1\n" if str(wanted.mems) != "0-1" else "0\n")
        node.record("shared", str(wanted.cpus))
        await node.begin_again()
        await until(lambda: file.read_text().strip() == str(wanted.mems))


async def test_a_start_does_not_wait_for_memory_that_moves(tmp_path: Path) -> None:
    async with cgroup_node(tmp_path, "1s2n4c1t") as node:
        await node.run("shared", 0.5)
        file = node.path("shared") / "cpuset.mems"
        file.unlink()
        os.mkfifo(file)  # an open of it returns when the test opens its other end
        await node.begin_again()
        await node.run("exclusive", 1)
        apart = cpus(node, "shared").isdisjoint(cpus(node, "exclusive"))
        late = node.delivery.counts.late_starts
        other = os.open(file, os.O_RDWR)
        os.write(other, b"\n")
        await asyncio.sleep(0.1)
        os.close(other)

        assert apart
        assert late == 0


async def test_a_container_that_went_unreported_leaves_its_cpus(
    tmp_path: Path,
) -> None:
    async with cgroup_node(tmp_path, times=DeliveryTimes(check_after=0.05)) as node:
        await node.run("shared", 0.5)
        before = cpus(node, "shared")
        for end in (node.runtime.stop_pod, node.runtime.remove_pod):
            await node.create("exclusive", 2)
            await until(lambda: cpus(node, "shared") != before)
            await asyncio.sleep(0.3)  # until nothing is compared any more
            # Its creation failed, and no StopContainer comes.
            container = node.runtime.world.containers["exclusive"]
            node.runtime.world.stopped(container)
            await end("pod-exclusive")
            await until(lambda: cpus(node, "shared") == before)
            node.runtime.world.containers.pop("exclusive", None)


async def test_a_late_write_for_an_earlier_process_is_undone(tmp_path: Path) -> None:
    async with cgroup_node(tmp_path, times=DeliveryTimes(check_after=0.3)) as node:
        await node.run("shared", 0.5)
        await node.begin_again()
        await asyncio.sleep(1.0)  # the weight is written, and compared
        await node.begin_again()
        await until(lambda: not node.plugin.delivery.pending())
        # The runtime has had it in a reply before the daemon was killed.
        (node.path("shared") / "cpuset.cpus").write_text("3\n")
        await until(lambda: cpus(node, "shared") == decided(node, "shared"))


async def test_a_cgroup_that_comes_during_the_search_is_written_at_the_start(
    tmp_path: Path,
) -> None:
    async with cgroup_node(tmp_path, level=UNSAFE) as node:
        await node.create("shared", 0.5)
        node.tree.hold("cri-shared")
        await node.create("exclusive", 2)
        await until(node.tree.is_held.is_set)
        node.make_cgroup("shared", "0-7")
        starting = asyncio.create_task(node.runtime.start_container("shared"))
        await asyncio.sleep(0.05)
        node.tree.release()
        await starting

        assert cpus(node, "shared") == decided(node, "shared")
        assert not node.delivery.by_runtime()


async def test_a_container_is_known_from_its_resize(tmp_path: Path) -> None:
    async with cgroup_node(tmp_path) as node:
        await node.run("shared", 0.5)
        # As if it had been created while no plugin listened.
        await node.runtime.call(
            IDENTITY,
            "RemoveContainer",
            nri_pb2.RemoveContainerRequest(
                pod=node.runtime.world.pods["pod-shared"],
                container=node.runtime.world.containers["shared"],
            ),
        )
        await node.run("other", 0.5)
        await node.runtime.update_container("shared", asking_for(0.6))
        await node.run("exclusive", 2)

        assert cpus(node, "shared").isdisjoint(cpus(node, "exclusive"))
