"""No sequence of events can make the dynamic-pools policy break its promises."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import ceil, floor
from typing import Any, Final

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given
from hypothesis.stateful import initialize, invariant, rule

from nri_resmgr.app.configuration.build import build_policy
from nri_resmgr.policies import parse_config
from nri_resmgr.policy.decision import Decision
from nri_resmgr.policy.dynamic_pools import DynamicPoolsPolicy, DynamicPoolsState
from nri_resmgr.policy.dynamic_pools.sizes import PoolDemand, sizes_of
from nri_resmgr.policy.events import (
    NO_PIN,
    ContainerSpec,
    Created,
    Pin,
    PodStopped,
    Rebalance,
    Removed,
    Stopped,
    Synchronized,
    Updated,
)
from nri_resmgr.policy.preferences import Preferences
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet, MilliCpus, NodeSet, PolicyError, QosClass
from tests.examples import steps
from tests.laws.pinned_node import IDS, PinnedNode
from tests.topology.odd_machines import Oddities, odd_series

MACHINES: Final = odd_series(Oddities(least=2, ordinary=CpuSet.of(0, 1))) | st.just(
    ("1s2n4c1t", "1s2n4c1t offline=5-6", "1s2n2c1t2e")
)
SPEC: Final = """
apiVersion: config.nri/v1alpha1
kind: DynamicPoolsPolicy
spec:
  pools:
  - {name: web, namespaces: [web], allocatorPriority: high}
  - {name: db, namespaces: ["d*"]}
