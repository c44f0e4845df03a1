"""Groups of other programs, the closids that they take, and what is whose."""

from __future__ import annotations

import pytest

from nri_resmgr.classes.rdt.plan import Plan
from nri_resmgr.host.resctrl import ResctrlOptions, ResctrlReport
from nri_resmgr.host.resctrl.errors import (
    ExclusiveOverlap,
    ForeignGroup,
    ResctrlLocked,
    TooManyGroups,
)
from nri_resmgr.testing.resctrl import Hardware, Ways
from tests.host.resctrl.kept import CDP, World

GOLD = "L3:0=ff000;1=ff000\nMB:0=100;1=100\n"
SILVER = "L3:0=00ff0;1=00ff0\nMB:0=50;1=50\n"
ROOT = "L3:0=f;1=f\n"
BOTH = Plan({"gold": GOLD, "silver": SILVER}, root=ROOT)

FEW = Hardware(l3=Ways(closids=3), throttle=None)


def few(*classes: str) -> Plan:
    return Plan(dict.fromkeys(classes, "L3:0=f\n"))


def test_groups_of_other_programs_stay() -> None:
    world = World()
    world.others_make("theirs", "L3:0=1\n")
    world.control.apply(BOTH)
    world.control.apply(Plan({}))
    report = world.control.restore()

    assert report == ResctrlReport()
    assert world.schemata("theirs") == "L3:0=00001;1=fffff\nMB:0=100;1=100"
    assert world.control.classes() == ("theirs",)


def test_a_group_of_another_program_with_the_same_name_is_reported() -> None:
    world = World()
    world.others_make("gold", "L3:0=1\n")
    before = world.resctrl.picture()
    with pytest.raises(ForeignGroup) as refusal:
        world.control.apply(BOTH)

    assert str(refusal.value) == (
        "RDT class 'gold' needs L3:0=ff000;1=ff000 MB:0=100;1=100, but "
        "/sys/fs/resctrl/gold exists, was made by another program, and has "
        "L3:0=1;1=fffff MB:0=100;1=100; rename the class, remove the group, or set "
        "adoptGroups: true"
    )
    assert (world.resctrl.picture(), world.commands) == (before, [])


def test_a_group_of_another_program_with_equal_schemata_is_used_and_kept() -> None:
    world = World()
    world.others_make("gold", GOLD)
    report = world.control.apply(BOTH)

    assert report.shared == ("gold",)
    assert report.made == ("silver",)
    world.control.restore()
    assert world.control.classes() == ("gold",)
    assert world.schemata("gold") == GOLD.strip()


def test_an_adopted_group_gets_its_original_schemata_back() -> None:
    world = World(options=ResctrlOptions(adopts=True))
    world.others_make("gold", "L3:0=1\n")
    world.control.apply(BOTH)
    changed = world.schemata("gold")
    world.started().apply(Plan({"silver": SILVER}))

    assert changed == GOLD.strip()
    assert world.schemata("gold") == "L3:0=00001;1=fffff\nMB:0=100;1=100"
    assert world.kept.made == ["silver"]


def test_groups_with_the_configured_prefix_are_owned() -> None:
    world = World(options=ResctrlOptions(prefix="nri."))
    world.others_make("nri.old")
    world.others_make("nri.gold")
    world.others_make("gold")
    report = world.control.apply(Plan({"gold": GOLD}))

    assert report == ResctrlReport(written=("nri.gold",), removed=("nri.old",))
    assert world.schemata("nri.gold") == GOLD.strip()
    assert world.control.classes() == ("gold",)


def test_groups_are_counted_before_any_is_made() -> None:
    world = World(FEW)
    world.others_make("theirs")
    with pytest.raises(TooManyGroups) as refusal:
        world.control.apply(few("gold", "silver"))

    assert str(refusal.value) == (
        "2 RDT classes (gold, silver), groups of other programs (theirs) and the root "
        "group need 4 closids, this machine has 3; configure fewer classes, or remove "
        "unused groups"
    )
    assert world.commands == []
    assert world.control.apply(few("gold")).made == ("gold",)


def test_leftovers_go_first_where_new_groups_need_their_place() -> None:
    world = World(FEW)
    world.control.apply(few("gold", "silver"))
    world.resctrl.commands.clear()
    report = world.control.apply(few("bronze"))

    assert report.removed == ("gold", "silver")
    assert world.commands == [
        "rmdir gold",
        "mkdir bronze",
        "write bronze/schemata",
        "rmdir silver",
    ]


