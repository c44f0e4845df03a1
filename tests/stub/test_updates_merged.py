"""Updates of one container that wait become one."""

from __future__ import annotations

from pathlib import Path

import pytest

from nri_proto import NriLevel
from nri_resmgr.stub import Container, ContainerUpdate, HugepageLimit
from tests.stub.live import plugged
from tests.stub.scheduling import Scheduler, containers_in, cpus

OLD = NriLevel(0, 11)


@pytest.mark.parametrize(
    ("scheduled", "merged"),
    [
        pytest.param(
            [cpus("ctr0", "1"), ContainerUpdate("ctr0").set_mems("0")],
            ContainerUpdate("ctr0").set_cpus("1").set_mems("0"),
            id="different fields go together",
        ),
        pytest.param(
            [cpus("ctr0", "1"), cpus("ctr0", "2")],
            cpus("ctr0", "2"),
            id="the later value of a field wins",
        ),
        pytest.param(
            [
                ContainerUpdate("ctr0").set_cpu_shares(512),
                ContainerUpdate("ctr0").set_cpu_shares(0),
            ],
            ContainerUpdate("ctr0").set_cpu_shares(0),
            id="a zero is a value",
        ),
        pytest.param(
            [
                ContainerUpdate("ctr0").set_hugepage_limit("2MB", 1),
                ContainerUpdate("ctr0").set_hugepage_limit("2MB", 2),
            ],
            ContainerUpdate("ctr0").set_hugepage_limit("2MB", 2),
            id="no page size stands twice",
        ),
        pytest.param(
            [
                ContainerUpdate("ctr0").set_unified("a", "1"),
                ContainerUpdate("ctr0").set_unified("b", "2"),
            ],
            ContainerUpdate("ctr0").set_unified("a", "1").set_unified("b", "2"),
            id="keys of a map add up",
        ),
        pytest.param(
            [
                cpus("ctr0", "1").ignoring_failure(),
                ContainerUpdate("ctr0").set_mems("0"),
            ],
            ContainerUpdate("ctr0").set_cpus("1").set_mems("0"),
            id="what must not fail makes the whole so",
        ),
        pytest.param(
            [
                cpus("ctr0", "1").ignoring_failure(),
                ContainerUpdate("ctr0").set_mems("0").ignoring_failure(),
            ],
            ContainerUpdate("ctr0").set_cpus("1").set_mems("0").ignoring_failure(),
            id="what may fail twice may fail",
        ),
    ],
)
async def test_updates_of_one_container_become_one(
    scheduled: list[ContainerUpdate], merged: ContainerUpdate, tmp_path: Path
) -> None:
    plugin = Scheduler(*scheduled)
    async with plugged(tmp_path, plugin, OLD) as (runtime, plugin.stub):
        pod = await containers_in(runtime, 1)
        await runtime.start_container("ctr0")
        created = await runtime.create_container(pod.id, Container())

    assert created.updates == (merged,)


async def test_different_page_sizes_add_up(tmp_path: Path) -> None:
    plugin = Scheduler(
        ContainerUpdate("ctr0").set_hugepage_limit("2MB", 1),
        ContainerUpdate("ctr0").set_hugepage_limit("1GB", 2),
    )
    async with plugged(tmp_path, plugin, OLD) as (runtime, plugin.stub):
        pod = await containers_in(runtime, 1)
        await runtime.start_container("ctr0")
        created = await runtime.create_container(pod.id, Container())

    assert created.updates[0].resources.hugepage_limits == (
        HugepageLimit("2MB", 1),
        HugepageLimit("1GB", 2),
    )


async def test_updates_of_the_reply_take_precedence_over_pending_ones(
    tmp_path: Path,
) -> None:
    plugin = Scheduler(cpus("ctr1", "1"), ContainerUpdate("ctr1").set_mems("0"))
    async with plugged(tmp_path, plugin, OLD) as (runtime, plugin.stub):
        await containers_in(runtime, 2)
        await runtime.start_container("ctr0")
        plugin.returned = [cpus("ctr1", "2")]
        stopped = await runtime.stop_container("ctr0")

    assert stopped.updates == (cpus("ctr1", "2").set_mems("0"),)
