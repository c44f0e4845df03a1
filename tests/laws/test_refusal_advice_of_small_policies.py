"""What refusals of the other policies advise is accepted, each advice by itself."""

from __future__ import annotations

import re
from typing import Any, Final, Self, TypeAlias

import hypothesis.strategies as st
from hypothesis import given
from msgspec.structs import replace

from nri_resmgr.policy.balloons.policy import BalloonsPolicy
from nri_resmgr.policy.errors import OnFailure
from nri_resmgr.policy.events import (
    NO_PIN,
    ContainerSpec,
    Created,
    PodCreated,
    Updated,
)
from nri_resmgr.policy.static import StaticPolicy, StaticSettings
from nri_resmgr.policy.static_plus import StaticPlusPolicy, StaticPlusSettings
from nri_resmgr.policy.static_pools import StaticPoolsPolicy
from nri_resmgr.policy.whole_pods import PodPlacement
from nri_resmgr.values import MilliCpus, PolicyError, QosClass
from tests.laws import test_static_policy, test_static_pools_policy
from tests.laws.balloons_draws import containers, documents, policy_for
from tests.laws.refusal_advice import NOTHING, TO_HELP, Case, advice_of
from tests.laws.topology_aware_draws import MACHINES, machine_of

Request: TypeAlias = Created | Updated | PodCreated

RESOURCE: Final = test_static_pools_policy.RESOURCE
STOP: Final = re.compile(r"stop containers (that hold (CPUs|lists)|on this node)")
CPUS: Final = re.compile(r"ask for at most (\d+) CPUs?")
LISTS: Final = re.compile(r"ask for at most (\d+) lists?")
MORE_CPUS: Final = re.compile(r"let balloons of type (\w+) have more CPUs")
MORE_BALLOONS: Final = re.compile(r"allow more balloons of type (\w+)")
SHARED: Final = re.compile(r'set "onFailure: shared" to run it .*')
SINGLE: Final = re.compile(
    r"ask for one at a time \(isolated and free: \S+, "
    r"given to single-CPU containers only\)"
)


class SmallPolicyCase(Case):
    """One of another policy."""

    def with_lists(self, count: int) -> Self:
        return self.edited(
            lambda spec: replace(
                spec,
                extended={RESOURCE: count},
                pool_request=replace(spec.pool_request, lists=str(count)),
            )
        )

    def asking(self, **fields: str) -> Self:
        return self.edited(
            lambda spec: replace(
                spec, pool_request=replace(spec.pool_request, **fields)
            )
        )

    def with_type(self, name: str, **fields: Any) -> bool:
        types = self.policy.settings.types
        assert name in {one.name for one in types}
        changed = [replace(one, **fields) if one.name == name else one for one in types]
        return self.accepts(types=tuple(changed))

    def follows(self, text: str) -> bool:  # noqa: PLR0911 - one for each advice
        """Return whether it is accepted after what a text advises.

        Raises:
            AssertionError: The text is unknown.
        """
        if STOP.fullmatch(text):
            return self.alone().accepts()
        if found := CPUS.fullmatch(text):
            return self.with_cpus(int(found[1])).accepts()
        if found := LISTS.fullmatch(text):
            return self.with_lists(int(found[1])).accepts()
        if SINGLE.fullmatch(text):
            return self.with_cpus(1).accepts()
        if SHARED.fullmatch(text):
            return self.accepts(on_failure=OnFailure.SHARED)
        if found := MORE_CPUS.fullmatch(text):
            return self.with_type(found[1], max_cpus=10_000, cpus=())
        if found := MORE_BALLOONS.fullmatch(text):
            return self.with_type(found[1], max_balloons=10_000)
        return self._follows_other(text)

    def _follows_other(self, text: str) -> bool:
        match text:
            case 'set "placePods: soft" to place its containers one by one':
                return self.accepts(place_pods=PodPlacement.SOFT)
            case "reserve fewer CPUs":
                reserved = self.policy.settings.reserved
                fewer = [reserved.lowest(one) for one in range(1, len(reserved))]
                return any(self.accepts(reserved=one) for one in fewer)
            case "ask for any socket":
                return self.asking(socket="-1").accepts()
            case "name the pool shared":
                return self.asking(pool="shared").accepts()
            case _:
                assert text == f"add {RESOURCE} to its requests and limits"
                return self.with_lists(1).accepts()


