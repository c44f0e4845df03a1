"""Under the policy without decisions nothing changes, and nothing is forgotten."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import hypothesis.strategies as st
import msgspec
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from nri_resmgr.checkpoint.encode import Draft
from nri_resmgr.policy.decision import Decision
from nri_resmgr.policy.events import (
    NO_PIN,
    ContainerSpec,
    Created,
    Event,
    Pin,
    PodCreated,
    PodStopped,
    Removed,
    Started,
    Stopped,
    Synchronized,
    Updated,
)
from nri_resmgr.policy.host_use import NO_HOST_USE
from nri_resmgr.policy.none import NonePolicy, NoneState
from nri_resmgr.policy.preferences import Preferences
from nri_resmgr.policy.rules import Rule
from nri_resmgr.policy.scheduling import SchedulingRules
from nri_resmgr.values import MilliCpus, QosClass
from nri_resmgr.values.scheduling import SchedulingClass
from tests.examples import steps
from tests.laws.policy_node import slots_won
from tests.laws.reborn import reborn
from tests.laws.test_policy_switch import PoliciesGiveWay
from tests.laws.test_static_policy import StaticPolicyNeverErrs
from tests.laws.topology_aware_draws import IDS, PODS, PRESENT, specs

_CLASSES: Final = {name: SchedulingClass(name=name) for name in ("a", "b", "c")}
_NAMESPACES: Final = ("default", "robots")

# "x" is no class.
_NAMES: Final = st.sampled_from(["a", "b", "c", "x"])
_BY_NAMESPACE: Final = st.sampled_from([{"robots": "a"}, {"robots": "x"}, {}])
_BY_QOS: Final = st.sampled_from([dict(zip(QosClass, "bcx", strict=True)), {}])
# Far more than any machine has, now and then.
_REQUESTS: Final = st.sampled_from([0, 250, 1000, 1_000_000])
_CONTAINERS: Final = st.builds(
    lambda spec, name, namespace, request: msgspec.structs.replace(
        spec,
        namespace=namespace,
        preferences=Preferences(scheduling_class=name),
        request=MilliCpus(request),
    ),
    specs(),
    st.just("") | _NAMES,
    st.sampled_from(_NAMESPACES),
    _REQUESTS,
)
_FOUND: Final = st.lists(st.tuples(_CONTAINERS, PRESENT), max_size=6)


class NothingIsDecided(RuleBasedStateMachine):
    """Compares the policy to a list of containers with the pins that they came with."""

    policy: NonePolicy
    state: NoneState

    @initialize(by_namespace=_BY_NAMESPACE, by_qos=_BY_QOS)
    def begin(
        self, by_namespace: Mapping[str, str], by_qos: Mapping[QosClass, str]
    ) -> None:
        """Take a node with scheduling classes."""
        self.by_namespace, self.by_qos = by_namespace, by_qos
        self.policy = NonePolicy(SchedulingRules(_CLASSES, by_namespace, by_qos))
        self.state, self.draft = self.policy.start(), Draft()
        self.running: dict[str, tuple[ContainerSpec, Pin]] = {}

    @rule(spec=_CONTAINERS)
    def create(self, spec: ContainerSpec) -> None:
        """A container comes; those of its slot and its id must be gone."""
        self.running = {
            key: (one, pin)
            for key, (one, pin) in self.running.items()
            if key != spec.id
            and not (spec.slot and (one.pod, one.slot) == (spec.pod, spec.slot))
        }
        decision = self.decide(Created(spec), {spec.id: Rule.NOT_PINNED})
        self.running[spec.id] = spec, NO_PIN
        assert decision.scheduling == self.class_of(spec)

    @rule(spec=_CONTAINERS, present=PRESENT, which=st.integers(0, 7))
    def update(self, spec: ContainerSpec, present: Pin, which: int) -> None:
        """A container asks for something else, perhaps an unknown one."""
        spec = msgspec.structs.replace(spec, present=present)
        if which < len(self.running):
            spec = msgspec.structs.replace(spec, id=list(self.running)[which])
        known = self.running.get(spec.id)
        pin = known[1] if known else spec.present
        decision = self.decide(Updated(spec), {spec.id: Rule.NOT_PINNED})
        self.running[spec.id] = spec, pin
        assert decision.scheduling is None

    @rule(container=IDS)
    def start(self, container: str) -> None:
        """A container starts."""
        decision = self.decide(Started(container), {})
        known = self.running.get(container)
        assert decision.scheduling == (self.class_of(known[0]) if known else None)

    @rule(container=IDS, stops=st.booleans())
    def end(self, container: str, *, stops: bool) -> None:
        """A container stops, or is removed without that."""
        event = Stopped(container) if stops else Removed(container)
        known = self.running.pop(container, None)
        why = Rule.RELEASED if known else Rule.UNKNOWN_CONTAINER
        self.decide(event, {container: why})

    @rule(pod=PODS)
    def stop_pod(self, pod: str) -> None:
        """A pod stops with all that is in it."""
        gone = [key for key, (one, _) in self.running.items() if one.pod == pod]
        for key in gone:
            del self.running[key]
        self.decide(PodStopped(pod), dict.fromkeys(gone, Rule.RELEASED))

    @rule(pod=PODS, expected=st.lists(_CONTAINERS, max_size=3))
    def create_pod(self, pod: str, expected: list[ContainerSpec]) -> None:
        """A pod announces its containers."""
        self.decide(PodCreated(pod, tuple(expected)), {})

    @rule(found=_FOUND)
    def restart(self, found: list[tuple[ContainerSpec, Pin]]) -> None:
        """The runtime lists containers, pinned to anything."""
        there = {
            one.id: msgspec.structs.replace(one, present=pin) for one, pin in found
        }
        self.running = {
            key: (one, one.present) for key, one in slots_won(there).items()
        }
        rules = dict.fromkeys(there, Rule.NOT_PINNED)
        self.decide(Synchronized(tuple(there.values())), rules)

    @invariant()
    def it_knows_what_runs_and_with_which_pins(self) -> None:
        """The ledger is the list."""
        entries = self.state.ledger.entries.items()
        assert {k: (one.spec, one.last_sent) for k, one in entries} == self.running

    @invariant()
    def nothing_is_pinned_or_set(self) -> None:
        """No pin, no pool, no exclusive CPU, no host setting."""
        policy, state = self.policy, self.state
        assert policy.pins(state) == dict.fromkeys(self.running, NO_PIN)
        assert (policy.pools(state), policy.exclusive_cpus(state)) == ((), {})
        assert policy.host_use(state) is NO_HOST_USE

    def decide(self, event: Event, reasons: Mapping[str, Rule]) -> Decision[NoneState]:
        """Let the policy decide; a refusal fails the test."""
        decision = self.policy.decide(self.state, event)
        assert (decision.pin, decision.updates, decision.timers) == (NO_PIN, (), ())
        assert {one.container: one.rule for one in decision.reasons} == reasons
        self.state = reborn(self.policy, decision.state, self.draft)
        return decision

    def class_of(self, spec: ContainerSpec) -> SchedulingClass | None:
        """The most specific name counts, even if it is that of no class."""
        names = (
            spec.preferences.scheduling_class,
            self.by_namespace.get(spec.namespace),
            self.by_qos.get(spec.qos),
        )
        return _CLASSES.get(next(filter(None, names), ""))


def through_nothing(
    running: Mapping[str, ContainerSpec],
    created: list[ContainerSpec],
    stopped: str,
) -> dict[str, ContainerSpec]:
    """Switch to the policy without decisions, let containers come, and one go.

    Returns:
        The containers as the next policy is handed them.
    """
    policy = NonePolicy(SchedulingRules())
    events: list[Event] = [Synchronized(tuple(running.values()))]
    events += [Created(one) for one in created]
    state = policy.start()
    for event in (*events, Stopped(stopped)):
        decision = policy.decide(state, event)
        assert (decision.pin, decision.updates) == (NO_PIN, ())
        state = decision.state
    return {
        key: msgspec.structs.replace(entry.spec, present=entry.last_sent)
        for key, entry in state.ledger.entries.items()
    }


class PoolsAndBalloonsGiveWay(PoliciesGiveWay):
    """The laws of pools and balloons hold after a time without decisions."""

    @rule(container=IDS)
    def decide_nothing_for_a_while(self, container: str) -> None:
        """The document asks for no decisions, and then for the same policy again."""
        present = self.present()
        found = through_nothing(present, [], container)
        present.pop(container, None)
        assert found == slots_won(present)
        self.drop([container])
        self.forget_all()
        self.synchronize(found.values())


class StaticPolicyGivesWay(StaticPolicyNeverErrs):
    """The laws of the static policy hold after a time without decisions."""

    @rule(
        new=st.lists(specs(), max_size=2, unique_by=lambda one: one.id), container=IDS
    )
    def decide_nothing_for_a_while(
        self, new: list[ContainerSpec], container: str
    ) -> None:
        """As with pools; containers also come while nothing is decided."""
        pins = dict(self.runtime)
        present = {
            key: msgspec.structs.replace(one, present=self.runtime[key])
            for key, one in self.specs.items()
        }
        new = [msgspec.structs.replace(one, slot="") for one in new]
        found = through_nothing(present, new, container)
        fresh = {one.id for one in new}
        assert found.keys() == (present.keys() | fresh) - {container}
        for key, one in found.items():
            assert one.present == (NO_PIN if key in fresh else pins[key])
        # What pods announced before is not known to a policy that begins.
        self.state = self.policy.start()
        self.expected.clear()
        self.announced.clear()
        self.synchronize(found)


TestNothingIsDecided = NothingIsDecided.TestCase
TestPoolsAndBalloonsGiveWay = PoolsAndBalloonsGiveWay.TestCase
TestStaticPolicyGivesWay = StaticPolicyGivesWay.TestCase
for _case in (
    TestNothingIsDecided,
    TestPoolsAndBalloonsGiveWay,
    TestStaticPolicyGivesWay,
):
    _case.settings = steps(20)
del _case  # or pytest collects the last one twice
