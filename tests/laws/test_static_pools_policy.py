"""No sequence of events can make the static-pools policy break its promises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import hypothesis.strategies as st
import msgspec
from hypothesis.stateful import initialize, invariant, rule

from nri_resmgr.app.configuration.build import build_policy
from nri_resmgr.policies import parse_config
from nri_resmgr.policy.decision import Decision
from nri_resmgr.policy.events import (
    NO_PIN,
    ContainerSpec,
    Created,
    Pin,
    PodStopped,
    RequestOrigin,
    Updated,
)
from nri_resmgr.policy.pool_request import PoolRequest
from nri_resmgr.policy.preferences import Preferences
from nri_resmgr.policy.static_pools import StaticPoolsPolicy, StaticPoolsState
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet, MilliCpus, NodeSet, PolicyError, QosClass
from tests.examples import steps
from tests.laws.pinned_node import IDS, PinnedNode
from tests.topology.odd_machines import Oddities, odd_specs

MACHINES: Final = odd_specs(
    Oddities(least=14, ordinary=CpuSet.parse("0-13"))
) | st.just("2s1n8c1t")

# By pool: text and socket of each list. The texts distinguish lists.
LISTS: Final[Mapping[str, Mapping[str, int]]] = {
    "exclusive": {"1": 0, "3,2": 0, "9-10": 1, "11": 1},
    "other": {"4": 0, "12": 1},
    "shared": {"5": 0, "6-7": 0, "13": 1},
    "infra": {"0": 0, "8": 1},
}
EXCLUSIVE: Final = ("exclusive", "other")
SPEC: Final = {
    "pinMemory": True,
    "pools": [
        {
            "name": name,
            "exclusive": name in EXCLUSIVE,
            "cpuLists": [{"cpus": one, "socket": lists[one]} for one in lists],
        }
        for name, lists in LISTS.items()
    ],
}
RESOURCE: Final = "cmk.intel.com/exclusive-cores"


@st.composite
def requests(draw: st.DrawFn) -> PoolRequest:
    """Draw what an environment asks for; most of it can be granted."""
    pools = ["", *LISTS, *LISTS, "gone"]
    return PoolRequest(
        pool=draw(st.sampled_from(pools)),
        socket=draw(st.sampled_from(["", "", "-1", "0", "1", "2"])),
        is_pinned=draw(st.sampled_from([True, True, False])),
        lists=draw(st.sampled_from(["", "1", "2", "3"])),
    )


@st.composite
def specs(draw: st.DrawFn) -> ContainerSpec:
    """Draw a container."""
    key, count = draw(IDS), draw(st.sampled_from([None, None, 0, 1, 2]))
    return ContainerSpec(
        id=key,
        pod=f"p-{key}",
        slot=draw(st.sampled_from(["", "web"])),
        qos=draw(st.sampled_from(QosClass)),
        request=MilliCpus(draw(st.sampled_from([0, 100, 2500]))),
        preferences=Preferences(
            preserve_cpus=draw(st.sampled_from([False] * 6 + [True]))
        ),
        created=draw(st.integers(0, 3)),
        source=RequestOrigin.OCI if count is None else RequestOrigin.ANNOTATION,
        extended={RESOURCE: count} if count else {},
        present=Pin(draw(st.integers(0, 0xFFFF).map(CpuSet)), NodeSet.of(0)),
        pool_request=draw(requests()),
    )


def pool_of(spec: ContainerSpec) -> str:
    return spec.pool_request.pool or "shared"


def fitting(spec: ContainerSpec) -> list[str]:
    """Return the lists of its pool on the socket that a container asks for."""
    name, asked = pool_of(spec), spec.pool_request
    socket = asked.socket if name != "infra" else ""
    lists = LISTS.get(name, {})
    return [one for one in lists if socket in ("", "-1", str(lists[one]))]


def number(spec: ContainerSpec) -> int:
    """Return how many lists it asks for; 0 if it must not ask like this."""
    if pool_of(spec) not in EXCLUSIVE:
        return 1
    if spec.source is RequestOrigin.ANNOTATION:
        return spec.extended.get(RESOURCE, 0)
    return int(spec.pool_request.lists or 1)


class StaticPoolsPolicyNeverErrs(PinnedNode):
    """Simulates a runtime that applies pins and environments."""

    policy: StaticPoolsPolicy
    state: StaticPoolsState

    @initialize(machine=MACHINES)
    def begin(self, machine: str) -> None:
        """Take a machine and the document."""
        head = {"apiVersion": "config.nri/v1alpha1", "kind": "StaticPoolsPolicy"}
        text = msgspec.json.encode({**head, "spec": SPEC}).decode()
        policy: Any = build_policy(parse_config(text), parse_spec(machine))
        self.begin_with(policy)
        self.assigned: dict[str, str] = {}  # as containers found it when created
        self.fallen: set[str] = set()  # running ones without a list of their pool

    @rule(spec=specs())
    def create(self, spec: ContainerSpec) -> None:
        """A container is refused only if its lists are not there, and gets the next."""
        spec = msgspec.structs.replace(spec, present=NO_PIN)
        gone = set(self.replaced_by(spec))
        users = self._users(gone)
        there, count = fitting(spec), number(spec)
        is_exclusive = pool_of(spec) in EXCLUSIVE
        free = [one for one in there if not (is_exclusive and users.get(one))]
        try:
            decision = self.policy.decide(self.state, Created(spec))
        except PolicyError:
            assert not spec.preferences.preserve_cpus
            assert not count or len(free) < count
            return
        for key in gone:
            self.forget(key)
        self.take(decision)
        self.specs[spec.id] = spec
        self.runtime[spec.id] = decision.pin
        if spec.preferences.preserve_cpus:
            return
        found = self.policy.environment_of(self.state, spec.id)
        self.assigned[spec.id] = found.pop("CMK_CPUS_ASSIGNED")
        assert found == {"CMK_CPUS_INFRA": "0,8", "CMK_CPUS_SHARED": "5,6-7,13"}
        assert count
        if not is_exclusive:
            free = [min(free, key=lambda one: users.get(one, 0))]
        assert self.assigned[spec.id] == ",".join(free[:count])

    @rule(container=IDS, request=st.sampled_from([0, 3000]))
    def update(self, container: str, request: int) -> None:
        """A resize changes no list, unless a container gets those that it lacked."""
        if (known := self.specs.get(container)) is None:
            return
        spec = msgspec.structs.replace(known, request=MilliCpus(request))
        before, lists = self.policy.pins(self.state), self._lists()
        self.specs[container] = spec
        decision = self.policy.decide(self.state, Updated(spec))
        self.runtime[container] = decision.pin.over(self.runtime[container])
        self.take(decision)
        if container in self.fallen:
            self._count_fallen()
        else:
            assert self.policy.pins(self.state) == before
            assert self._lists() == lists

    @rule(container=IDS)
    def stop_pod(self, container: str) -> None:
        """A pod goes away with all that is left in it."""
        self.forget(container)
        self.take(self.policy.decide(self.state, PodStopped(f"p-{container}")))

    @rule(found=st.lists(specs(), max_size=8))
    def start_over(self, found: list[ContainerSpec]) -> None:
        """The daemon starts among containers that may be pinned to anything."""
        self.assigned = {}
        self.state = self.policy.start()
        self.synchronize({one.id: one for one in found})

    @rule(forgets=st.booleans())
    def reconnect(self, *, forgets: bool) -> None:
        """None that has its lists is moved, even if only environments say which."""
        before, lists = self.policy.pins(self.state), self._lists()
        if forgets:
            self.state = self.policy.start()
        known = {
            key: msgspec.structs.replace(one, present=self.runtime[key])
            for key, one in self.specs.items()
        }
        if forgets:
            known = {key: self._with_environment(one) for key, one in known.items()}
        fallen = set(self.fallen)
        self.synchronize(known)
        after = self.policy.pins(self.state)
        for key in self.specs.keys() - fallen:
            assert (after[key], self._lists()[key]) == (before[key], lists[key])

    @invariant()
    def lists_are_whole_and_exclusive(self) -> None:
        """Compare the pins with the lists of the document."""
        pins = self.policy.pins(self.state)
        held: list[CpuSet] = []
        for key, spec in self.specs.items():
            asked, pin = spec.pool_request, pins[key]
            if spec.preferences.preserve_cpus:
                assert pin == NO_PIN
                continue
            name = "shared" if key in self.fallen else pool_of(spec)
            texts = list(LISTS["shared"]) if key in self.fallen else fitting(spec)
            if not asked.is_pinned and key not in self.fallen:
                assert pin == NO_PIN
                continue
            self._check_memory(pin)
            whole = [one for one in texts if CpuSet.parse(one) <= pin.cpus]
            assert CpuSet.union(map(CpuSet.parse, whole)) == pin.cpus
            if key not in self.fallen:
                assert len(whole) == number(spec)
            if name in EXCLUSIVE:
                held.append(pin.cpus)
        assert sum(map(len, held)) == len(CpuSet.union(held))
        assert sorted(map(str, held)) == sorted(
            map(str, self.policy.exclusive_cpus(self.state).values())
        )

    def _check_memory(self, pin: Pin) -> None:
        """Check for the CPUs' own nodes, or some that a process can start on."""
        nodes = [one for one in self.policy.machine.nodes if one.memory]
        own = [one for one in nodes if one.cpus & pin.cpus]
        if any(one.is_normal for one in own):
            assert pin.mems == NodeSet.from_iterable(one.id for one in own)
        else:
            assert pin.mems >= NodeSet.from_iterable(one.id for one in own)
            assert any(one.id in pin.mems for one in nodes if one.is_normal)

    @invariant()
    def containers_have_the_cpus_of_their_environment(self) -> None:
        """What a container found at its creation stays true."""
        for key, text in self.assigned.items():
            found = self.policy.environment_of(self.state, key)
            assert found["CMK_CPUS_ASSIGNED"] == text

    def _lists(self) -> dict[str, str]:
        found = {key: self.policy.environment_of(self.state, key) for key in self.specs}
        return {key: one.get("CMK_CPUS_ASSIGNED", "") for key, one in found.items()}

    def _users(self, gone: set[str]) -> dict[str, int]:
        """Count the containers of each list."""
        users: dict[str, int] = {}
        for text in [one for key, one in self._lists().items() if key not in gone]:
            have = CpuSet.parse(text)
            for lists in LISTS.values():
                for one in lists:
                    if CpuSet.parse(one) <= have:
                        users[one] = users.get(one, 0) + 1
        return users

    def _with_environment(self, spec: ContainerSpec) -> ContainerSpec:
        asked = spec.pool_request
        text = self.policy.environment_of(self.made, spec.id)
        found = msgspec.structs.replace(
            asked, assigned=text.get("CMK_CPUS_ASSIGNED", "")
        )
        return msgspec.structs.replace(spec, pool_request=found)

    def synchronize(self, found: Mapping[str, ContainerSpec]) -> None:
        """Replace all containers, and find those without a list."""
        super().synchronize(found)
        self._count_fallen()

    def _count_fallen(self) -> None:
        """Find those without lists: nothing says so but that they have none."""
        self.fallen = {
            key
            for key, one in self.specs.items()
            if not self.policy.environment_of(self.state, key)
            and not one.preferences.preserve_cpus
        }
        users = self._users(set())
        for key in self.fallen:
            spec = self.specs[key]
            free = [one for one in fitting(spec) if not users.get(one)]
            shared = [] if pool_of(spec) in EXCLUSIVE else fitting(spec)
            assert not number(spec) or len(free or shared) < number(spec)

    def take(self, decision: Decision[StaticPoolsState]) -> None:
        """Apply a decision; keep the state that was made, which has environments."""
        self.made = decision.state
        super().take(decision)

    def forget(self, container: str) -> None:
        """Have the runtime remove a container, with its environment."""
        super().forget(container)
        self.fallen.discard(container)
        self.assigned.pop(container, None)


TestStaticPoolsPolicyNeverErrs = StaticPoolsPolicyNeverErrs.TestCase
TestStaticPoolsPolicyNeverErrs.settings = steps(30)
