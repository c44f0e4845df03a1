"""Running containers have what was decided, whatever happens at the same time."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.real_host.patience import is_slow_machine
from tests.running.container_cgroups import (
    ContainerCgroups,
    FolderCgroups,
    KernelCgroups,
)
from tests.running.races import run_races

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(600)]

# `make soak` makes 10,000, and emulated CPUs have time for some.
EVENTS = int(os.environ.get("NRI_RESMGR_TEST_RACES", "1500"))


@pytest.mark.machine
async def test_laws_hold_on_this_kernel(tmp_path: Path) -> None:
    try:
        cgroups = KernelCgroups()
    except OSError as reason:
        pytest.skip(f"no cgroup can be made: {reason}")
    # Emulated CPUs have no time for as many daemons as that may take.
    await check(tmp_path, cgroups, needs_cut=not is_slow_machine())


async def test_laws_hold_on_a_larger_machine(tmp_path: Path) -> None:
    cgroups = FolderCgroups(tmp_path, "2s2n4c2t memory=64Gi")
    await check(tmp_path, cgroups, needs_cut=True)


async def check(folder: Path, cgroups: ContainerCgroups, *, needs_cut: bool) -> None:
    seed = random.SystemRandom().randrange(10_000)
    print(f"seed {seed}")
    tally = await run_races(folder, cgroups, seed, EVENTS, needs_cut=needs_cut)
    print(tally)

    assert tally.starts
    assert tally.kills
    assert tally.cuts or not needs_cut
    assert tally.leaks() == ""
