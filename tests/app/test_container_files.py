"""The files in which containers find what they have."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from nri_resmgr.app.plugin.changes.reconfiguration import reconfigure
from nri_resmgr.app.plugin.container_files import ContainerFiles, resource_texts
from nri_resmgr.app.plugin.options import PluginOptions
from nri_resmgr.host.resource_files import ResourceFiles
from nri_resmgr.policies import parse_config
from nri_resmgr.policy.decision import Resources
from nri_resmgr.stub import Container, Mount
from nri_resmgr.testing import RuntimeRefusal
from nri_resmgr.topology import MemoryKind
from nri_resmgr.values import CpuSet, NodeSet
from tests.app.node import running_node
from tests.waiting import until

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
def test_both_files_list_the_values_that_are_not_empty(
    resources: Resources, text: str
) -> None:
    texts = resource_texts(resources)
    from_json = json.loads(texts["resources.json"])

    assert texts["resources.sh"] == text
    assert "".join(f'{key}="{one}"\n' for key, one in from_json.items()) == text


async def test_a_container_has_its_files_and_those_of_others_are_updated(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path) as node:
        created = await node.run("log", 0.2)
        alone = node.published("log")
        await node.run("web", 2)
        await until(lambda: node.published("log") != alone)
        beside, web = node.published("log"), node.published("web")
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
        assert alone == node.published("log")
        assert 'EXCLUSIVE_CPUS="' in web
        assert 'SHARED_CPUS="' in beside
        assert "EXCLUSIVE" not in beside


BALLOONS = """
apiVersion: config.nri/v1alpha1
kind: BalloonsPolicy
spec:
  reservedResources: {cpu: 1}
  balloonTypes: [{name: own, namespaces: [default], minCPUs: 2, maxCPUs: 2}]
"""


async def test_cpus_are_exclusive_only_while_no_other_container_runs_there(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path) as node:
        reconfigure(node.plugin, parse_config(BALLOONS))
        await node.run("web", 0.5)
        alone, pinned = node.published("web"), node.pinned("web")
        await node.run("log", 0.5)
        await until(lambda: node.published("web") != alone)
        beside = node.published("web")
        await node.runtime.stop_container("log")
        await until(lambda: node.published("web") != beside)

        assert node.pinned("web") == pinned
        assert alone.startswith("EXCLUSIVE_CPUS=")
        assert beside.startswith(f'SHARED_CPUS="{pinned[0]}"')
        assert node.published("web") == alone


async def test_files_are_at_the_path_that_is_configured(tmp_path: Path) -> None:
    def at_another_path(runs: Path) -> PluginOptions:
        return PluginOptions(run_dir=str(runs), resource_path="/.cri-resmgr")

    async with running_node(tmp_path, plugin_options=at_another_path) as node:
        created = await node.run("web", 1)
        own = Mount("/.cri-resmgr", "bind", "/srv", ("ro",))
        await node.run_pod("log")
        other = await node.create("log", 1, own)

        assert [one.destination for one in created.adjustment.mounts] == [
            "/.cri-resmgr"
        ]
        assert other.adjustment.mounts == ()


async def test_a_mount_of_the_pod_at_the_same_path_is_kept(tmp_path: Path) -> None:
    own = Mount("/.nri-resource-policy", "bind", "/srv", ("ro",))
    async with running_node(tmp_path) as node:
        await node.run_pod("web")
        created = await node.create("web", 1, own)

        assert created.adjustment.mounts == ()
        assert node.folders() == []


async def test_a_resize_is_reported(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.run("web", 2)
        before = node.published("web")
        await node.resize("web", 3)
        await until(lambda: node.published("web") != before)

        cpus = CpuSet.parse(node.published("web").split('"')[1])
        assert len(cpus) == 3


async def test_a_refused_container_leaves_nothing_behind(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.run_pod("big")
        with pytest.raises(RuntimeRefusal, match="default/big/big"):
            await node.create("big", 9)

        assert node.folders() == []
        assert list(node.plugin.state.ledger.entries) == []


async def test_an_unwritable_folder_is_logged_once_and_not_mounted(
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


class CleanedFiles(ResourceFiles):
    """Another program cleans up as soon as a folder is there."""

    def make(self, container: str) -> bool:
        is_new = super().make(container)
        shutil.rmtree(self.folder_of(container))
        return is_new


async def test_an_unwritable_file_is_logged_once(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        for name in ("web", "log"):
            await node.run(name, 1)
        files = ContainerFiles(CleanedFiles(f"{tmp_path}/other"), node.plugin)
        with capture_logs() as lines:
            found = [files.mount_for(Container(id=name)) for name in ("web", "log")]
            for name in ("web", "log"):
                files.fill(name)

    assert [one.source for one in found if one] == [
        f"{tmp_path}/other/containers/web",
        f"{tmp_path}/other/containers/log",
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
async def test_without_anything_to_report_there_are_no_files(
    tmp_path: Path, spec: str, plugin_options: PluginOptions
) -> None:
    def with_files(runs: Path) -> PluginOptions:
        return PluginOptions(plugin_options.dry_run, str(runs))

    async with running_node(tmp_path, spec=spec, plugin_options=with_files) as node:
        created = await node.run("web", 1)

        assert created.adjustment.mounts == ()
        assert node.folders() == []


async def test_files_of_an_earlier_session_are_updated_or_removed(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path) as node:
        await node.run("web", 1)
        reported = node.published("web")
        runtime = node.runtime
        (node.runs / "containers/web/resources.sh").write_text("old")
        (node.runs / "containers/gone").mkdir()
        await runtime.stop()
        await runtime.start()
        await runtime.synchronized("90-resource-policy")
        await until(lambda: node.folders() == ["web"])

        assert node.published("web") == reported
