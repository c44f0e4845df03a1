"""What a plan makes of groups."""

from __future__ import annotations

import re

import pytest

from nri_resmgr.classes.rdt.plan import Plan
from nri_resmgr.classes.rdt.settings import ROOT_CLASS
from nri_resmgr.host.resctrl import ResctrlDrift, ResctrlOptions, ResctrlReport
from nri_resmgr.host.resctrl.errors import (
    BadGroupName,
    GroupInUse,
)
from nri_resmgr.testing.resctrl import Hardware, Throttle, Ways
from nri_resmgr.values import HostError
from tests.host.resctrl.kept import CDP, MBPS, World

GOLD = "L3:0=ff000;1=ff000\nMB:0=100;1=100\n"
SILVER = "L3:0=00ff0;1=00ff0\nMB:0=50;1=50\n"
ROOT = "L3:0=f;1=f\n"
BOTH = Plan({"gold": GOLD, "silver": SILVER}, root=ROOT)

FEW = Hardware(l3=Ways(closids=3), throttle=None)


def test_groups_are_made_with_the_schemata_of_the_plan() -> None:
    world = World()
    report = world.control.apply(BOTH)

    assert report == ResctrlReport(
        made=("gold", "silver"), written=("gold", "silver", "")
    )
    assert world.schemata("gold") == GOLD.strip()
    assert world.schemata("silver") == SILVER.strip()
    assert world.schemata("") == "L3:0=0000f;1=0000f\nMB:0=100;1=100"
    assert world.commands == [
        "mkdir gold",
        "mkdir silver",
        "write gold/schemata",
        "write silver/schemata",
        "write schemata",
    ]
    assert all(command.locked for command in world.resctrl.commands)


@pytest.mark.parametrize(
    ("hardware", "plan"),
    [
        pytest.param(None, BOTH, id="as it was"),
        pytest.param(
            None, Plan({"gold": "MB:0=33\nL3:1=0000f\n"}), id="rounded, padded, partly"
        ),
        pytest.param(MBPS, Plan({"gold": "MB:0=33;1=4294967295\n"}), id="in MiB/s"),
        pytest.param(
            CDP, Plan({"gold": "L3CODE:0=f;1=f\nL3DATA:0=f0;1=f0\n"}), id="two halves"
        ),
        pytest.param(None, Plan({"gold": ""}), id="nothing to write"),
    ],
)
def test_equal_schemata_are_not_written_again(
    hardware: Hardware | None, plan: Plan
) -> None:
    world = World(hardware)
    world.control.apply(plan)
    world.resctrl.commands.clear()
    steps = world.resctrl.faults.steps

    assert world.control.apply(plan) == ResctrlReport()
    assert world.started().apply(plan) == ResctrlReport()
    assert world.resctrl.faults.steps == steps  # nor is the journal


def test_only_changes_are_written_and_old_groups_are_removed_last() -> None:
    world = World()
    world.control.apply(BOTH)
    world.resctrl.commands.clear()
    report = world.control.apply(Plan({"gold": SILVER, "bronze": ""}))

    assert report == ResctrlReport(
        made=("bronze",), written=("", "gold"), removed=("silver",)
    )
    assert world.commands == [
        "mkdir bronze",
        "write schemata",
        "write gold/schemata",
        "rmdir silver",
    ]
    assert world.schemata("") == "L3:0=fffff;1=fffff\nMB:0=100;1=100"


def test_the_root_group_gets_its_original_schemata_back() -> None:
    world = World()
    world.resctrl.write("schemata", "L3:1=7\n")
    world.control.apply(Plan({}, root="L3:0=f;1=f\n"))
    world.started().apply(Plan({}, root="L3:0=ff\n"))
    world.started().apply(Plan({}))

    assert world.schemata("") == "L3:0=fffff;1=00007\nMB:0=100;1=100"
    assert world.kept.texts == {}


