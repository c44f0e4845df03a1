"""The podpools policy: which pod gets which instance of a pool."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from msgspec.structs import replace

from nri_resmgr.policy.cpu_pools import (
    nodes_near,
    pin_near,
    with_use,
    without_memory,
)
from nri_resmgr.policy.decision import Resources
from nri_resmgr.policy.events import NO_PIN, ContainerSpec, Pin
from nri_resmgr.policy.podpools.settings import (
    DEFAULT,
    RESERVED,
    FillOrder,
    PodpoolsSettings,
    PoolInstance,
)
from nri_resmgr.policy.rules import Rule
from nri_resmgr.policy.simple import Placed, SimplePolicy, SimpleState
from nri_resmgr.policy.views import PoolUse
from nri_resmgr.topology import Machine
from nri_resmgr.values import ONE_CPU, CpuSet
from nri_resmgr.values.counts import count_text

_TOLERANCE = 10  # thousandths of a CPU: requests are rounded to shares


class PodpoolsState(SimpleState, frozen=True):
    """The containers, and the instances of containers and of pods.

    Attributes:
        places: The name of the instance, by container id. Containers that keep their
            own CPUs have none.
        former: The last instance of pods without a container, which may come back.
    """

    places: Mapping[str, str] = {}
    former: Mapping[str, str] = {}

    def pods_in(self, instance: str) -> frozenset[str]:
        """Return the pods with a container in an instance."""
        entries = self.ledger.entries
        return frozenset(
            entries[key].spec.pod
            for key, name in self.places.items()
            if name == instance
        )

    def instance_of_pod(self, pod: str) -> str:
        """Return the instance of a pod that has a container; empty for none.

        Single containers may run on reserved CPUs besides.
        """
        entries = self.ledger.entries
        for key, name in self.places.items():
            if entries[key].spec.pod == pod and name != RESERVED:
                return name
        return ""


class PodpoolsPolicy(SimplePolicy[PodpoolsState]):
    """Whole pods in sets of CPUs of a fixed size.

    A pod names its pool by an annotation, and gets one of the pool's instances: all of
    its containers run there. A pod that names none, or whose pool has no room, runs in
    the default pool; pods of reserved namespaces in the reserved one.

    Source:
        CRI Resource Manager, the policy ``podpools``.
    """

    kind: ClassVar[str] = "PodpoolsPolicy"
    obeys: ClassVar[frozenset[str]] = frozenset(
        ("pod_pool", "preserve_cpus", "preserve_memory", "reserved")
    )

    def __init__(self, machine: Machine, settings: PodpoolsSettings) -> None:
        self.machine = machine
        self.settings = settings

    def start(self) -> PodpoolsState:
        """Return the state of a node without containers."""
        return PodpoolsState()

    def emptied(
        self, state: PodpoolsState, specs: Sequence[ContainerSpec]
    ) -> PodpoolsState:
        """Return the state without containers; pods come back to their instances.

        Pinned ones are found by their CPUs, which are true where *state* is too old.
        """
        if self.settings.pin_cpus:
            return self.start()
        pods = {spec.pod for spec in specs}
        former = {pod: name for pod in pods if (name := state.instance_of_pod(pod))}
        return PodpoolsState(former=former)

    def has_place(
        self,
        before: PodpoolsState,  # noqa: ARG002 - `emptied` keeps what counts of it
        emptied: PodpoolsState,
        spec: ContainerSpec,
        earlier: CpuSet,
    ) -> bool:
        """Return whether a container runs in an instance of the pool it asks for."""
        pool, _ = self._asked(spec)
        # Its instance may have moved: where it runs counts before.
        runs, former = spec.present.cpus or earlier, emptied.former.get(spec.pod)
        return any(
            one.pool == pool and (one.cpus == runs or one.name == former)
            for one in self.settings.instances.values()
        )

    def place(
        self, state: PodpoolsState, spec: ContainerSpec, earlier: CpuSet
    ) -> Placed[PodpoolsState]:
        """See `SimplePolicy.place`; never refuses."""
        rule, name, detail = self._choose(state, spec, earlier)
        if not name:
            return Placed(state, rule)
        placed = replace(
            state,
            places={**state.places, spec.id: name},
            former=_without(state.former, spec.pod),
        )
        details = (detail, self._overbooked(placed, name))
        return Placed(placed, rule, "; ".join(filter(None, details)))

    def vacate(self, state: PodpoolsState, container: str) -> PodpoolsState:
        """Free the place of a container; the last one of a pod frees the pod's."""
        left = replace(state, places=_without(state.places, container))
        pod = state.ledger.spec_of(container).pod
        name = state.places.get(container, RESERVED)
        if name == RESERVED or left.instance_of_pod(pod):
            return left
        return replace(left, former={**left.former, pod: name})

    def close(self, state: PodpoolsState, pod: str) -> PodpoolsState:
        """Forget where a pod was that is gone."""
        return replace(state, former=_without(state.former, pod))

    def pins(self, state: PodpoolsState) -> dict[str, Pin]:
        """Return the desired pin of every container, by id."""
        settings = self.settings
        of_instance = {
            name: pin_near(
                one.cpus,
                self.machine,
                pins_cpus=settings.pin_cpus,
                pins_memory=settings.pin_memory,
            )
            for name, one in settings.instances.items()
        }
        pins = {}
        for key, entry in state.ledger.entries.items():
            pin = of_instance.get(state.places.get(key, ""), NO_PIN)
            keeps_memory = entry.spec.preferences.preserve_memory
            pins[key] = without_memory(pin) if keeps_memory else pin
        return pins

    def publishes(self, state: PodpoolsState, container: str) -> bool:
        """Return whether a container's CPUs are published to it."""
        settings = self.settings
        is_pinned = settings.pin_cpus and container in state.places
        return is_pinned and settings.publish_resources

    def resources_of(self, state: PodpoolsState, container: str) -> Resources | None:
        """Return the CPUs that are published to a container; no pool is of one."""
        if not self.publishes(state, container):
            return None
        # What was sent is what is desired, in each decided state.
        return Resources(shared=state.ledger.last_sent_to(container).cpus)

    def republishes(self, before: PodpoolsState, after: PodpoolsState) -> Iterable[str]:  # noqa: ARG002 - pools and pins change together
        """Return containers whose publication may differ with equal pins: none."""
        return ()

    def pools(self, state: PodpoolsState) -> tuple[PoolUse, ...]:
        """Return the use of every instance."""
        return tuple(self._uses(state))

    def pool_of(self, state: PodpoolsState, container: str) -> str:
        """Return the name of a container's instance."""
        return state.places.get(container, "")

    def _choose(
        self, state: PodpoolsState, spec: ContainerSpec, earlier: CpuSet
    ) -> tuple[Rule, str, str]:
        """Return the rule, the instance, and what did not work."""
        preferences = spec.preferences
        if preferences.preserve_cpus:
            return Rule.PRESERVED, "", ""
        is_reserved = self.settings.reserves_for(spec)
        if not is_reserved and (name := state.instance_of_pod(spec.pod)):
            return Rule.SAME_POD, name, ""
        pool, rule = self._asked(spec)
        return self._in_pool(state, spec, pool, earlier, rule)

    def _asked(self, spec: ContainerSpec) -> tuple[str, Rule]:
        """Return the pool that a container should run in, and why."""
        if self.settings.reserves_for(spec):
            asked = spec.preferences.reserved
            return RESERVED, Rule.RESERVED_ASKED if asked else Rule.RESERVED_NAMESPACE
        pool = spec.preferences.pod_pool or DEFAULT
        return pool, Rule.NO_POOL_ASKED if pool == DEFAULT else Rule.POOL_ASKED

    def _in_pool(
        self,
        state: PodpoolsState,
        spec: ContainerSpec,
        pool: str,
        earlier: CpuSet,
        rule: Rule,
    ) -> tuple[Rule, str, str]:
        """Choose an instance of a pool, or the default pool if none has room."""
        instances = [
            one for one in self.settings.instances.values() if one.pool == pool
        ]
        if not instances:
            return Rule.FELL_BACK, DEFAULT, f"there is no pool {pool}"
        others = {
            one.name: len(state.pods_in(one.name) - {spec.pod}) for one in instances
        }
        free = [one for one in instances if one.has_room_beside(others[one.name])]
        if not free:
            return Rule.FELL_BACK, DEFAULT, f"the pool {pool} has no room for a pod"
        # After a new configuration the instance of the same name may be elsewhere.
        runs = state.ledger.last_sent_to(spec.id).cpus
        for one in free:
            if one.cpus == runs:
                return Rule.OLD_PLACE, one.name, ""
        former = state.former.get(spec.pod)
        for one in free:
            if one.name == former or one.cpus == earlier:
                return Rule.OLD_PLACE, one.name, ""
        # A running pod does not move, neither at a resize nor at a restart. It does if
        # the default pool has other CPUs now.
        default = self.settings.instances[DEFAULT]
        stays = earlier == runs == default.cpus
        if not self.settings.pin_cpus:
            stays = former == DEFAULT and bool(state.ledger.last_sent_to(spec.id).mems)
        if stays:
            return Rule.FELL_BACK, DEFAULT, f"the pool {pool} had no room before"
        return rule, _next(free, others).name, ""

    def _overbooked(self, state: PodpoolsState, name: str) -> str:
        cpus = self.settings.instances[name].cpus
        requested = self._requested(state, name)
        if requested <= ONE_CPU * len(cpus) + _TOLERANCE:
            return ""
        have = count_text(len(cpus), "CPU")
        return f"overbooked: {requested}m requested of {have} in {name}"

    def _requested(self, state: PodpoolsState, name: str) -> int:
        entries = state.ledger.entries
        return sum(
            entries[key].spec.request
            for key, one in state.places.items()
            if one == name
        )

    def _uses(self, state: PodpoolsState) -> Iterator[PoolUse]:
        for name, one in self.settings.instances.items():
            is_reserved = name == RESERVED
            # Without CPUs of its own, the default pool has those of the reserved one.
            within = RESERVED if name == DEFAULT and self._borrows else ""
            use = PoolUse(
                kind="reserved" if is_reserved or within else "shared",
                name=name,
                cpus=one.cpus,
                within=within,
                shared=CpuSet() if is_reserved or within else one.cpus,
                reserved=one.cpus if is_reserved or within else CpuSet(),
                mems=nodes_near(one.cpus, self.machine),
            )
            inside = (
                key for key in state.ledger.entries if state.places.get(key) == name
            )
            yield with_use(use, self._requested(state, name), inside)

    @property
    def _borrows(self) -> bool:
        instances = self.settings.instances
        return instances[DEFAULT].cpus == instances[RESERVED].cpus


def _without(table: Mapping[str, str], key: str) -> Mapping[str, str]:
    return {one: value for one, value in table.items() if one != key}


def _next(free: list[PoolInstance], pods: Mapping[str, int]) -> PoolInstance:
    """Return the instance of a pool that gets the next pod."""
    match free[0].fill_order:
        case FillOrder.BALANCED:
            return min(free, key=lambda one: pods[one.name])
        case FillOrder.PACKED:
            return max(free, key=lambda one: pods[one.name])
        case FillOrder.FIRST_FREE:
            return free[0]
