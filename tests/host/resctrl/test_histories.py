"""No history makes groups that no plan asked for, or harms groups of others."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from nri_resmgr.classes.rdt.plan import Plan
from nri_resmgr.host.resctrl import ResctrlOptions
from nri_resmgr.host.resctrl.errors import TooManyGroups
from nri_resmgr.testing.resctrl import Hardware, Killed, Throttle, Ways
from nri_resmgr.values import HostError
from tests.examples import steps
from tests.host.resctrl.kept import World

pytestmark = pytest.mark.slow


CLASSES = ("gold", "silver", "bronze", "iron")
FOREIGN = ("gold", "theirs", "more")

# Few closids, so that histories meet the limit; gaps between ids.
PLAIN = Hardware(l3=Ways(bits=8, ids=(0, 3), closids=5), throttle=Throttle(closids=6))
MACHINES = (
    PLAIN,
    msgspec.structs.replace(PLAIN, options=frozenset({"mba_MBps"})),
    Hardware(
        l3=Ways(bits=8, ids=(0, 3), closids=10),
        throttle=None,
        options=frozenset({"cdp"}),
    ),
    msgspec.structs.replace(PLAIN, throttle=Throttle("AMD", 0, 1), rmids=4),
)

Values = Mapping[str, Mapping[int, int]]


def parsed(text: str) -> dict[str, dict[int, int]]:
    """Read schemata as the documentation says, apart from the code under test."""
    found = {}
    for line in text.split("\n"):
        if line:
            name, rest = line.replace(" ", "").split(":")
            pairs = (pair.split("=") for pair in rest.split(";"))
            base = 10 if name == "MB" else 16
            found[name] = {int(key): int(value, base) for key, value in pairs}
    return found


def masks() -> st.SearchStrategy[int]:
    ends = st.tuples(st.integers(0, 7), st.integers(0, 7))
    return ends.map(lambda e: (2 << max(e)) - (1 << min(e)))


@st.composite
def schemata(draw: st.DrawFn, hardware: Hardware) -> str:
    lines = []
    for name, ways in hardware.caches.items():
        for_some = draw(st.sets(st.sampled_from(ways.ids)))
        texts = (f"{key}={draw(masks()):x}" for key in sorted(for_some))
        lines.append(f"{name}:{';'.join(texts)}\n" if for_some else "")
    if hardware.throttle is not None and draw(st.booleans()):
        lines.append(f"MB:0={draw(st.integers(10, 100))}\n")
    return "".join(lines)


@st.composite
def plans(draw: st.DrawFn, hardware: Hardware) -> Plan:
    names = draw(st.sets(st.sampled_from(CLASSES)))
    text = schemata(hardware)
    return Plan({name: draw(text) for name in sorted(names)}, draw(st.none() | text))


class Histories(RuleBasedStateMachine):
    """Plans, other programs, failures and kills, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.theirs: dict[str, Values] = {}
        self.tasks = 0

    @initialize(
        hardware=st.sampled_from(MACHINES), adopts=st.booleans(), forces=st.booleans()
    )
    def boot(self, hardware: Hardware, *, adopts: bool, forces: bool) -> None:
        options = ResctrlOptions(adopts=adopts, forces=forces)
        self.world = World(hardware, options)
        self.hardware = hardware
        self.root = self.values("")

    def values(self, name: str) -> Values:
        return parsed(self.world.resctrl.read(f"{name}/schemata".lstrip("/")))

    def groups(self) -> set[str]:
        return self.world.resctrl.state.groups.keys() - {""}

    @rule(data=st.data())
    def plan(self, data: st.DataObject) -> None:
        plan = data.draw(plans(self.hardware))
        before = self.world.resctrl.picture()
        try:
            report = self.world.control.apply(plan)
        except HostError as error:
            assert self.world.resctrl.picture() == before
            if isinstance(error, TooManyGroups):
                wanted = plan.schemata.keys() | self.theirs.keys()
                assert len(wanted) + 1 > self.hardware.closids
            return
        assert report.failed == ()
        self.check(plan)

    @rule(data=st.data(), at=st.integers(0, 6), number=st.sampled_from([5, 16, 28]))
    def plan_that_fails(self, data: st.DataObject, at: int, number: int) -> None:
        plan = data.draw(plans(self.hardware))
        before = self.world.resctrl.picture()
        self.world.resctrl.faults.fail(at, number)
        try:
            self.world.control.apply(plan)
        except HostError as error:
            # Where the kernel refuses first, it may be the way back that fails.
            is_whole = not getattr(error, "left", ())
            assert not is_whole or self.world.resctrl.picture() == before
        else:
            assert self.groups() >= plan.schemata.keys()
        self.world.resctrl.faults.clear()

    @rule(data=st.data(), at=st.integers(0, 6))
    def plan_of_one_that_is_killed(self, data: st.DataObject, at: int) -> None:
        self.world.resctrl.faults.kill(at)
        with contextlib.suppress(HostError, Killed):
            self.world.control.apply(data.draw(plans(self.hardware)))
        self.world.resctrl.faults.clear()
        self.world.started()

    @rule()
    def start_again(self) -> None:
        self.world.started()

    @rule()
    def restore(self) -> None:
        assert self.world.control.restore().failed == ()

        assert self.groups() == self.theirs.keys()
        assert self.values("") == self.root
        assert {name: self.values(name) for name in self.theirs} == self.theirs
        assert self.world.kept.texts == {}

    @rule(name=st.sampled_from(FOREIGN), data=st.data())
    def others_make(self, name: str, data: st.DataObject) -> None:
        # What the journal names is ours, even if a kill came before we made it.
        if name in self.groups() or name in self.world.kept.made:
            return
        with contextlib.suppress(OSError):  # there is no place for it
            self.world.others_make(name, data.draw(schemata(self.hardware)))
        if name in self.groups():
            self.theirs[name] = self.values(name)

    @rule(name=st.sampled_from(FOREIGN))
    def others_remove(self, name: str) -> None:
        if name in self.theirs:
            self.world.resctrl.rmdir(name)
            del self.theirs[name]

    @precondition(lambda self: self.groups())
    @rule(data=st.data())
    def container_starts(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.groups())))
        self.tasks += 1
        self.world.resctrl.start(self.tasks)
        assert self.world.control.move(lambda: [self.tasks], name) == 1

    @precondition(lambda self: self.groups())
    @rule(data=st.data())
    def pod_is_watched(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.groups())))
        before = self.world.resctrl.picture()
        try:
            self.world.control.monitor("pod", name)
        except HostError:
            assert self.world.resctrl.picture() == before

    @rule()
    def containers_end(self) -> None:
        self.world.resctrl.state.threads.clear()

    @invariant()
    def groups_of_others_are_there(self) -> None:
        if hasattr(self, "world"):
            adopted = self.adopted()
            there = {n: self.values(n) for n in self.theirs if n not in adopted}

            assert there == {n: self.theirs[n] for n in self.theirs if n not in adopted}
            assert self.groups() - self.theirs.keys() <= set(self.world.kept.made)

    def adopted(self) -> set[str]:
        text = self.world.kept.texts.get("resctrl", '{"originals": {}}')
        return set(json.loads(text)["originals"])

    def check(self, plan: Plan) -> None:
        """See that groups are what a plan says, whatever was before."""
        assert self.groups() == plan.schemata.keys() | self.theirs.keys()
        for name, text in plan.schemata.items():
            base = self.theirs.get(name) or self.root
            assert self.values(name) == self.expected(base, text)
        assert self.values("") == self.expected(self.root, plan.root or "")

    def expected(self, base: Values, text: str) -> Values:
        named = parsed(text)
        step = 1 if self.hardware.in_mbps else 10
        if self.hardware.throttle and self.hardware.throttle.kind == "AMD":
            step = 1
        if "MB" in named:
            rounded = {k: -(-v // step) * step for k, v in named["MB"].items()}
            named["MB"] = rounded
        return {name: {**base[name], **named.get(name, {})} for name in base}


Histories.TestCase.settings = steps(20, 0.3)
TestHistories = Histories.TestCase
