"""Containers with partitions keep their CPUs whatever happens at the same time."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Final

import pytest

from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.testing import Runtime
from tests.app.node import SAFE
from tests.running.partition_races import CPUS, PartitionRaces
from tests.running.shared_kernel import PartitionWorld, SharedKernel

pytestmark = pytest.mark.slow

LIVES: Final = 6  # of daemons, one after the other


@pytest.mark.parametrize("seed", range(4))
async def test_laws_hold_with_partitions(tmp_path: Path, seed: int) -> None:
    draw = Random(seed)  # noqa: S311 - no secrets
    kernel = SharedKernel(CPUS, ("system.slice", "k"))
    async with Runtime(tmp_path, SAFE) as runtime:
        runtime.world = PartitionWorld(kernel)
        state = StateDir.open(str(tmp_path / "state"))
        races = PartitionRaces(runtime, kernel, state, draw)
        for number in range(LIVES):
            await races.live(is_killed=number % 3 != 2)
        await races.end_all()
        await races.live(is_killed=True)

    assert races.cuts
    assert races.starts
    assert races.partitions
    assert races.intruders
