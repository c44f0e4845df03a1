"""No sequence of events can make the podpools policy break its promises."""

from __future__ import annotations

from typing import Any, Final

import hypothesis.strategies as st
import msgspec
from hypothesis.stateful import initialize, invariant, rule

from nri_resmgr.app.configuration.build import build_policy
from nri_resmgr.policies import parse_config
from nri_resmgr.policy.events import (
    NO_PIN,
    ContainerSpec,
    Created,
    Pin,
    PodStopped,
    Removed,
    Updated,
)
from nri_resmgr.policy.podpools import PodpoolsPolicy, PodpoolsState
from nri_resmgr.policy.preferences import Preferences
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet, MilliCpus, NodeSet, QosClass
from tests.examples import steps
from tests.laws.pinned_node import IDS, PinnedNode
from tests.topology.odd_machines import Oddities, odd_specs

MACHINES: Final = odd_specs(Oddities(least=7, ordinary=CpuSet.parse("0-6"))) | st.just(
    "1s2n4c1t isolated=7"
)
LIMITS: Final = {"one": 1, "two": 2, "many": 0, "none": -1, "reserved": 2}
SPEC: Final = """
apiVersion: config.nri/v1alpha1
kind: PodpoolsPolicy
spec:
  pools:
  - {{name: one, cpu: 1, maxPods: 1, instances: 2, fillOrder: {order}}}
  - {{name: two, cpu: 2, maxPods: 2}}
  - {{name: many, cpu: 1}}
  - {{name: none, cpu: 1, maxPods: -1, instances: 0}}
  - {{name: reserved, maxPods: 2}}
"""
PODS: Final = {key: f"p{at // 2}" for at, key in enumerate("abcdefgh")}


@st.composite
def specs(draw: st.DrawFn) -> ContainerSpec:
    """Draw a container; those of a pod have the same annotation and namespace."""
    key, asked = draw(IDS), draw(st.sampled_from(["", "one", "two", "many", "none"]))
    return ContainerSpec(
        id=key,
        pod=f"{PODS[key]}-{asked}",
        slot=draw(st.sampled_from(["", "web"])),
        namespace=draw(st.sampled_from(["default", "default", "kube-system"])),
        qos=draw(st.sampled_from(QosClass)),
        request=MilliCpus(draw(st.sampled_from([0, 100, 1000, 2500]))),
        preferences=Preferences(
            pod_pool=asked, preserve_cpus=draw(st.sampled_from([False] * 5 + [True]))
        ),
        created=draw(st.integers(0, 3)),
        present=Pin(draw(st.integers(0, 255).map(CpuSet)), NodeSet.of(0)),
    )


class PodpoolsPolicyNeverErrs(PinnedNode):
    """Simulates a runtime that applies the pins that it is sent."""

    policy: PodpoolsPolicy
    state: PodpoolsState

    @initialize(
        machine=MACHINES, order=st.sampled_from(["Balanced", "Packed", "FirstFree"])
    )
    def begin(self, machine: str, order: str) -> None:
        """Take a machine and a document."""
        config = parse_config(SPEC.format(order=order))
        policy: Any = build_policy(config, parse_spec(machine))
        self.begin_with(policy)

    @rule(spec=specs())
    def create(self, spec: ContainerSpec) -> None:
        """A container may replace one whose end was not reported."""
        spec = msgspec.structs.replace(spec, present=NO_PIN)
        gone = self.replaced_by(spec)
        decision = self.policy.decide(self.state, Created(spec))
        for key in gone:
            self.forget(key)
        self.take(decision)
        self.specs[spec.id] = spec
        self.runtime[spec.id] = decision.pin

    @rule(container=IDS, request=st.sampled_from([0, 500, 3000]))
    def update(self, container: str, request: int) -> None:
        """A resize changes no place."""
        if (known := self.specs.get(container)) is None:
            return
        spec = msgspec.structs.replace(known, request=MilliCpus(request))
        before = self.policy.pins(self.state)
        self.specs[container] = spec
        self.take(self.policy.decide(self.state, Updated(spec)))
        assert self.policy.pins(self.state) == before

    @rule(container=IDS)
    def remove(self, container: str) -> None:
        """A container goes away without a stop."""
        self.forget(container)
        self.take(self.policy.decide(self.state, Removed(container)))

    @rule(container=IDS)
    def stop_pod(self, container: str) -> None:
        """A pod goes away with all that is left in it."""
        spec = self.specs.get(container)
        if spec is not None:
            for key in [k for k, one in self.specs.items() if one.pod == spec.pod]:
                self.forget(key)
            self.take(self.policy.decide(self.state, PodStopped(spec.pod)))

    @rule(found=st.lists(specs(), max_size=8))
    def start_over(self, found: list[ContainerSpec]) -> None:
        """The daemon starts without a state; containers may be pinned to anything."""
        self.synchronize({one.id: one for one in found})

    @rule()
    def reconnect(self) -> None:
        """The plugin finds the same containers: none is moved."""
        before = self.policy.pins(self.state)
        self.synchronize(
            {
                key: msgspec.structs.replace(one, present=self.runtime[key])
                for key, one in self.specs.items()
            }
        )
        assert self.policy.pins(self.state) == before

    @invariant()
    def pods_are_whole_and_limits_hold(self) -> None:
        """Recount pods by the CPUs that their containers are pinned to."""
        instances = self.policy.settings.instances
        by_cpus = {str(one.cpus): one for one in instances.values()}
        pins, places = self.policy.pins(self.state), self.state.places
        pods: dict[str, set[str]] = {}
        for key, spec in self.specs.items():
            if spec.preferences.preserve_cpus:
                assert pins[key] == NO_PIN
                assert key not in places
                continue
            one = by_cpus[str(pins[key].cpus)]
            assert places[key] == one.name
            pods.setdefault(one.name, set()).add(spec.pod)
            is_reserved = spec.namespace == "kube-system"
            expected = "reserved" if is_reserved else spec.preferences.pod_pool
            assert one.pool in (expected or "default", "default")
        for name, inside in pods.items():
            pool = instances[name].pool
            if limit := LIMITS.get(pool, 0):
                assert len(inside) <= limit
        for pod in {one.pod for one in self.specs.values()}:
            own = {
                places[key]
                for key, one in self.specs.items()
                if one.pod == pod and one.namespace != "kube-system" and key in places
            }
            assert len(own) <= 1


TestPodpoolsPolicyNeverErrs = PodpoolsPolicyNeverErrs.TestCase
TestPodpoolsPolicyNeverErrs.settings = steps(30)
