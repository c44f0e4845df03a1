"""A step that fails, and a program that is killed: all is old, or all is new."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator

import pytest

from nri_resmgr.classes.rdt.plan import Plan
from nri_resmgr.host.resctrl import ResctrlOptions, ResctrlReport
from nri_resmgr.host.resctrl.errors import GroupRefused
from nri_resmgr.host.state_dir import StateUnusable
from nri_resmgr.testing.resctrl import Hardware, Killed, Ways
from tests.host.resctrl.kept import World

# The root's, three of ours and one of others: for a new one, a leftover has to go.
TIGHT = Hardware(l3=Ways(closids=5), throttle=None)

OLD = Plan(
    {"gold": "L3:0=f;1=f\n", "iron": "L3:0=f0\n", "lead": "L3:1=f0\n"},
    root="L3:0=ff00\n",
)
NEW = Plan(
    {"gold": "L3:0=f0000\n", "silver": "L3:0=f\n", "zinc": "L3:1=3\n"},
    root="L3:1=ff\n",
)

Picture = dict[str, str]


def prepared() -> tuple[World, Picture]:
    """Return a machine with classes in use, and what it looked like without us."""
    world = World(TIGHT, ResctrlOptions(adopts=True, forces=True))
    world.others_make("zinc", "L3:0=ff;1=ff\n")
    for task in (10, 11, 12, 13):
        world.resctrl.start(task)
    world.resctrl.write("zinc/tasks", "13\n")
    clean = world.resctrl.picture()
    world.control.apply(OLD)
    world.control.monitor("pod1", "iron")
    world.control.move(lambda: [10, 11], "iron")
    world.control.move(lambda: [11], "iron", "pod1")
    world.control.move(lambda: [12], "lead")
    world.resctrl.write("iron/cpus_list", "2-3\n")
    world.resctrl.commands.clear()
    return world, clean


def each_step(plan: Plan = NEW) -> Iterator[int]:
    world, _ = prepared()
    before = world.resctrl.faults.steps
    world.control.apply(plan)
    yield from range(world.resctrl.faults.steps - before)


def after(world: World, plan: Plan) -> Picture:
    world.control.apply(plan)
    return world.resctrl.picture()


def apart(picture: Picture) -> Picture:
    """Leave out where threads are: those of a group that went stay in the root's."""
    return {path: text for path, text in picture.items() if "tasks" not in path}


def outcome(world: World) -> ResctrlReport | GroupRefused | StateUnusable:
    try:
        return world.control.apply(NEW)
    except (GroupRefused, StateUnusable) as error:
        return error


STEPS = [*each_step()]


def test_there_are_as_many_steps_as_changes() -> None:
    world, _ = prepared()
    world.control.apply(NEW)

    assert world.commands == [
        "rmdir iron",
        "mkdir silver",
        "write gold/schemata",
        "write silver/schemata",
        "write zinc/schemata",
        "write schemata",
        "rmdir lead",
    ]
    assert len(STEPS) == len(world.commands) + 2  # the journal, before and after


@pytest.mark.parametrize("at", STEPS)
def test_a_step_that_fails_leaves_all_old_or_all_new(at: int) -> None:
    world, clean = prepared()
    before = world.resctrl.picture()
    new = after(prepared()[0], NEW)
    world.resctrl.faults.fail(at, errno.EIO)
    result = outcome(world)
    picture = world.resctrl.picture()
    world.resctrl.faults.clear()

    if isinstance(result, ResctrlReport):
        # What need not go may stay until the next time.
        assert [why for _, why in result.failed] == ["input/output error"]
        assert picture.items() >= apart(new).items()
    else:
        assert getattr(result, "left", ()) == ()
        assert picture == before
    assert after(world, NEW) == new
    assert world.started().restore().failed == ()
    assert apart(world.resctrl.picture()) == apart(clean)


