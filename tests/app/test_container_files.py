"""The files in which containers find what they have."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from nri_resmgr.app.plugin.options import PluginOptions
from nri_resmgr.app.published.container_files import ResourceMounts, resource_texts
from nri_resmgr.host.resource_files import ResourceFiles
from nri_resmgr.policy.decision import Resources
from nri_resmgr.stub import Container, Mount
from nri_resmgr.testing import RuntimeRefusal
from nri_resmgr.topology import MemoryKind
from nri_resmgr.values import CpuSet, NodeSet
from tests.app.node import running_node, until

CXL = Resources(
    shared=CpuSet.parse("0-3"),
    isolated=CpuSet.of(9),
    exclusive=CpuSet.parse("4,6"),
    mems={
        MemoryKind.CXL: NodeSet.of(4),
        MemoryKind.DRAM: NodeSet.parse("0-1"),
        MemoryKind.HBM: NodeSet.of(3),
        MemoryKind.PMEM: NodeSet.of(2),
    },
)


@pytest.mark.parametrize(
    ("resources", "text"),
    [
        pytest.param(
            CXL,
            'SHARED_CPUS="0-3"\nISOLATED_CPUS="9"\nEXCLUSIVE_CPUS="4,6"\n'
            'ALL_MEMS="0-4"\nDRAM_MEMS="0-1"\nPMEM_MEMS="2"\nHBM_MEMS="3"\n'
            'CXL_MEMS="4"\n',
            id="all that there can be",
        ),
        pytest.param(
            Resources(exclusive=CpuSet.of(1)), 'EXCLUSIVE_CPUS="1"\n', id="one of them"
        ),
        pytest.param(Resources(), "", id="nothing at all"),
    ],
)
def test_both_files_say_what_is_not_empty(resources: Resources, text: str) -> None:
    texts = resource_texts(resources)
    from_json = json.loads(texts["resources.json"])

    assert texts["resources.sh"] == text
    assert "".join(f'{key}="{one}"\n' for key, one in from_json.items()) == text


async def test_a_container_finds_its_files_and_others_see_theirs_change(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path) as node:
        created = await node.run("log", 0.2)
        alone = node.told("log")
        await node.run("web", 2)
        await until(lambda: node.told("log") != alone)
        beside, web = node.told("log"), node.told("web")
        await node.runtime.stop_container("web")
        await until(lambda: node.folders() == ["log"])

        assert list(created.adjustment.mounts) == [
            Mount(
                "/.nri-resource-policy",
                "bind",
                str(tmp_path / "run/containers/log"),
                ("bind", "ro", "nosuid", "nodev"),
            )
        ]
        assert alone == node.told("log")
        assert 'EXCLUSIVE_CPUS="' in web
        assert 'SHARED_CPUS="' in beside
        assert "EXCLUSIVE" not in beside


async def test_what_a_pod_has_at_that_place_stays_there(tmp_path: Path) -> None:
    own = Mount("/.nri-resource-policy", "bind", "/srv", ("ro",))
    async with running_node(tmp_path) as node:
        await node.run_pod("web")
        created = await node.create("web", 1, own)

        assert created.adjustment.mounts == ()
        assert node.folders() == []


async def test_a_resize_is_told(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.run("web", 2)
        before = node.told("web")
        await node.resize("web", 3)
        await until(lambda: node.told("web") != before)

        cpus = CpuSet.parse(node.told("web").split('"')[1])
        assert len(cpus) == 3


async def test_a_refused_container_leaves_nothing_behind(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.run_pod("big")
        with pytest.raises(RuntimeRefusal, match="default/big/big"):
            await node.create("big", 9)

        assert node.folders() == []
        assert list(node.plugin.state.ledger.entries) == []


async def test_a_folder_that_cannot_be_written_costs_the_mount_and_one_line(
    tmp_path: Path,
) -> None:
    (tmp_path / "run").write_text("no folder")
    with capture_logs() as lines:
        async with running_node(tmp_path) as node:
            first = await node.run("web", 1)
            second = await node.run("log", 1)

    assert (first.adjustment.mounts, second.adjustment.mounts) == ((), ())
    assert node.pinned("web") != ("", "")
    assert [one["event"] for one in lines if "files" in one["event"]] == [
        "resource-files.unwritable"
    ]


def test_a_file_that_cannot_be_written_costs_one_line(tmp_path: Path) -> None:
    files = ResourceFiles(str(tmp_path))

    def resources_of(container: str) -> Resources:
        # Somebody cleans up as soon as the folder is there.
        shutil.rmtree(tmp_path / "containers" / container, ignore_errors=True)
        return CXL

    mounts = ResourceMounts(files, resources_of)
    with capture_logs() as lines:
        found = [mounts.mount_for(Container(id=name)) for name in ("web", "log")]
        for name in ("web", "log"):
            mounts.fill(name)

    assert [one.source for one in found if one] == [
        f"{tmp_path}/containers/web",
        f"{tmp_path}/containers/log",
    ]
    assert [one["event"] for one in lines] == ["resource-files.unwritable"]


@pytest.mark.parametrize(
    ("spec", "plugin_options"),
    [
        pytest.param(
            "{publishResources: false}", PluginOptions(), id="where the settings say no"
        ),
        pytest.param("{}", PluginOptions(dry_run=True), id="in a dry run"),
    ],
)
async def test_nobody_is_told(
    tmp_path: Path, spec: str, plugin_options: PluginOptions
) -> None:
    def with_files(runs: Path) -> PluginOptions:
        return PluginOptions(plugin_options.dry_run, str(runs))

    async with running_node(tmp_path, spec=spec, plugin_options=with_files) as node:
        created = await node.run("web", 1)

        assert created.adjustment.mounts == ()
        assert node.folders() == []


async def test_what_an_earlier_life_left_is_cleaned_up_and_brought_up_to_date(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path) as node:
        await node.run("web", 1)
        told = node.told("web")
        runtime = node.runtime
        (node.runs / "containers/web/resources.sh").write_text("old")
        (node.runs / "containers/gone").mkdir()
        await runtime.stop()
        await runtime.start()
        await runtime.synchronized("90-resource-policy")
        await until(lambda: node.folders() == ["web"])

        assert node.told("web") == told
