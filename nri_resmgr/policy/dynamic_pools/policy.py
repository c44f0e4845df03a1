"""The dynamic-pools policy: which container runs in which pool."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

from msgspec.structs import replace

from nri_resmgr.policy.cpu_pools import (
    UnknownPool,
    nodes_near,
    pin_near,
    with_use,
    without_memory,
)
from nri_resmgr.policy.decision import Decision, Reason, Resources
from nri_resmgr.policy.dynamic_pools.resize import resized
from nri_resmgr.policy.dynamic_pools.settings import (
    RESERVED,
    SHARED,
    DynamicPool,
    DynamicPoolsSettings,
)
from nri_resmgr.policy.dynamic_pools.sizes import PoolDemand, sizes_of
from nri_resmgr.policy.events import NO_PIN, ContainerSpec, Pin, Rebalance
from nri_resmgr.policy.host_use import NO_HOST_USE, HostUse
from nri_resmgr.policy.rules import Rule
from nri_resmgr.policy.simple import Placed, SimplePolicy, SimpleState
from nri_resmgr.policy.views import PoolUse
from nri_resmgr.topology import Machine
from nri_resmgr.values import NO_CPUS, ONE_CPU, CpuSet, PolicyError
from nri_resmgr.values.counts import count_text


@dataclass(eq=False)
class PoolsFull(PolicyError):
    """The pools cannot have the CPUs that their containers request."""

    title: str
    wanted: int
    free: int

    def __str__(self) -> str:
        return (
            f"with {self.title}, the requests in all pools need "
            f"{count_text(self.wanted, 'CPU')}, "
            f"and the pools have {self.free} together"
        )


class DynamicPoolsState(SimpleState, frozen=True):
    """The containers, their pools, and the CPUs of pools.

    Attributes:
        places: The pool, by container id. Containers that keep their own CPUs have
            none.
        cpus: By pool, without the reserved one. They are disjoint, and together all.
        busy: How busy the CPUs of a pool were when measured last, thousandths of a
            CPU.
    """

    places: Mapping[str, str] = {}
    cpus: Mapping[str, CpuSet] = {}
    busy: Mapping[str, int] = {}


class DynamicPoolsPolicy(SimplePolicy[DynamicPoolsState]):
    """Pools of CPUs that grow and shrink by requests and by how busy they are.

    Each container runs in one pool, with all others there. No CPU is in two pools, and
    none is in no pool.

    Source:
        CRI Resource Manager, the policy ``dynamic-pools``.
    """

    kind: ClassVar[str] = "DynamicPoolsPolicy"
    obeys: ClassVar[frozenset[str]] = frozenset(
        ("dynamic_pool", "preserve_cpus", "preserve_memory", "reserved")
    )
    rebalances: ClassVar[bool] = True

    def __init__(self, machine: Machine, settings: DynamicPoolsSettings) -> None:
        self.machine = machine
        self.settings = settings

    def start(self) -> DynamicPoolsState:
        """Return the state of a node without containers."""
        return self.arranged(DynamicPoolsState())

    def emptied(
        self, state: DynamicPoolsState, specs: Sequence[ContainerSpec]
    ) -> DynamicPoolsState:
        """Return the state without containers; pools keep their CPUs for now.

        The CPUs of a pool are those that its containers run on.
        """
        known = self.settings.pools
        reported = self._reported(specs) if self.settings.pin_cpus else {}
        taken = CpuSet.union(reported.values())
        others = {name: cpus - taken for name, cpus in state.cpus.items()}
        # In the order of the settings: that of a checkpoint says nothing.
        found = others | reported
        cpus = {name: found[name] for name in known if name in found}
        busy = {name: state.busy[name] for name in known if name in state.busy}
        return DynamicPoolsState(cpus=cpus, busy=busy)

    def _reported(self, specs: Sequence[ContainerSpec]) -> dict[str, CpuSet]:
        """Return the CPUs of pools whose containers all run on the same.

        Containers that did not fit run on shared CPUs, and say nothing of their pools.
        """
        runs: dict[str, set[CpuSet]] = {}
        for spec in specs:
            with suppress(PolicyError):
                _, name = self._choose(spec)
                if name not in ("", RESERVED) and spec.present.cpus:
                    runs.setdefault(name, set()).add(spec.present.cpus)
        found: dict[str, CpuSet] = {}
        # A pool without CPUs of its own runs on shared ones.
        for name in sorted(runs, key=lambda one: one != SHARED):
            own = runs[name] - {found.get(SHARED, NO_CPUS)}
            cpus = CpuSet.union(own)
            if len(own) == 1 and cpus.isdisjoint(CpuSet.union(found.values())):
                found[name] = cpus
        return found

    def has_place(
        self,
        before: DynamicPoolsState,
        emptied: DynamicPoolsState,
        spec: ContainerSpec,
        earlier: CpuSet,  # noqa: ARG002 - where it runs now says more
    ) -> bool:
        """Return whether a container is in the pool it asks for.

        One that did not fit runs on shared CPUs. Where these are those of its pool,
        what is known of it counts.
        """
        try:
            _, name = self._choose(spec)
        except PolicyError:
            return False
        runs, shared = spec.present.cpus, self._cpus_of(emptied, SHARED)
        if self.settings.pin_cpus and self._cpus_of(emptied, name) != shared:
            return runs not in (NO_CPUS, shared)
        if spec.id in before.ledger:
            return spec.id in before.places
        return self.settings.pin_cpus and runs == shared

    def place(
        self,
        state: DynamicPoolsState,
        spec: ContainerSpec,
        earlier: CpuSet,  # noqa: ARG002 - the pool decides
    ) -> Placed[DynamicPoolsState]:
        """See `SimplePolicy.place`."""
        rule, name = self._choose(spec)
        if not name:
            return Placed(state, rule)
        return Placed(self._joined(state, spec, name), rule)

    def vacate(self, state: DynamicPoolsState, container: str) -> DynamicPoolsState:
        """Free the place of a container."""
        places = {key: one for key, one in state.places.items() if key != container}
        return replace(state, places=places)

    def arranged(self, state: DynamicPoolsState) -> DynamicPoolsState:
        """Resize the pools to their containers; nothing moves if no size changes.

        Running containers that did not fit join their pools where they fit now.
        """
        for key, entry in state.ledger.entries.items():
            if key not in state.places:
                with suppress(PolicyError):
                    _, name = self._choose(entry.spec)
                    state = self._joined(state, entry.spec, name) if name else state
        sizes = sizes_of(self._demands(state), len(self.settings.free))
        present = {name: len(cpus) for name, cpus in state.cpus.items()}
        held = CpuSet.union(state.cpus.values())
        if sizes == present and held == self.settings.free:
            return state
        pools, free = self.settings.pools, self.settings.free
        cpus = resized(state.cpus, sizes, pools, free, self.machine)
        return replace(state, cpus=cpus)

    def rebalanced(
        self, state: DynamicPoolsState, event: Rebalance
    ) -> Decision[DynamicPoolsState]:
        """Resize the pools by how busy their CPUs were.

        CPUs move between pools, and containers do not: there is no limit.
        """
        if not event.busy:
            return Decision(state, ())
        busy = {
            name: sum(event.busy.get(cpu, 0) for cpu in cpus)
            for name, cpus in state.cpus.items()
        }
        after = self.arranged(replace(state, busy=busy))
        return self.settled(state, after, tuple(self._resizes(state, after)))

    def settled(
        self,
        before: DynamicPoolsState,
        after: DynamicPoolsState,
        reasons: tuple[Reason, ...],
    ) -> Decision[DynamicPoolsState]:
        """Decide on *after*, with a reason for those that fit into their pools now."""
        named = {reason.container for reason in reasons}
        joined = after.places.keys() - before.places.keys() - named
        if joined:
            pins = self.pins(after)
            reasons += tuple(
                self._reason(after, entry.spec, pins[key], Rule.NOW_FITS)
                for key, entry in after.ledger.entries.items()
                if key in joined
            )
        return super().settled(before, after, reasons)

    def pins(self, state: DynamicPoolsState) -> dict[str, Pin]:
        """Return the desired pin of every container, by id."""
        settings = self.settings
        of_pool = {
            name: pin_near(
                self._cpus_of(state, name),
                self.machine,
                pins_cpus=settings.pin_cpus,
                pins_memory=settings.pin_memory,
            )
            for name in settings.pools
        }
        pins = {}
        for key, entry in state.ledger.entries.items():
            # The state may be that of other settings.
            name = self.pool_of(state, key)
            pin = of_pool.get(name, of_pool[SHARED]) if name else NO_PIN
            keeps_memory = entry.spec.preferences.preserve_memory
            pins[key] = without_memory(pin) if keeps_memory else pin
        return pins

    def host_use(self, state: DynamicPoolsState) -> HostUse:
        """Return the CPUs of each CPU class."""
        if not self.settings.pin_cpus:
            return NO_HOST_USE
        classes: dict[str, CpuSet] = {}
        for name, pool in self.settings.pools.items():
            if pool.cpu_class:
                cpus = state.cpus.get(name, NO_CPUS)
                if name == RESERVED:
                    cpus = self.settings.reserved
                classes[pool.cpu_class] = cpus | classes.get(pool.cpu_class, NO_CPUS)
        return HostUse(cpu_classes=classes, available=self.settings.available)

    def publishes(self, state: DynamicPoolsState, container: str) -> bool:
        """Return whether a container's CPUs are published to it."""
        settings = self.settings
        is_pinned = settings.pin_cpus and container in state.places
        return is_pinned and settings.publish_resources

    def resources_of(
        self, state: DynamicPoolsState, container: str
    ) -> Resources | None:
        """Return the CPUs that are published to a container; no pool is of one."""
        if not self.publishes(state, container):
            return None
        # What was sent is what is desired, in each decided state.
        return Resources(shared=state.ledger.last_sent_to(container).cpus)

    def republishes(
        self,
        before: DynamicPoolsState,  # noqa: ARG002 - as below
        after: DynamicPoolsState,  # noqa: ARG002 - pools and pins change together
    ) -> Iterable[str]:
        """Return containers whose publication may differ with equal pins: none."""
        return ()

    def pools(self, state: DynamicPoolsState) -> tuple[PoolUse, ...]:
        """Return the use of every pool."""
        demands = self._demands(state)
        return tuple(
            self._use(state, pool, demands.get(pool.name))
            for pool in self.settings.pools.values()
        )

    def pool_of(self, state: DynamicPoolsState, container: str) -> str:
        """Return the name of the pool whose CPUs a container has; empty for none.

        A running container that does not fit into its pool has those of `SHARED`.
        """
        preserved = state.ledger.spec_of(container).preferences.preserve_cpus
        return state.places.get(container, "" if preserved else SHARED)

    def _joined(
        self, state: DynamicPoolsState, spec: ContainerSpec, pool: str
    ) -> DynamicPoolsState:
        """Return the state with a container in a pool; sizes stay.

        Raises:
            PoolsFull: Its request does not fit.
        """
        joined = replace(state, places={**state.places, spec.id: pool})
        wanted, free = 0, len(self.settings.free)
        if spec.request and pool != RESERVED:
            wanted = sum(one.base for one in self._demands(joined).values())
        if wanted > free:
            raise PoolsFull(spec.title, wanted, free)
        return joined

    def _choose(self, spec: ContainerSpec) -> tuple[Rule, str]:
        """Return the rule and the pool; none for one that keeps its CPUs.

        Raises:
            UnknownPool: The annotation names another one.
        """
        preferences, settings = spec.preferences, self.settings
        if preferences.preserve_cpus:
            return Rule.PRESERVED, ""
        reserved = settings.reserves_for(spec)
        if not (spec.request or spec.limit or reserved):
            return Rule.NO_REQUEST, SHARED
        if asked := preferences.dynamic_pool:
            if asked not in settings.pools:
                raise UnknownPool(spec.title, asked, tuple(settings.pools))
            return Rule.POOL_ASKED, asked
        if reserved:
            asks = preferences.reserved
            return Rule.RESERVED_ASKED if asks else Rule.RESERVED_NAMESPACE, RESERVED
        name = settings.pool_for(spec.namespace)
        return Rule.POOL_NAMESPACE if name != SHARED else Rule.NO_POOL_ASKED, name

    def _demands(self, state: DynamicPoolsState) -> dict[str, PoolDemand]:
        """Return what decides on the sizes of all pools but the reserved one."""
        found = {}
        for name in self.settings.pools:
            if name != RESERVED:
                members = [key for key, one in state.places.items() if one == name]
                specs = [state.ledger.spec_of(key) for key in members]
                requested = sum(one.request for one in specs)
                weight = state.busy.get(name, 0)
                found[name] = PoolDemand(requested, len(members), weight)
        return found

    def _resizes(
        self, before: DynamicPoolsState, after: DynamicPoolsState
    ) -> Iterator[Reason]:
        """Yield a reason for each container whose pool has other CPUs now."""
        pins = self.pins(after)
        changed = {
            name for name, cpus in after.cpus.items() if cpus != before.cpus[name]
        }
        for key, name in after.places.items():
            if name in changed:
                was, now = len(before.cpus[name]), len(after.cpus[name])
                busy = after.busy[name] / ONE_CPU
                has = count_text(now, "CPU")
                detail = f"its pool has {has}; of its {was}, {busy:.1f} were busy"
                spec = after.ledger.spec_of(key)
                yield self._reason(after, spec, pins[key], Rule.RESIZED, detail)

    def _cpus_of(self, state: DynamicPoolsState, name: str) -> CpuSet:
        """Return where containers of a pool run: never nowhere."""
        if name == RESERVED:
            return self.settings.reserved
        own, shared = (state.cpus.get(one, NO_CPUS) for one in (name, SHARED))
        return own or shared or self.settings.reserved

    def _use(
        self, state: DynamicPoolsState, pool: DynamicPool, demand: PoolDemand | None
    ) -> PoolUse:
        name = pool.name
        entries = state.ledger.entries
        containers = tuple(key for key in entries if self.pool_of(state, key) == name)
        is_reserved = demand is None
        cpus = self.settings.reserved if is_reserved else state.cpus[name]
        granted = sum(entries[key].spec.request for key in containers)
        use = PoolUse(
            kind="reserved" if is_reserved else "shared",
            name=name,
            cpus=cpus,
            shared=NO_CPUS if is_reserved else cpus,
            reserved=cpus if is_reserved else NO_CPUS,
            mems=nodes_near(cpus, self.machine),
        )
        return with_use(use, granted, containers)
