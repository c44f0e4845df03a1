"""Claims keep the CPUs that they got, whatever else happens on the node."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from nri_resmgr.checkpoint.encode import Draft
from nri_resmgr.policy.claims import Claim, ClaimPart, ClaimRefused
from nri_resmgr.policy.decision import Decision
from nri_resmgr.policy.errors import OnFailure
from nri_resmgr.policy.events import (
    NO_PIN,
    ClaimPrepared,
    ClaimReturned,
    ContainerSpec,
    Created,
    Event,
    Pin,
    Stopped,
    Synchronized,
    Updated,
)
from nri_resmgr.policy.topology_aware.policy import TopologyAwarePolicy
from nri_resmgr.policy.topology_aware.settings import TopologyAwareSettings
from nri_resmgr.policy.topology_aware.state import TopologyAwareState
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet, MilliCpus, PolicyError, QosClass
from tests.examples import steps
from tests.laws.reborn import reborn
from tests.topology.odd_machines import Oddities, odd_specs

State = TopologyAwareState

# The CPUs of each NUMA node, as `lscpu` shows them for these machines.
NAMED = {
    "1s2n4c1t": {"numa-0": "0-3", "numa-1": "4-7"},
    "2s1n2c2t": {"numa-0": "0-1,4-5", "numa-1": "2-3,6-7"},
    "1s1n6c1t": {"numa-0": "0-5"},
    "4s2c1t around=2": {"numa-0": "0-3", "numa-1": "4-7"},
    "1s1n6c1t emulated=2": {"numa-0": "0-5"},
}


def nodes_of(spec: str) -> dict[str, str]:
    """List the CPUs that containers share by the first node that has them."""
    machine = parse_spec(spec)
    nodes: dict[CpuSet, int] = {}
    for node in machine.nodes:
        nodes.setdefault(node.cpus - machine.isolated, node.id)
    return {f"numa-{key}": str(one) for one, key in nodes.items() if one - CpuSet.of(0)}


# Claims are for one or two of the devices.
MACHINES = st.sampled_from(sorted(NAMED.items())) | odd_specs(
    Oddities(least=2, ordinary=CpuSet.of(0, 1))
).map(lambda spec: (spec, nodes_of(spec)))
UIDS = st.sampled_from(["u1", "u2", "u3", "u4"])
IDS = st.sampled_from(["a", "b", "c"])


def cpus(text: str) -> set[int]:
    return set(CpuSet.parse(text))


class ClaimsKeepTheirCpus(RuleBasedStateMachine):
    """The oracle is a dictionary of what was granted first."""

    @initialize(
        machine=MACHINES,
        on_failure=st.sampled_from(OnFailure),
    )
    def begin(self, machine: tuple[str, dict[str, str]], on_failure: OnFailure) -> None:
        spec, nodes = machine
        found = parse_spec(spec)
        reserved = CpuSet.of(0)
        fit = TopologyAwareSettings(
            available=found.online, reserved=reserved, on_failure=on_failure
        )
        self.policy = TopologyAwarePolicy(found, fit)
        self.nodes = {name: cpus(text) - {0} for name, text in nodes.items()}
        self.state = self.policy.start()
        self.granted: dict[str, set[int]] = {}
        self.asked: dict[str, Claim] = {}
        self.having: dict[str, tuple[str, ...]] = {}  # claims by container
        self.sent: dict[str, Pin] = {}

    def decide(self, event: Event) -> Decision[State]:
        decision = self.policy.decide(self.state, event)
        self.state = decision.state
        for update in decision.updates:
            self.sent[update.container] = update.pin.over(self.sent[update.container])
        return decision

    @rule(
        uid=UIDS,
        numbers=st.dictionaries(st.integers(0, 1), st.integers(1, 4), min_size=1),
    )
    def prepare(self, uid: str, numbers: dict[int, int]) -> None:
        devices = list(self.nodes)
        counts = {devices[k]: n for k, n in numbers.items() if k < len(devices)}
        if not counts:
            return
        parts = tuple(ClaimPart(device, n) for device, n in counts.items())
        claim = Claim(uid, "shop", uid, parts, token=f"t-{uid}")
        before = self.state
        room = {one.name: one for one in self.policy.claim_devices(before)}
        try:
            self.decide(ClaimPrepared(claim))
        except ClaimRefused:
            assert self.state is before
            assert uid not in self.granted
            free = {
                one: len(self.nodes[one]) - len(self.nodes[one] & self.claimed())
                for one in counts
            }
            # An empty node refuses nothing that it has.
            if not self.having and all(n <= free[one] for one, n in counts.items()):
                raise
            if len(counts) == 1:  # what is published is what can be granted
                ((device, n),) = counts.items()
                assert room[device].capacity - len(room[device].claimed) < n
            return
        found = set(self.state.claims[uid].cpus)
        if uid in self.granted:
            assert self.state is before
            return
        for device, n in counts.items():
            assert len(found & self.nodes[device]) == n
            assert room[device].capacity - len(room[device].claimed) >= n
        assert len(found) == sum(counts.values())
        assert not found & self.claimed()
        self.granted[uid], self.asked[uid] = found, claim

    def claimed(self) -> set[int]:
        return set().union(*self.granted.values())

    @precondition(lambda self: self.granted)
    @rule(number=st.integers(0, 3))
    def give_back_what_is_there(self, number: int) -> None:
        self.give_back(sorted(self.granted)[number % len(self.granted)])

    @rule(uid=UIDS)
    def give_back(self, uid: str) -> None:
        before = self.state
        holders = [key for key, uids in self.having.items() if uid in uids]
        try:
            self.decide(ClaimReturned(uid))
        except PolicyError:
            assert holders
            assert self.state is before
            return
        assert not holders
        self.granted.pop(uid, None)
        self.asked.pop(uid, None)

    @rule(
        key=IDS,
        request=st.sampled_from([0, 100, 500, 1000, 2000]),
        qos=st.sampled_from(QosClass),
        wanted=st.lists(st.integers(0, 3), max_size=2),
    )
    def create(self, key: str, request: int, qos: QosClass, wanted: list[int]) -> None:
        if key in self.having:
            return
        there = sorted(self.granted)
        uids = tuple({there[one % len(there)] for one in wanted} if there else ())
        spec = ContainerSpec(
            id=key,
            pod=key,
            title=key,
            qos=qos if request else QosClass.BEST_EFFORT,
            request=MilliCpus(request),
            claims=uids,
            claimed=CpuSet.union(self.state.claims[one].cpus for one in uids),
        )
        try:
            decision = self.decide(Created(spec))
        except PolicyError:
            assert not uids  # its CPUs are there, and it asks for no memory
            return
        self.having[key], self.sent[key] = uids, decision.pin.over(NO_PIN)

    @rule(key=IDS, request=st.sampled_from([0, 300, 1000]))
    def resize(self, key: str, request: int) -> None:
        if key not in self.having:
            return
        spec = self.state.ledger.spec_of(key)
        changed = ContainerSpec(
            **{
                **{name: getattr(spec, name) for name in spec.__struct_fields__},
                "request": MilliCpus(request),
            }
        )
        try:
            decision = self.decide(Updated(changed))
        except PolicyError:
            return
        self.sent[key] = decision.pin.over(self.sent[key])

    @rule(key=IDS)
    def stop(self, key: str) -> None:
        if key in self.having:
            self.decide(Stopped(key))
            del self.having[key], self.sent[key]

    @rule()
    def restart(self) -> None:
        """The process restarts, and finds all containers where they run."""
        self.state = reborn(self.policy, self.state, Draft())
        specs = tuple(entry.spec for entry in self.state.ledger.entries.values())
        for key, pin in self.policy.pins(self.state).items():
            assert pin.cpus == self.sent[key].cpus
        present = frozenset(one.pod for one in specs)
        self.decide(Synchronized(specs, present))
        for key, pin in self.policy.pins(self.state).items():
            self.sent[key] = pin

    @invariant()
    def claims_have_what_they_got(self) -> None:
        known = self.policy.claims(self.state)
        assert {uid: set(one.cpus) for uid, one in known.items()} == self.granted

    @invariant()
    def no_other_container_runs_there(self) -> None:
        pins = self.policy.pins(self.state)
        assert pins.keys() == self.having.keys()
        for key, uids in self.having.items():
            mine = set().union(*(self.granted[one] for one in uids))
            runs = set(pins[key].cpus)
            assert runs == set(self.sent[key].cpus)
            assert runs, "an empty set means unchanged for a runtime"
            if uids:
                assert runs == mine
            assert not runs & (self.claimed() - mine)

    @invariant()
    def nothing_is_lost(self) -> None:
        """Without claims and containers, all CPUs are free again."""
        if not self.granted and not self.having:
            ledger = self.state.pool_ledger
            assert ledger == self.policy.start().pool_ledger
        for one in self.policy.claim_devices(self.state):
            assert set(one.cpus) == self.nodes[one.name]
            assert set(one.claimed) == self.claimed() & self.nodes[one.name]
            assert len(one.claimed) <= one.capacity <= len(one.cpus)


TestClaimsKeepTheirCpus = ClaimsKeepTheirCpus.TestCase
TestClaimsKeepTheirCpus.settings = steps(30, 2)


def test_a_device_that_is_not_there_is_refused_with_a_sentence() -> None:
    """The sentence names the devices of the node."""
    machine = parse_spec("1s2n4c1t")
    fit = TopologyAwareSettings(available=machine.online, reserved=CpuSet.of(0))
    policy = TopologyAwarePolicy(machine, fit)
    claim = Claim("u", "shop", "cpus", (ClaimPart("numa-7", 1),))
    with pytest.raises(PolicyError, match=r"numa-7.*has numa-0, numa-1"):
        policy.decide(policy.start(), ClaimPrepared(claim))


def test_a_claim_that_does_not_fit_is_refused_with_a_sentence() -> None:
    """The sentence says how many CPUs can be granted, and how to make it fit."""
    machine = parse_spec("1s2n4c1t")
    fit = TopologyAwareSettings(available=machine.online, reserved=CpuSet.of(0))
    policy = TopologyAwarePolicy(machine, fit)
    claim = Claim("u", "shop", "cpus", (ClaimPart("numa-0", 4),))
    with pytest.raises(ClaimRefused) as refused:
        policy.decide(policy.start(), ClaimPrepared(claim))
    text = str(refused.value)
    assert "claim shop/cpus asks for 4 CPUs of numa-0 (CPU 1-3)" in text
    assert "of which 3 can be granted" in text


def test_cpus_of_a_claim_come_back_with_the_hardware() -> None:
    """A claim has what is left of its CPUs, and all of them once they are online."""

    def policy_on(spec: str) -> TopologyAwarePolicy:
        machine = parse_spec(spec)
        fit = TopologyAwareSettings(available=machine.online, reserved=CpuSet.of(0))
        return TopologyAwarePolicy(machine, fit)

    whole, less = policy_on("1s2n4c1t"), policy_on("1s2n4c1t offline=4")
    claim = Claim("u", "shop", "cpus", (ClaimPart("numa-1", 2),))
    state = whole.decide(whole.start(), ClaimPrepared(claim)).state
    cpus = state.claims["u"].cpus
    assert 4 in cpus
    spec = ContainerSpec("web", pod="p", title="web", claims=("u",), claimed=cpus)
    state = whole.decide(state, Created(spec)).state
    for policy, expected in ((less, cpus - CpuSet.of(4)), (whole, cpus)):
        state = policy.decide(state, Synchronized((spec,), frozenset("p"))).state
        assert policy.pins(state)["web"].cpus == expected
        assert state.claims["u"].cpus == cpus
