"""The topology-aware policy in the emulated machine: what containers see."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.real_host.containerd import Containerd
from tests.real_host.patience import wait_until
from tests.real_host.sights import Sights, play
from tests.real_host.stage import Stage
from tests.real_host.stage_plugins import Restarted

pytestmark = pytest.mark.containerd

# The story is also played with the policy alone; the same is expected there.
_CASES: Final = Path(__file__).parents[1] / "policy/cases/topology-aware"
STORY: Final = yaml.safe_load((_CASES / "filling-node.yaml").read_text())


@pytest.fixture(scope="module")
def stage(
    shared_containerd: Containerd, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stage]:
    """The node, on which each step begins where the last one ended.

    Its pods stay behind, so this module is the last by name.
    """
    log = tmp_path_factory.mktemp("stage") / "log"
    plugin = Restarted(shared_containerd.layout.nri_socket, log)
    kind, settings = "TopologyAwarePolicy", STORY["spec"]
    with Stage(shared_containerd, plugin, kind, settings) as stage:
        yield stage


@pytest.fixture(scope="module")
def expected() -> Sights:
    """What all containers should see by now; empty for those left alone."""
    return {}


@pytest.mark.parametrize(
    "step", [pytest.param(step, id=step["shows"]) for step in STORY["story"]]
)
def test_containers_see_that(
    stage: Stage, expected: Sights, step: Mapping[str, Any]
) -> None:
    play(stage, expected, step)

    for name, reported in step.get("resources", {}).items():
        # Files are written when the reply is out.
        wait_until(partial(stage.shows, name, reported), f"{name} to show {reported}")
    if "shares" in step:
        assert stage.weight(step["create"]) == weight_of(step["shares"])


def weight_of(shares: int) -> int:
    """``cpu.weight`` as the guest's runc makes it of shares.

    Source:
        runc 1.1, libcontainer/cgroups, ConvertCPUSharesToCgroupV2Value.
    """
    return 1 + (shares - 2) * 9999 // 262142


def test_a_process_started_inside_finds_the_same(
    stage: Stage, expected: Sights
) -> None:
    """Others are looked at from outside, where a file of /proc is the same."""
    script = "grep _allowed_list: /proc/self/status; cd /.nri-resource-policy; cat *"
    said = stage.containers["half"].exec("sh", "-c", script).splitlines()
    cpus, mems = expected["half"].split(" on ")
    reported = {
        "SHARED_CPUS": cpus,
        "ALL_MEMS": mems,
        "DRAM_MEMS": "1",
        "CXL_MEMS": "4",
    }

    assert said[:2] == [f"Cpus_allowed_list:\t{cpus}", f"Mems_allowed_list:\t{mems}"]
    assert json.loads(said[2]) == reported
    assert said[3:] == [f'{name}="{value}"' for name, value in reported.items()]


def test_a_restart_finds_nothing_to_change(stage: Stage) -> None:
    synchronized = stage.plugin.events("node.synchronized")
    [*starts, hotplug] = [line["updates"] for line in synchronized]

    # One or more at each start: on a slow machine the first may come too late.
    assert set(starts) == {0}
    assert hotplug == 3


def test_a_container_has_the_scheduling_of_its_class(stage: Stage) -> None:
    """The runtime cannot: its NRI is too old. So the daemon has done it.

    Source:
        proc_pid_stat(5): fields 19 and 41, counted behind the name.
    """
    [first, *_] = stage.containers["mixed"].cgroup.read("cgroup.procs").split()
    _, _, rest = Path("/proc", first, "stat").read_text().rpartition(") ")
    fields = rest.split()

    assert (int(fields[16]), int(fields[38])) == (5, os.SCHED_BATCH)
    assert stage.plugin.events("scheduling.not-set") == []