def check(case: SmallPolicyCase, sentence: str) -> None:
    helps = advice_of(sentence)
    assert len(set(helps)) == len(helps)
    for text in helps:
        assert case.follows(text), text
    # What would help is not concealed, and the most that can be asked for is named.
    assert any(map(STOP.fullmatch, helps)) == case.alone().accepts()
    for found in filter(None, map(CPUS.fullmatch, helps)):
        more = int(found[1]) + 1
        event: Any = case.event
        if 1000 * more < event.spec.request:
            assert not case.with_cpus(more).accepts()


def play(policy: Any, drawn: list[Request]) -> None:
    """Check what is refused of events; those without such an advice pass."""
    state = policy.start()
    for event in drawn:
        try:
            state = policy.decide(state, event).state
        except PolicyError as error:
            sentence = str(error)
            if TO_HELP in sentence or NOTHING in sentence:
                check(SmallPolicyCase(policy, state, event), sentence)


@st.composite
def events(
    draw: st.DrawFn, specs: st.SearchStrategy[ContainerSpec], most: int = 8
) -> list[Request]:
    """Draw the creation of containers and pods, and resizes of the former."""
    found: list[Request] = []
    for _ in range(draw(st.integers(1, most))):
        spec = replace(draw(specs), present=NO_PIN)
        times = draw(st.sampled_from([1, 1, 1, 3]))
        spec = replace(spec, request=MilliCpus(spec.request * times))
        if spec.qos is QosClass.GUARANTEED:
            spec = replace(spec, limit=spec.request or None)
        match draw(st.sampled_from(["create", "create", "update", "pod"])):
            case "update" if found:
                known = [one.spec for one in found if isinstance(one, Created)]
                if known:
                    old = draw(st.sampled_from(known))
                    found.append(
                        Updated(replace(old, request=spec.request, limit=spec.limit))
                    )
            case "pod":
                expected = (replace(spec, id="", name="web"),)
                more = replace(draw(specs), pod=spec.pod, id="", name="log")
                both = (*expected, replace(more, present=NO_PIN))
                names = frozenset(("web", "log"))
                found.append(PodCreated(spec.pod, both, names))
            case _:
                found.append(Created(spec))
    return found


@given(
    test_static_policy.MACHINES,
    st.integers(1, 3),
    st.fixed_dictionaries(
        {
            "prefer_isolated": st.booleans(),
            "relaxed_isolation": st.booleans(),
            "borrow_isolated": st.booleans(),
            "on_failure": st.sampled_from(OnFailure),
            "place_pods": st.sampled_from(PodPlacement),
        }
    ),
    events(test_static_policy.specs()),
    st.sampled_from(
        [(StaticPolicy, StaticSettings), (StaticPlusPolicy, StaticPlusSettings)]
    ),
)
def test_static_policies(
    spec: str,
    reserved: int,
    options: dict[str, Any],
    drawn: list[Request],
    kind: tuple[Any, Any],
) -> None:
    machine, (policy, settings) = machine_of(spec), kind
    ordinary = machine.online - machine.isolated
    cpus = ordinary.lowest(reserved)
    fit = settings(available=machine.online, reserved=cpus, **options)
    play(policy(machine, fit), drawn)


@given(MACHINES, documents(), events(containers()))
def test_balloons(
    machines: tuple[str, ...], spec: dict[str, Any], drawn: list[Request]
) -> None:
    policy = policy_for(spec, machine_of(machines[0]))
    if policy is not None:
        assert isinstance(policy, BalloonsPolicy)
        play(policy, drawn)


@given(
    test_static_pools_policy.MACHINES,
    events(test_static_pools_policy.specs(), most=12),
)
def test_static_pools(machine: str, drawn: list[Request]) -> None:
    node = test_static_pools_policy.StaticPoolsPolicyNeverErrs()
    node.begin(machine)
    policy = node.policy
    assert isinstance(policy, StaticPoolsPolicy)
    play(policy, [one for one in drawn if not isinstance(one, PodCreated)])