"""
SIZES: Final = st.sampled_from([0, 100, 1000, 1500, 3000, 9000])
NAMESPACES: Final = {"web": "web", "db": "db", "kube-system": "reserved"}


@st.composite
def specs(draw: st.DrawFn) -> ContainerSpec:
    """Draw a container."""
    request = MilliCpus(draw(SIZES))
    return ContainerSpec(
        id=draw(IDS),
        pod=draw(st.sampled_from(["p", "q"])),
        slot=draw(st.sampled_from(["", "web"])),
        namespace=draw(st.sampled_from(["other", *NAMESPACES])),
        qos=QosClass.BURSTABLE if request else QosClass.BEST_EFFORT,
        request=request,
        limit=draw(st.sampled_from([None, MilliCpus(9000)])) if request else None,
        preferences=Preferences(
            dynamic_pool=draw(st.sampled_from(["", "", "web", "shared", "none"])),
            preserve_cpus=draw(st.sampled_from([False] * 5 + [True])),
        ),
        created=draw(st.integers(0, 3)),
        present=Pin(draw(st.integers(0, 255).map(CpuSet)), NodeSet.of(0)),
    )


def pool_of(spec: ContainerSpec) -> str | None:
    """Return where a container belongs; None for nowhere."""
    if spec.preferences.preserve_cpus:
        return None
    if not spec.request and spec.limit is None and spec.namespace != "kube-system":
        return "shared"
    return spec.preferences.dynamic_pool or NAMESPACES.get(spec.namespace, "shared")


class DynamicPoolsPolicyNeverErrs(PinnedNode):
    """Simulates a runtime that applies the pins that it is sent."""

    policy: DynamicPoolsPolicy
    state: DynamicPoolsState

    @initialize(machines=MACHINES)
    def begin(self, machines: tuple[str, ...]) -> None:
        """Take a machine and a document."""
        self.machines = [parse_spec(text) for text in machines]
        policy: Any = build_policy(parse_config(SPEC), self.machines[0])
        self.begin_with(policy)

    @rule(spec=specs())
    def create(self, spec: ContainerSpec) -> None:
        """A container may replace one whose end was not reported."""
        spec = msgspec.structs.replace(spec, present=NO_PIN)
        gone = self.replaced_by(spec)
        others = {k: one for k, one in self.specs.items() if k not in gone}
        try:
            decision = self.policy.decide(self.state, Created(spec))
        except PolicyError:
            assert not self._fits({**others, spec.id: spec}, spec)
            return
        assert self._fits({**others, spec.id: spec}, spec)
        for key in gone:
            self.forget(key)
        self.take(decision)
        self.specs[spec.id] = spec
        self.runtime[spec.id] = decision.pin

    @rule(container=IDS, request=SIZES)
    def update(self, container: str, request: int) -> None:
        """A resize changes its pool's size, or is refused."""
        known = self.specs.get(container)
        if known is None or not known.request or not request:
            return
        spec = msgspec.structs.replace(known, request=MilliCpus(request))
        try:
            decision = self.policy.decide(self.state, Updated(spec))
        except PolicyError:
            assert not self._fits({**self.specs, container: spec}, spec)
            return
        self.specs[container] = spec
        self.take(decision)
        self.runtime[container] = decision.pin.over(self.runtime[container])

    @rule(container=IDS, whole=st.booleans(), silent=st.booleans())
    def end(self, container: str, *, whole: bool, silent: bool) -> None:
        """Containers end, one by one or with their pods."""
        if whole:
            decision = self.policy.decide(self.state, PodStopped("p"))
            gone = [key for key, one in self.specs.items() if one.pod == "p"]
        else:
            event = Removed(container) if silent else Stopped(container)
            decision = self.policy.decide(self.state, event)
            gone = [container]
        for key in gone:
            self.forget(key)
        self.take(decision)

    @rule(
        busy=st.dictionaries(
            st.integers(0, 9), st.sampled_from([0, 5, 500, 1000]), max_size=8
        )
    )
    def rebalance(self, busy: Mapping[int, int]) -> None:
        """Busy pools get CPUs of the others; no container changes its pool."""
        before = self.state
        decision = self.policy.decide(self.state, Rebalance(1, busy))
        self.take(decision)
        assert self.state.places == before.places
        if busy:
            weights = {
                name: sum(busy.get(cpu, 0) for cpu in cpus)
                for name, cpus in before.cpus.items()
            }
            assert self.state.busy == weights

    @rule(which=st.integers(0, 2), forgets=st.booleans())
    def restart(self, which: int, *, forgets: bool) -> None:
        """The daemon starts again, on a machine with other CPUs perhaps."""
        machine = self.machines[which % len(self.machines)]
        present = tuple(
            msgspec.structs.replace(one, present=self.runtime[key])
            for key, one in self.specs.items()
        )
        settled = not self.homeless and machine is self.policy.machine
        before = self.policy.pins(self.state)
        policy: Any = build_policy(parse_config(SPEC), machine)
        self.policy = policy
        old = policy.start() if forgets else self.state
        decision = policy.decide(old, Synchronized(present))
        self.take(decision, forgets=forgets)
        if settled and not forgets:
            assert not decision.updates
            assert self.policy.pins(self.state) == before

    @invariant()
    def each_cpu_is_in_one_pool(self) -> None:
        """Pools are disjoint, and have all ordinary CPUs but the reserved one."""
        cpus = list(self.state.cpus.values())
        assert CpuSet.union(cpus) == self.ordinary - CpuSet.of(0)
        assert sum(map(len, cpus)) == len(self.ordinary) - 1

    @invariant()
    def requests_are_kept(self) -> None:
        """Each pool has the CPUs that its containers request."""
        for name, cpus in self.state.cpus.items():
            assert ONE * len(cpus) >= sum(
                one.request
                for key, one in self.specs.items()
                if pool_of(one) == name and key not in self.homeless
            )

    @invariant()
    def all_containers_are_in_their_pools(self) -> None:
        """Pins are the CPUs of the pool, or of the next one that has any."""
        pins, cpus = self.policy.pins(self.state), self.state.cpus
        for key, spec in self.specs.items():
            name = "shared" if key in self.homeless else pool_of(spec)
            if name is None:
                assert pins[key] == NO_PIN
            elif name == "reserved":
                assert pins[key].cpus == CpuSet.of(0)
            else:
                assert pins[key].cpus == (cpus[name] or cpus["shared"] or CpuSet.of(0))

    @invariant()
    def none_is_homeless_beside_room(self) -> None:
        """What runs in no pool would not fit into its own."""
        for key in self.homeless:
            assert not self._fits(self.specs, self.specs[key])

    @property
    def ordinary(self) -> CpuSet:
        """Online CPUs that the kernel balances load over."""
        return self.policy.machine.online - self.policy.machine.isolated

    @property
    def homeless(self) -> set[str]:
        """Running containers that could not be placed at a start."""
        placed = self.state.places
        return {
            key
            for key, one in self.specs.items()
            if key not in placed and pool_of(one) is not None
        }

    def _fits(self, specs: Mapping[str, ContainerSpec], new: ContainerSpec) -> bool:
        if (asked := pool_of(new)) is None:
            return True
        if asked not in ("web", "db", "shared", "reserved"):
            return False
        sums: dict[str, int] = {}
        for key, spec in specs.items():
            name = pool_of(spec)
            if name not in (None, "reserved") and key not in self.homeless - {new.id}:
                sums[str(name)] = sums.get(str(name), 0) + spec.request
        wanted = sum(ceil(Fraction(one, ONE)) for one in sums.values())
        return wanted <= len(self.ordinary) - 1

    def take(
        self, decision: Decision[DynamicPoolsState], *, forgets: bool = False
    ) -> None:
        """Apply a decision; the state was lost before it where it *forgets*."""
        online = self.policy.machine.online
        for name, now in decision.state.cpus.items():
            was = self.state.cpus[name]
            # Each pool only grows or only shrinks: no CPU moves without need. Without
            # a state they are made anew.
            assert forgets or was & online <= now or now <= was
        assert all(update.pin for update in decision.updates)
        super().take(decision)


