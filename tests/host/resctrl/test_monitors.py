"""Monitoring groups of pods, and what counters say."""

from __future__ import annotations

import errno
from pathlib import Path

import msgspec
import pytest

from nri_resmgr.classes.rdt.plan import Plan
from nri_resmgr.classes.rdt.settings import ROOT_CLASS
from nri_resmgr.host.resctrl import Count, RdtControl
from nri_resmgr.host.resctrl.errors import BadGroupName, GroupRefused, UnknownGroup
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.host.tree import HostTree
from nri_resmgr.testing.resctrl import Hardware, Resctrl, Ways
from tests.host.resctrl.kept import World

# One cache, so that a group has one row.
SMALL = Hardware(l3=Ways(ids=(5,)), throttle=None, rmids=4)


def world_with(hardware: Hardware = SMALL) -> World:
    world = World(hardware)
    world.control.apply(Plan({"gold": ""}))
    return world


def test_a_pod_has_a_group_in_its_class_until_it_goes() -> None:
    world = world_with()
    world.control.monitor("pod1", "gold")
    world.control.monitor("pod1", "gold")
    world.control.monitor("pod2", ROOT_CLASS)
    there = world.resctrl.names("gold/mon_groups"), world.resctrl.names("mon_groups")
    world.started().unmonitor("pod1", "gold")
    world.control.unmonitor("pod1", "gold")
    world.control.unmonitor("pod2", ROOT_CLASS)

    assert there == (("pod1",), ("pod2",))
    assert world.resctrl.names("gold/mon_groups") == ()
    assert world.resctrl.names("mon_groups") == ()
    assert world.commands.count("rmdir gold/mon_groups/pod1") == 1
    assert all(command.locked for command in world.resctrl.commands)


def test_groups_of_pods_go_with_their_class() -> None:
    world = world_with()
    world.control.monitor("pod1", "gold")
    world.control.apply(Plan({}))

    assert world.kept.texts == {}


def test_a_removed_group_is_dropped_from_the_journal() -> None:
    world = world_with()
    world.control.monitor("pod1", "gold")
    world.resctrl.rmdir("gold/mon_groups/pod1")
    world.control.unmonitor("pod1", "gold")

    assert "pod1" not in world.kept.texts["resctrl"]


def test_a_group_of_another_program_will_do_and_stays() -> None:
    world = world_with()
    world.resctrl.mkdir("gold/mon_groups/pod1")
    world.control.monitor("pod1", "gold")
    world.control.unmonitor("pod1", "gold")

    assert world.resctrl.names("gold/mon_groups") == ("pod1",)


def test_pods_beyond_the_counters_are_refused_with_the_error_of_the_kernel() -> None:
    world = world_with()
    world.control.monitor("pod1", "gold")
    world.control.monitor("pod2", "gold")
    kept = dict(world.kept.texts)
    with pytest.raises(GroupRefused) as refusal:
        world.control.monitor("pod3", "gold")

    assert str(refusal.value) == (
        "RDT class 'gold': cannot make /sys/fs/resctrl/gold/mon_groups/pod3: "
        "Out of RMIDs (no space left on device)"
    )
    assert world.kept.texts == kept
    world.resctrl.state.draining = True
    with pytest.raises(GroupRefused, match=r"Out of RMIDs \(device or resource busy"):
        world.control.monitor("pod3", "gold")


def test_there_is_no_group_without_class_or_name() -> None:
    world = world_with()
    with pytest.raises(UnknownGroup):
        world.control.monitor("pod1", "silver")
    with pytest.raises(BadGroupName):
        world.control.monitor("../silver", "gold")


def test_restoring_removes_groups_of_pods() -> None:
    world = world_with()
    before = world.resctrl.picture()
    world.control.monitor("pod1", ROOT_CLASS)
    world.control.monitor("pod1", "gold")
    world.resctrl.rmdir("gold")
    report = world.started().restore()

    assert (report.removed, report.failed) == ((), ())
    assert world.resctrl.picture().keys() < before.keys()
    assert world.resctrl.names("mon_groups") == ()
    assert world.kept.texts == {}


def test_a_group_that_cannot_be_removed_is_tried_again() -> None:
    world = world_with()
    world.control.monitor("pod1", ROOT_CLASS)
    world.resctrl.faults.fail(0, errno.EBUSY)
    report = world.control.restore()

    why = "device or resource busy"
    assert report.failed == (("/sys/fs/resctrl/mon_groups/pod1", why),)
    assert report.removed == ("gold",)
    assert world.started().restore().failed == ()
    assert world.resctrl.names("mon_groups") == ()


@pytest.mark.parametrize(
    "hardware",
    [
        pytest.param(SMALL, id="a cache in one piece"),
        pytest.param(
            msgspec.structs.replace(SMALL, clusters=2), id="sub-NUMA clusters"
        ),
    ],
)
def test_counters_are_rows_of_class_group_and_cache(hardware: Hardware) -> None:
    world = world_with(hardware)
    world.control.monitor("pod1", "gold")
    for event, value in (("llc_occupancy", 7), ("mbm_local_bytes", 70)):
        world.resctrl.count("gold/mon_groups/pod1", 5, event, value)
    world.resctrl.count("gold", 5, "llc_occupancy", 1)
    world.resctrl.count("", 5, "mbm_total_bytes", 1 << 40)

    assert world.control.counters() == (
        Count("", "", 5, occupancy=0, local=0, total=1 << 40),
        Count("gold", "", 5, occupancy=8, local=70, total=0),
        Count("gold", "pod1", 5, occupancy=7, local=70, total=0),
    )


@pytest.mark.parametrize("word", ["Unavailable", "Unassigned", "Error"])
def test_unreadable_counters_give_no_sample(word: str) -> None:
    world = world_with()
    world.resctrl.count("gold", 5, "mbm_total_bytes", word)
    world.resctrl.broken["gold/mon_data/mon_L3_05/mbm_local_bytes"] = errno.EIO
    for event in ("llc_occupancy", "mbm_total_bytes", "mbm_local_bytes"):
        world.resctrl.count("", 5, event, word)

    # Nothing is known of the root group: it has no row.
    assert world.control.counters() == (Count("gold", "", 5, occupancy=0),)


def test_counters_of_energy_are_no_rows(tmp_path: Path) -> None:
    Resctrl(SMALL).write_out(tmp_path)
    data = tmp_path / "sys/fs/resctrl/mon_data"
    (data / "mon_PERF_PKG_00").mkdir()
    (data / "mon_PERF_PKG_00/core_energy").write_text("1.5\n")
    state = StateDir.open(f"{tmp_path}/state")
    counters = RdtControl.open(HostTree(tmp_path), state).counters()
    state.close()

    assert counters == (Count("", "", 5, occupancy=0, local=0, total=0),)


def test_without_counters_there_are_no_rows() -> None:
    world = world_with(msgspec.structs.replace(SMALL, rmids=0))

    assert world.control.counters() == ()
    with pytest.raises(GroupRefused):
        world.control.monitor("pod1", "gold")