@pytest.mark.parametrize("at", STEPS)
def test_where_nothing_works_any_more_the_journal_knows(at: int) -> None:
    world, clean = prepared()
    world.resctrl.faults.fail(at, errno.EIO, and_all_after=True)
    result = outcome(world)
    commands = [*world.commands]
    world.resctrl.faults.clear()

    if isinstance(result, GroupRefused):
        paths = [command.split()[1] for command in commands[: at - 1]]
        paths = [path for path in paths if path != "silver/schemata"]  # goes as a whole
        assert result.left == tuple(f"{world.resctrl.root}/{p}" for p in paths[::-1])
    assert world.started().restore().failed == ()
    assert apart(world.resctrl.picture()) == apart(clean)
    assert world.kept.texts == {}


@pytest.mark.parametrize("at", STEPS)
@pytest.mark.parametrize("later", [1, 2, 4])
def test_where_a_step_of_the_way_back_fails_the_journal_knows(
    at: int, later: int
) -> None:
    world, clean = prepared()
    world.resctrl.faults.fail(at, errno.EIO)
    world.resctrl.faults.fail(at + later, errno.EBUSY)
    outcome(world)
    world.resctrl.faults.clear()

    assert world.started().restore().failed == ()
    assert apart(world.resctrl.picture()) == apart(clean)


Claim = Callable[[World], object]


@pytest.mark.parametrize("at", [*STEPS, len(STEPS)])
@pytest.mark.parametrize("again", [None, 0, 2, 4])
def test_after_a_kill_nothing_is_left_where_nothing_claims_it(
    at: int, again: int | None
) -> None:
    world, clean = prepared()
    kill(world, at, lambda world: world.control.apply(NEW))
    if again is not None:
        kill(world, again, lambda world: world.started().restore())
    world.started().restore()

    assert apart(world.resctrl.picture()) == apart(clean)
    assert world.kept.texts == {}


@pytest.mark.parametrize("at", [*STEPS, len(STEPS)])
def test_after_a_kill_a_new_start_comes_to_the_same(at: int) -> None:
    world, _ = prepared()
    new = after(prepared()[0], NEW)
    old = apart(world.resctrl.picture())
    kill(world, at, lambda world: world.control.apply(NEW))
    world.started().apply(NEW)

    assert apart(world.resctrl.picture()) == apart(new)
    world.started().apply(OLD)
    # What was set by hand in a group went with it.
    old = {path: text for path, text in old.items() if "pod1" not in path}
    assert apart(world.resctrl.picture()) == old | {"iron/cpus_list": "\n"}


def kill(world: World, at: int, program: Claim) -> None:
    world.resctrl.faults.kill(at)
    try:
        program(world)
    except Killed:
        pass
    finally:
        world.resctrl.faults.clear()


def test_a_journal_that_cannot_be_written_stops_all() -> None:
    world = World()
    world.resctrl.faults.fail(0, errno.ENOSPC)
    with pytest.raises(StateUnusable, match="no space left"):
        world.control.apply(NEW)
    assert world.commands == []


def test_a_group_that_cannot_be_removed_is_removed_later() -> None:
    world = World()
    world.control.apply(Plan({"gold": ""}))
    world.control.monitor("pod1", "gold")
    world.resctrl.faults.fail(0, errno.EBUSY)
    report = world.control.apply(Plan({}))

    path = "/sys/fs/resctrl/gold"
    assert report.failed == ((path, "device or resource busy"),)
    assert report.removed == ()
    world.started().unmonitor("pod1", "gold")
    assert world.resctrl.names("gold/mon_groups") == ()
    assert world.control.apply(Plan({})).removed == ("gold",)


def test_a_group_removed_by_another_program_is_no_failure() -> None:
    world = World()
    world.control.apply(Plan({"gold": ""}))
    world.resctrl.faults.fail(0, errno.ENOENT)

    assert world.control.restore().failed == ()
    assert world.kept.texts == {}