ONE: Final = 1000
TestDynamicPoolsPolicyNeverErrs = DynamicPoolsPolicyNeverErrs.TestCase
TestDynamicPoolsPolicyNeverErrs.settings = steps(25)


@pytest.mark.parametrize(
    ("bases", "weights", "sizes"),
    [
        ((0, 2, 2), (100, 200, 100), (2, 6, 4)),
        ((0, 2, 2), (0, 200, 100), (0, 8, 4)),
        ((0, 2, 2), (0, 0, 0), (8, 2, 2)),
    ],
)
def test_the_worked_examples(
    bases: tuple[int, ...], weights: tuple[int, ...], sizes: tuple[int, ...]
) -> None:
    names = ("shared", "p1", "p2")
    demands = {
        name: PoolDemand(1000 * base, int(bool(base or weight)), weight)
        for name, base, weight in zip(names, bases, weights, strict=True)
    }

    assert sizes_of(demands, 12) == dict(zip(names, sizes, strict=True))


DEMANDS: Final = st.builds(
    PoolDemand,
    requested=st.integers(0, 4000),
    containers=st.integers(0, 2),
    weight=st.integers(0, 3000),
)


def sizes_by_steps(demands: Mapping[str, PoolDemand], total: int) -> dict[str, int]:
    """Hand out CPUs one by one, as the published rules say."""
    sizes = dict.fromkeys(demands, 0)
    for name, one in demands.items():
        while sizes[name] * ONE < one.requested:
            sizes[name] += 1
    left = total - sum(sizes.values())
    weights = {k: one.weight if one.containers else 0 for k, one in demands.items()}
    order = sorted(weights, key=lambda name: (-weights[name], name != "shared"))
    first = order[0] if weights[order[0]] else "shared"
    whole = Fraction(sum(weights.values()))
    if left and whole and demands["shared"].containers:
        share = floor(left * weights["shared"] / whole)
        if sizes["shared"] + share < 1:
            sizes["shared"], left = 1, left - 1
    rest = left
    for name, weight in weights.items():
        share = floor(rest * weight / whole) if whole else 0
        sizes[name], left = sizes[name] + share, left - share
    sizes[first] += left
    return sizes


@given(DEMANDS, st.lists(DEMANDS, max_size=4), st.integers(0, 20))
def test_sizes_are_those_of_the_published_steps(
    shared: PoolDemand, others: list[PoolDemand], rest: int
) -> None:
    demands = {f"p{number}": one for number, one in enumerate(others)}
    demands["shared"] = shared
    total = sum(ceil(Fraction(one.requested, ONE)) for one in demands.values()) + rest

    assert sizes_of(demands, total) == sizes_by_steps(demands, total)


@given(DEMANDS, st.lists(DEMANDS, max_size=4), st.integers(0, 20))
def test_the_rest_is_divided_by_weight(
    shared: PoolDemand, others: list[PoolDemand], rest: int
) -> None:
    demands = {f"p{number}": one for number, one in enumerate(others)}
    demands["shared"] = shared
    bases = {k: ceil(Fraction(one.requested, 1000)) for k, one in demands.items()}
    found = sizes_of(demands, sum(bases.values()) + rest)
    weights = {k: one.weight * bool(one.containers) for k, one in demands.items()}
    whole = sum(weights.values())

    assert sum(found.values()) == sum(bases.values()) + rest
    if not whole:
        assert found == {**bases, "shared": bases["shared"] + rest}
        return
    most = max(weights.values())
    for name, size in found.items():
        share = Fraction(rest * weights[name], whole)
        assert size >= bases[name]
        # One CPU less where the shared pool got its first one.
        assert size - bases[name] >= floor(share) - 1
        if weights[name] < most and name != "shared":
            assert size - bases[name] <= share
    assert not shared.containers or found["shared"] or not rest
