"""Verification has cgroups written again, of all containers that have drifted."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from nri_resmgr.app.background.repairs import MOST_AT_ONCE
from nri_resmgr.app.metrics.counters import Metrics
from nri_resmgr.app.observing.history import History
from nri_resmgr.app.verification.inspection import Inspection
from nri_resmgr.app.verification.report import DriftReport
from nri_resmgr.app.verification.verifier import Verification, VerificationOptions
from tests.real_host.patience import patience
from tests.running.node import CgroupNode, cgroup_node
from tests.waiting import until

NAMES: Final = tuple(f"c{number}" for number in range(MOST_AT_ONCE + 5))
OPTIONS: Final = VerificationOptions(interval=0.0, grace=0.01)


def verification_of(node: CgroupNode) -> Verification:
    history = History()
    report = DriftReport(history, Metrics().drift, tuple)
    inspection = Inspection(node.tree)
    return Verification(node.plugin, inspection, history, report, OPTIONS)


def weight_of(node: CgroupNode, name: str) -> Path:
    """Return the file of a weight, which is not watched."""
    return node.path(name) / "cpu.weight"


async def test_all_are_repaired_in_one_round(tmp_path: Path) -> None:
    async with cgroup_node(tmp_path, "1s1n8c1t memory=64Gi") as node:
        for name in NAMES:
            await node.run(name, 0.1)
        await asyncio.sleep(1.5)  # until nothing is compared any more
        before = {name: weight_of(node, name).read_text() for name in NAMES}
        verification = verification_of(node)
        for name in NAMES:
            weight_of(node, name).write_text("7777\n")
        goes_on = await verification.round()
        await until(
            lambda: (
                before == {name: weight_of(node, name).read_text() for name in NAMES}
            ),
            patience(1),  # second, from when it was noticed
        )

        assert not goes_on
        assert verification.repairs.sent == len(NAMES)
        assert "UpdateContainers" not in [one.method for one in node.runtime.records]