def test_a_class_in_which_something_runs_goes_only_by_force() -> None:
    world = World()
    world.control.apply(BOTH)
    world.resctrl.start(10)
    world.control.move(lambda: [10], "silver")
    before = world.resctrl.picture()
    with pytest.raises(
        GroupInUse, match=re.escape("(1 in /sys/fs/resctrl/silver/tasks); stop")
    ):
        world.control.apply(Plan({"gold": ""}))

    assert world.resctrl.picture() == before
    world.options = ResctrlOptions(forces=True)
    world.started().apply(Plan({"gold": ""}))
    assert world.control.tasks(ROOT_CLASS) == {10}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("..", id="the folder above"),
        pytest.param("gold/mon_groups", id="a folder in a folder"),
        pytest.param("go\nld", id="an end of a line"),
        pytest.param("g" * 256, id="longer than names are"),
    ],
)
def test_names_that_make_no_folder_are_refused(name: str) -> None:
    world = World()
    with pytest.raises(BadGroupName, match="not a valid folder name"):
        world.control.apply(Plan({name: ""}))
    with pytest.raises(BadGroupName):
        world.control.has_class(name)
    assert world.commands == []


def test_a_name_reserved_by_the_kernel_is_refused_with_its_error() -> None:
    world = World()
    with pytest.raises(HostError) as refusal:
        world.control.apply(Plan({"info": ""}))

    assert str(refusal.value) == (
        "RDT class 'info': cannot make /sys/fs/resctrl/info: file exists"
    )
    assert world.kept.texts == {}


def test_the_kernel_is_quoted_where_it_refuses() -> None:
    world = World(Hardware(throttle=Throttle(minimum=20)))
    world.control.apply(Plan({"gold": GOLD}))
    before = world.resctrl.picture()
    with pytest.raises(HostError) as refusal:
        world.control.apply(Plan({"gold": "MB:0=10\n", "silver": ""}))

    assert str(refusal.value) == (
        "RDT class 'gold': cannot write /sys/fs/resctrl/gold/schemata: "
        "MB value 10 out of range [20,100] (invalid argument)"
    )
    assert world.resctrl.picture() == before
    assert world.kept.made == ["gold"]


def test_changes_of_groups_by_other_programs_are_drift() -> None:
    world = World()
    world.control.apply(BOTH)
    silent = world.control.drift()
    world.resctrl.write("silver/schemata", "MB:1=10\n")
    world.resctrl.rmdir("gold")

    silver = SILVER.replace("00ff0", "ff0")
    assert silent == ()
    assert world.control.drift() == (
        ResctrlDrift("gold", GOLD, None),
        ResctrlDrift("silver", silver, silver.replace("1=50", "1=10")),
    )
    world.control.apply(BOTH)
    assert world.control.drift() == ()
    assert world.schemata("gold") == GOLD.strip()


def test_classes_are_the_groups_that_can_take_containers() -> None:
    world = World()
    world.others_make("gold", "L3:0=f\n")
    world.others_make("region", mode="pseudo-locksetup")
    control = world.control

    assert control.classes() == ("gold",)
    assert [*map(control.has_class, ("gold", ROOT_CLASS, "silver", "info"))] == [
        True,
        True,
        False,
        False,
    ]
    assert control.schemata_of("gold") == "L3:0=f;1=fffff\nMB:0=100;1=100\n"
    assert control.schemata_of(ROOT_CLASS) == "L3:0=fffff;1=fffff\nMB:0=100;1=100\n"
    assert control.schemata_of("silver") is None


def test_resources_that_the_plan_no_longer_names_are_restored() -> None:
    world = World()
    world.resctrl.write("schemata", "MB:1=70\n")
    world.control.apply(Plan({"gold": "L3:0=f\nMB:0=50;1=50\n"}, root="MB:0=50;1=50\n"))
    world.started().apply(Plan({"gold": "L3:1=f\n"}, root="L3:0=f\n"))

    assert world.schemata("gold") == "L3:0=fffff;1=0000f\nMB:0=100;1=100"
    assert world.schemata("") == "L3:0=0000f;1=fffff\nMB:0=100;1=70"
    world.control.apply(Plan({"gold": ""}))
    assert world.schemata("gold") == "L3:0=fffff;1=fffff\nMB:0=100;1=100"
