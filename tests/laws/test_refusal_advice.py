"""What a refusal of the topology-aware policy advises helps, and nothing else does."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import hypothesis.strategies as st
import msgspec
from hypothesis import given
from msgspec.structs import replace

from nri_resmgr.policy.decision import Rule
from nri_resmgr.policy.errors import OnFailure
from nri_resmgr.policy.events import (
    ContainerSpec,
    Created,
    Event,
    PodCreated,
    PodStopped,
    Stopped,
    Updated,
)
from nri_resmgr.policy.mems import MemoryShort
from nri_resmgr.policy.topology_aware.errors import NoPoolFits
from nri_resmgr.policy.topology_aware.policy import TopologyAwarePolicy
from nri_resmgr.policy.topology_aware.settings import TopologyAwareSettings
from nri_resmgr.policy.topology_aware.state import TopologyAwareState
from nri_resmgr.policy.whole_pods import PodPlacement
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import Bytes, CpuSet, MilliCpus, PolicyError, QosClass
from tests.laws.topology_aware_draws import (
    AMOUNTS,
    MACHINES,
    SETTINGS,
    machine_of,
    on,
    settings_for,
    specs,
)

Edit = Callable[[ContainerSpec], ContainerSpec]

UNITS: Final = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
STOP: Final = re.compile(r"stop containers (on this node|that have memory there)")
CPUS: Final = re.compile(r"ask for at most (\d+) CPUs?")
MEMORY: Final = re.compile(r"ask for at most (\d+) (\w+)")
PAGES: Final = re.compile(r"ask for at most (\d+) (\w+) of (\d+) (\w+) huge pages")
SHARED: Final = 'set "onFailure: shared" to run it on shared CPUs'
SOFT: Final = 'set "placePods: soft" to place its containers one by one'
TO_HELP: Final = "; to help, "
NOTHING: Final = "; no single change of it helps on this node"
ANNOTATIONS: Final = {
    "annotate it with prefer-shared-cpus": {"shared": True},
    "annotate it with prefer-isolated-cpus": {"isolated": True},
    "do not require isolated CPUs": {"require_isolated": False},
    "do not make its topology hints strict": {"strict_hints": False},
}


class Case(msgspec.Struct):
    """A refused event, and the node that it came to."""

    policy: TopologyAwarePolicy
    state: TopologyAwareState
    event: Created | Updated | PodCreated

    def accepts(self, **changes: Any) -> bool:
        settings = replace(self.policy.settings, on_failure=OnFailure.REFUSE)
        policy = TopologyAwarePolicy(self.policy.machine, replace(settings, **changes))
        return decided(policy, self.state, self.event) is not None

    def edited(self, edit: Edit) -> Case:
        event: Any = self.event
        if isinstance(event, PodCreated):
            event = replace(event, expected=tuple(map(edit, event.expected)))
        else:
            event = replace(event, spec=edit(event.spec))
        return Case(self.policy, self.state, event)

    def preferring(self, **preferences: bool) -> Case:
        return self.edited(
            lambda spec: replace(
                spec, preferences=replace(spec.preferences, **preferences)
            )
        )

    def alone(self) -> Case:
        """All others stop, and so do other pods."""
        event, state = self.event, self.state
        own = event.spec.id if isinstance(event, Updated) else ""
        pod = event.pod if isinstance(event, PodCreated) else event.spec.pod
        for key in state.ledger.entries.keys() - {own}:
            state = self.policy.decide(state, Stopped(key)).state
        for other in {"p", "q"} - {pod}:
            state = self.policy.decide(state, PodStopped(other)).state
        return Case(self.policy, state, event)

    def follows(self, text: str) -> bool:
        """Return whether it is accepted after what a text advises.

        Raises:
            AssertionError: The text is unknown.
        """
        if text in ANNOTATIONS:
            return self.preferring(**ANNOTATIONS[text]).accepts()
        if text == SHARED:
            return self.accepts(on_failure=OnFailure.SHARED)
        if text == SOFT:
            return self.accepts(place_pods=PodPlacement.SOFT)
        return self.after(text).accepts()

    def after(self, text: str) -> Case:
        if STOP.fullmatch(text):
            return self.alone()
        if found := CPUS.fullmatch(text):
            return self.with_cpus(int(found[1]))
        if found := MEMORY.fullmatch(text):
            return self.with_memory(int(found[1]) * UNITS[found[2]])
        found = PAGES.fullmatch(text)
        assert found, f"unknown advice: {text}"
        most = int(found[1]) * UNITS[found[2]]
        return self.with_pages(most, int(found[3]) * UNITS[found[4]])

    def with_cpus(self, count: int) -> Case:
        amount = MilliCpus(1000 * count)

        def edit(spec: ContainerSpec) -> ContainerSpec:
            assert 0 < amount < spec.request
            limit = amount if spec.qos is QosClass.GUARANTEED else spec.limit
            return replace(spec, request=amount, limit=limit)

        return self.edited(edit)

    def with_memory(self, most: int) -> Case:
        def edit(spec: ContainerSpec) -> ContainerSpec:
            request, limit = spec.memory_request, spec.memory_limit
            assert 0 < most < (request or limit or 0)
            if not request or limit == request:
                limit = Bytes(most)
            return replace(
                spec, memory_request=Bytes(most if request else 0), memory_limit=limit
            )

        return self.edited(edit)

    def with_pages(self, most: int, size: int) -> Case:
        return self.edited(
            lambda spec: replace(
                spec,
                hugepages=tuple(
                    replace(one, count=most // size) if one.size == size else one
                    for one in spec.hugepages
                ),
            )
        )


def decided(
    policy: TopologyAwarePolicy, state: TopologyAwareState, event: Event
) -> TopologyAwareState | None:
    try:
        return policy.decide(state, event).state
    except PolicyError:
        return None


def advice_of(sentence: str) -> list[str]:
    before, found, helps = sentence.partition(TO_HELP)
    if not found:
        assert before.endswith(NOTHING)
        return []
    return helps.split(", or ")


def check(case: Case, sentence: str) -> None:
    helps = advice_of(sentence)
    assert len(set(helps)) == len(helps)
    for text in helps:
        assert case.follows(text), text
    if isinstance(case.event, PodCreated):
        return
    # What would help is not concealed.
    stops = any(map(STOP.fullmatch, helps))
    assert stops == case.alone().accepts()
    others = {*ANNOTATIONS, SHARED} - set(helps)
    if case.policy.settings.on_failure is OnFailure.SHARED:
        others -= {SHARED}
    assert not [text for text in others if case.follows(text)]
    for found in filter(None, map(CPUS.fullmatch, helps)):
        more = int(found[1]) + 1
        if 1000 * more < case.event.spec.request:
            assert not case.with_cpus(more).accepts()


def play(case: Case) -> TopologyAwareState:
    """Check what is refused, or placed on shared CPUs instead."""
    try:
        decision = case.policy.decide(case.state, case.event)
    except (NoPoolFits, MemoryShort) as error:
        check(case, str(error))
        return case.state
    except PolicyError:
        return case.state
    if isinstance(case.event, Created):
        why = decision.reasons[0]
        if why.rule is Rule.FELL_BACK and (
            NOTHING in why.detail or TO_HELP in why.detail
        ):
            check(case, why.detail)
    return decision.state


@st.composite
def events(draw: st.DrawFn, state: TopologyAwareState) -> Any:
    known = sorted(state.ledger.entries)
    kind = draw(st.sampled_from(["create", "create", "update", "pod"]))
    if kind == "update" and known:
        spec = state.ledger.spec_of(draw(st.sampled_from(known)))
        return Updated(enlarged(draw, replace(spec, **draw(AMOUNTS)[spec.qos])))
    machine = state.pool_ledger.tree.machine
    spec = on(machine, enlarged(draw, draw(specs())))
    if kind == "pod":
        more = on(machine, draw(specs()))
        expected = (replace(spec, id="", name="web"), replace(more, id="", name="log"))
        return PodCreated(
            spec.pod,
            tuple(replace(one, pod=spec.pod) for one in expected),
            frozenset(("web", "log")),
        )
    return Created(spec)


def enlarged(draw: st.DrawFn, spec: ContainerSpec) -> ContainerSpec:
    times = draw(st.sampled_from([1, 1, 1, 3]))
    limit = None if spec.limit is None else MilliCpus(spec.limit * times)
    return replace(spec, request=MilliCpus(spec.request * times), limit=limit)


# Fewer ordinary CPUs than isolated ones, and few huge pages.
SCARCE: Final = st.sampled_from(
    [("1s1n4c2t isolated=1-3,5-7",), ("2s1n3c1t memory=4Gi hugepages=2Mi:64",)]
)


@given(MACHINES | SCARCE, SETTINGS, st.data())
def test_what_a_refusal_advises_is_accepted(
    machines: tuple[str, ...], conditions: dict[str, Any], data: st.DataObject
) -> None:
    machine = machine_of(machines[0])
    fit = settings_for(
        machine, conditions["reserved"], conditions["withheld"], conditions["options"]
    )
    policy = TopologyAwarePolicy(machine, fit)
    state = policy.start()

    for _ in range(data.draw(st.integers(1, 8))):
        state = play(Case(policy, state, data.draw(events(state))))


def test_almost_all_cpus_are_isolated() -> None:
    machine = parse_spec("1s24c2t isolated=1-23,25-47")
    settings = TopologyAwareSettings(available=machine.online, reserved=CpuSet.of(0))
    amount = MilliCpus(2000)
    spec = ContainerSpec(
        "web", "pod", "web", qos=QosClass.GUARANTEED, request=amount, limit=amount
    )

    policy = TopologyAwarePolicy(machine, settings)

    play(Case(policy, policy.start(), Created(spec)))
