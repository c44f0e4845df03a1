"""CPU classes and interrupts of a host follow what the daemon decides."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from nri_resmgr.testing import PluginRefused
from tests.daemon.host_nodes import (
    BALLOONS,
    CLASS_KEY,
    DEFAULT,
    DISK,
    IRQ_KEY,
    NIC,
    PLAIN,
    POLICIES,
    TREE,
    fast,
    host_node,
    quiet,
)

pytestmark = pytest.mark.process

CLAIM = json.dumps({"claim": ["*eth0*"], "mask": ["*"]})


async def test_cpus_have_the_class_of_their_container(tmp_path: Path) -> None:
    async with host_node(tmp_path, TREE) as node, node.running():
        await node.becomes(quiet())
        await node.pod("web", 2)
        await node.becomes(quiet(2, 6) | fast(2, 6))
        await node.pod("log", 1, {CLASS_KEY: "quiet"})
        await node.go("web")
        await node.becomes(quiet())


async def test_an_orderly_end_restores_the_host(tmp_path: Path) -> None:
    async with host_node(tmp_path, TREE) as node:
        async with node.running():
            await node.pod("web", 2, {IRQ_KEY: CLAIM})
            placed = {NIC: "2,6", DISK: "0-1,3-5,7"}
            await node.becomes(quiet(2, 6) | fast(2, 6) | placed)

        assert node.changed() == {}
        assert not (tmp_path / "state" / "host-changes").exists()


async def test_after_a_kill_the_original_settings_are_known(tmp_path: Path) -> None:
    async with host_node(tmp_path, TREE) as node:
        async with node.running() as process:
            await node.pod("web", 2)
            await node.becomes(quiet(2, 6) | fast(2, 6))
            process.kill()
        assert node.changed() == quiet(2, 6) | fast(2, 6)

        async with node.running():
            await node.go("web")
            await node.becomes(quiet())
        assert node.changed() == {}


async def test_after_a_kill_settings_no_longer_needed_are_restored(
    tmp_path: Path,
) -> None:
    async with host_node(tmp_path, TREE) as node:
        async with node.running() as process:
            await node.pod("web", 2, {IRQ_KEY: CLAIM})
            placed = {NIC: "2,6", DISK: "0-1,3-5,7"}
            await node.becomes(quiet(2, 6) | fast(2, 6) | placed)
            process.kill()

        node.document.write_text(PLAIN)
        await node.go("web")
        async with node.running():
            await node.becomes({})


async def test_another_document_and_another_policy_are_applied_at_once(
    tmp_path: Path,
) -> None:
    async with host_node(tmp_path, TREE) as node, node.running():
        await node.pod("web", 1)
        await node.becomes(quiet(2) | fast(2))

        node.document.write_text(TREE.replace("1.2GHz", "1.4GHz"))
        await node.becomes(dict.fromkeys(quiet(2), "1400000") | fast(2))

        node.document.write_text(BALLOONS)
        quick = {
            f"{POLICIES}/policy3/scaling_min_freq": "2000000",
            NIC: "0-2,4-7",
            DISK: "0-2,4-7",
            DEFAULT: "000000f7",
        }
        await node.becomes(quiet(3) | quick)

        node.document.write_text(PLAIN)
        await node.becomes({})


async def test_an_interrupt_that_may_not_be_moved_is_denied(tmp_path: Path) -> None:
    document = TREE + "  controllableInterrupts: ['*eth0*']\n"
    async with host_node(tmp_path, document) as node, node.running():
        with pytest.raises(PluginRefused) as error:
            await node.pod("web", 1, {IRQ_KEY: CLAIM})
        await node.pod("log", 1, {IRQ_KEY: '{"claim": ["31"]}'})
        await node.becomes(quiet(2) | fast(2) | {NIC: "2"})

    assert "'*' names interrupt 28 (PCI-MSI 0-edge nvme0q1), which " in f"{error.value}"
    assert "controllableInterrupts ['*eth0*'] leaves out" in f"{error.value}"


@pytest.mark.parametrize("seconds", [0.0, 0.01, 0.03, 0.1])
async def test_after_a_kill_at_any_moment_the_next_start_restores_the_host(
    tmp_path: Path, seconds: float
) -> None:
    async with host_node(tmp_path, TREE) as node:
        async with node.running() as process:
            await node.pod("web", 2, {IRQ_KEY: CLAIM})
            await asyncio.sleep(seconds)  # until some write or other
            process.kill()

        node.document.write_text(PLAIN)
        await node.go("web")
        async with node.running():
            await node.says("node.synchronized")
            await node.becomes({})


async def test_a_dry_run_only_logs_the_changes(tmp_path: Path) -> None:
    async with host_node(tmp_path, TREE) as node, node.running("--dry-run"):
        said = await node.says("host.would-change")

        assert said["files"] == 8
        assert node.changed() == {}


async def test_without_a_state_directory_settings_are_not_applied(
    tmp_path: Path,
) -> None:
    async with host_node(tmp_path, TREE) as node, node.running("--state-dir", ""):
        said = await node.says("host.not-applied")

        assert said["why"].startswith("no state directory")
        assert node.changed() == {}