@pytest.mark.parametrize(
    ("hardware", "rest", "alone", "gold", "where"),
    [
        pytest.param(
            None, "L3:0=1;1=ff\n", "L3:0=ffffe;1=f00\n", GOLD, "L3 id 0", id="a cache"
        ),
        pytest.param(
            CDP,
            "L3CODE:0=ff;1=ff\nL3DATA:0=ff;1=ff\n",
            "L3CODE:0=f00;1=f00\nL3DATA:0=f000;1=f000\n",
            "L3CODE:0=f;1=f000\nL3DATA:0=f;1=f\n",
            "L3CODE id 1",
            id="code on data",
        ),
    ],
)
def test_bits_of_exclusive_groups_of_others_are_refused(
    hardware: Hardware | None, rest: str, alone: str, gold: str, where: str
) -> None:
    world = World(hardware)
    world.resctrl.write("schemata", rest)
    world.others_make("theirs", alone, "exclusive")
    with pytest.raises(ExclusiveOverlap) as refusal:
        world.control.apply(Plan({"gold": gold}))

    assert str(refusal.value) == (
        "RDT class 'gold': /sys/fs/resctrl/gold/schemata would have bits of "
        f"{where} that 'theirs' has as well, and one of the two is exclusive or locked "
        "(file mode); give them separate bits"
    )
    assert world.commands == []


def test_locked_memory_keeps_its_bits_and_needs_no_closid() -> None:
    world = World(FEW)
    world.resctrl.write("schemata", "L3:0=ff;1=ff\n")
    world.others_make("region", "L3:0=f00;1=f00\n")
    world.resctrl.state.groups["region"].mode = "pseudo-locked"
    with pytest.raises(ExclusiveOverlap, match="'region' has as well"):
        world.control.apply(Plan({"gold": "L3:0=1f0\n"}))

    assert world.commands == []
    assert len(world.control.apply(few("gold", "silver")).made) == 2


def test_an_adopted_group_can_be_changed_after_a_restart() -> None:
    world = World(options=ResctrlOptions(adopts=True))
    world.others_make("gold", "L3:0=1\n")
    world.control.apply(Plan({"gold": "L3:0=3\n"}))
    world.options = ResctrlOptions()
    world.started().apply(Plan({"gold": "L3:0=7\n"}))
    changed = world.schemata("gold")
    world.control.restore()

    assert changed.startswith("L3:0=00007;1=fffff")
    assert world.schemata("gold").startswith("L3:0=00001;1=fffff")


def test_a_leftover_that_shares_with_nothing_goes_first() -> None:
    world = World()
    world.control.apply(Plan({"gold": "L3:0=f;1=f\n"}, root="L3:0=f0;1=f0\n"))
    world.resctrl.write("gold/mode", "exclusive\n")
    report = world.control.apply(Plan({"silver": "L3:0=f\n"}, root="L3:0=f0;1=f0\n"))

    assert report == ResctrlReport(
        made=("silver",), written=("silver",), removed=("gold",)
    )


def test_a_lock_of_others_is_reported() -> None:
    world = World()
    world.resctrl.locked_by_others = True
    with pytest.raises(ResctrlLocked, match="locked by another program"):
        world.control.apply(BOTH)
    with pytest.raises(ResctrlLocked):
        world.control.restore()
    assert world.commands == []


def test_beside_exclusive_groups_a_new_group_keeps_the_bits_of_the_kernel() -> None:
    world = World()
    world.resctrl.write("schemata", "L3:0=fff;1=fff\n")
    world.others_make("theirs", "L3:0=f0000;1=f0000\n", "exclusive")
    world.control.apply(Plan({"gold": "L3:0=f\n"}))
    world.resctrl.commands.clear()

    assert world.control.apply(Plan({"gold": "L3:0=f\n"})) == ResctrlReport()
    assert world.schemata("gold") == "L3:0=0000f;1=0ffff\nMB:0=100;1=100"


def test_a_class_that_another_made_exclusive_stays_off_others() -> None:
    world = World()
    rest = "L3:0=f0;1=f0\n"
    world.control.apply(Plan({"gold": "L3:0=f;1=f\n"}, root=rest))
    world.resctrl.write("gold/mode", "exclusive\n")
    world.resctrl.commands.clear()
    with pytest.raises(ExclusiveOverlap, match="'system/default' has as well"):
        world.control.apply(Plan({"gold": "L3:0=1f\n"}, root=rest))

    assert world.commands == []
