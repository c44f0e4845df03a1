"""The static-pools policy: which container gets which CPU lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import ClassVar, Final, Self

import msgspec
from msgspec.structs import replace

from nri_resmgr.policy.advice import accepts, sentence
from nri_resmgr.policy.base import with_ledger
from nri_resmgr.policy.cpu_pools import (
    UnknownPool,
    nodes_near,
    pin_near,
    with_use,
)
from nri_resmgr.policy.decision import Decision, Resources
from nri_resmgr.policy.events import (
    NO_PIN,
    ContainerSpec,
    Event,
    Pin,
    RequestOrigin,
    Synchronized,
)
from nri_resmgr.policy.rules import Rule
from nri_resmgr.policy.simple import Placed, SimplePolicy, SimpleState
from nri_resmgr.policy.static_pools.advice import helps
from nri_resmgr.policy.static_pools.errors import (
    BadPoolRequest,
    ListsShort,
    NoListsRequested,
)
from nri_resmgr.policy.static_pools.settings import (
    INFRA,
    SHARED,
    CpuList,
    StaticPool,
    StaticPoolsSettings,
)
from nri_resmgr.policy.views import CpuRoom, PoolUse
from nri_resmgr.topology import Machine
from nri_resmgr.values import (
    NO_CPUS,
    ONE_CPU,
    CpuSet,
    InputError,
    PolicyError,
    StoredValue,
)
from nri_resmgr.values.counts import count_text

EXCLUSIVE_LISTS: Final = "cmk.intel.com/exclusive-cores"
"""The extended resource that counts the lists of exclusive pools."""

_ANY_SOCKET: Final = -1


class ListPlace(StoredValue, frozen=True):
    """The lists of a container.

    Attributes:
        lists: Their texts.
        cpus: Their CPUs, as far as these were online.
        is_pinned: Whether it runs on these only.
    """

    pool: str
    lists: tuple[str, ...]
    cpus: CpuSet
    is_pinned: bool = True

    @property
    def text(self) -> str:
        """Its lists, as it gets them in its environment."""
        return ",".join(self.lists)


class StaticPoolsState(SimpleState, frozen=True):
    """The containers and their lists.

    Attributes:
        places: By container id. Containers that keep their own CPUs have none, nor have
            running ones that could not get what they ask for.
        former: The places that containers had, while these are placed again.
    """

    places: Mapping[str, ListPlace] = {}
    former: Mapping[str, ListPlace] = {}


class _Held(msgspec.Struct, frozen=True):
    """What a container had: in a former state, in force, or in its environment.

    Attributes:
        cpus: Those of each.
        lists: The texts of its lists, which have more CPUs if some have come back.
    """

    cpus: tuple[CpuSet, ...]
    lists: tuple[str, ...]

    @classmethod
    def of(cls, spec: ContainerSpec, earlier: CpuSet, former: ListPlace | None) -> Self:
        """Return what a container had; its *former* place only if it did not move."""
        cpus = earlier, _parsed(spec.pool_request.assigned)
        if former is None or (former.is_pinned and former.cpus != earlier):
            return cls(cpus, ())
        return cls((*cpus, former.cpus), former.lists)

    def has(self, one: CpuList) -> bool:
        """Return whether it had a list."""
        return one.text in self.lists or one.cpus <= CpuSet.union(self.cpus)


class StaticPoolsPolicy(SimplePolicy[StaticPoolsState]):
    """Lists of CPUs in pools, which containers name in their environment.

    A container of an exclusive pool gets as many lists as it asks for, for itself; one
    of another pool shares a list. The environment says which CPUs these are.

    Source:
        CRI Resource Manager, the policy ``static-pools``; CMK.
    """

    kind: ClassVar[str] = "StaticPoolsPolicy"
    obeys: ClassVar[frozenset[str]] = frozenset(("preserve_cpus", "preserve_memory"))
    sets_environment: ClassVar[bool] = True

    def __init__(self, machine: Machine, settings: StaticPoolsSettings) -> None:
        self.machine = machine
        self.settings = settings

    def with_settings(self, settings: StaticPoolsSettings) -> StaticPoolsPolicy:
        """Return the policy of the same machine with other settings."""
        return StaticPoolsPolicy(self.machine, settings)

    def advise(self, error: PolicyError, state: StaticPoolsState, event: Event) -> None:
        """Add to a refusal what would help."""
        if isinstance(error, ListsShort | NoListsRequested):
            tried = partial(accepts, self, state, event)
            error.advice = sentence(helps(error, EXCLUSIVE_LISTS, tried))

    def start(self) -> StaticPoolsState:
        """Return the state of a node without containers."""
        return StaticPoolsState()

    def emptied(
        self,
        state: StaticPoolsState,
        specs: Sequence[ContainerSpec],  # noqa: ARG002 - lists do not change
    ) -> StaticPoolsState:
        """Return the state without containers, which remembers their lists."""
        return StaticPoolsState(former=state.places)

    def updated(
        self, state: StaticPoolsState, spec: ContainerSpec
    ) -> Decision[StaticPoolsState]:
        """Keep the lists of a container: they do not depend on its amounts."""
        if spec.id in state.places:
            return self._kept(state, spec, Rule.KEPT)
        try:
            return super().updated(state, spec)
        except PolicyError as refusal:
            if spec.id not in state.ledger:
                raise
            # It could not be refused when it was found; nor is its new amount now.
            return self._kept(state, spec, Rule.FELL_BACK, str(refusal))

    def synchronized(
        self, state: StaticPoolsState, event: Synchronized
    ) -> Decision[StaticPoolsState]:
        """Place all running containers, on the lists that they have if possible."""
        decision = super().synchronized(state, event)
        return replace(decision, state=replace(decision.state, former={}))

    def has_place(
        self,
        before: StaticPoolsState,  # noqa: ARG002 - `emptied` keeps what counts of it
        emptied: StaticPoolsState,
        spec: ContainerSpec,
        earlier: CpuSet,
    ) -> bool:
        """Return whether a running container has lists of the pool that it asks for."""
        try:
            pool = self._asked_pool(spec)
        except PolicyError:
            return False
        held = _Held.of(spec, earlier, emptied.former.get(spec.id))
        return any(held.has(one) for one in pool.lists if one.cpus)

    def place(
        self, state: StaticPoolsState, spec: ContainerSpec, earlier: CpuSet
    ) -> Placed[StaticPoolsState]:
        """See `SimplePolicy.place`."""
        if spec.preferences.preserve_cpus:
            return Placed(state, Rule.PRESERVED)
        request = spec.pool_request
        pool = self._asked_pool(spec)
        held = _Held.of(spec, earlier, state.former.get(spec.id))
        lists = self._lists(state, spec, pool, held)
        place = ListPlace(
            pool.name,
            tuple(one.text for one in lists),
            CpuSet.union(one.cpus for one in lists),
            request.is_pinned,
        )
        placed = replace(state, places={**state.places, spec.id: place})
        rule = Rule.POOL_ASKED if request.pool else Rule.NO_POOL_ASKED
        if place.cpus in held.cpus:
            rule = Rule.KEPT
        return Placed(placed, rule, _detail(spec, pool, place))

    def vacate(self, state: StaticPoolsState, container: str) -> StaticPoolsState:
        """Free the lists of a container."""
        places = {key: one for key, one in state.places.items() if key != container}
        return replace(state, places=places)

    def pins(self, state: StaticPoolsState) -> dict[str, Pin]:
        """Return the desired pin of every container, by id."""
        shared = self.settings.pools[SHARED].cpus
        pins = {}
        for key, entry in state.ledger.entries.items():
            preferences, place = entry.spec.preferences, state.places.get(key)
            if preferences.preserve_cpus or (place and not place.is_pinned):
                pins[key] = NO_PIN
                continue
            # Without a place it is one that could not be refused: it must not run on
            # lists of others.
            cpus = place.cpus if place else shared
            memory = self.settings.pin_memory and not preferences.preserve_memory
            pins[key] = pin_near(cpus, self.machine, pins_memory=memory)
        return pins

    def publishes(self, state: StaticPoolsState, container: str) -> bool:
        """Return whether a container's CPUs are published to it."""
        if container not in state.ledger or not self.settings.publish_resources:
            return False
        place = state.places.get(container)
        is_pinned = place is None or place.is_pinned
        preserves = state.ledger.spec_of(container).preferences.preserve_cpus
        return is_pinned and not preserves

    def resources_of(self, state: StaticPoolsState, container: str) -> Resources | None:
        """Return the CPUs that are published to a container."""
        if not self.publishes(state, container):
            return None
        # What was sent is what is desired, in each decided state.
        cpus, place = (
            state.ledger.last_sent_to(container).cpus,
            state.places.get(container),
        )
        if place is None or not self._is_exclusive(place.pool):
            return Resources(shared=cpus)
        isolated = self.machine.isolated
        return Resources(isolated=cpus & isolated, exclusive=cpus - isolated)

    def republishes(
        self,
        before: StaticPoolsState,  # noqa: ARG002 - as below
        after: StaticPoolsState,  # noqa: ARG002 - lists and pins change together
    ) -> Iterable[str]:
        """Return containers whose publication may differ with equal pins: none."""
        return ()

    def exclusive_cpus(self, state: StaticPoolsState) -> dict[str, CpuSet]:
        """Return the CPUs of pinned containers of exclusive pools, by id."""
        return {
            key: one.cpus
            for key, one in state.places.items()
            if one.is_pinned and self._is_exclusive(one.pool)
        }

    def fixed_places(self, state: StaticPoolsState) -> dict[str, str]:
        """Return the lists of containers that name a pool, by id.

        They are in the environment of these, which does not change.
        """
        entries = state.ledger.entries
        return {
            key: f"{one.text} of the pool {one.pool}"
            for key, one in state.places.items()
            if entries[key].spec.pool_request.pool
        }

    def environment_of(self, state: StaticPoolsState, container: str) -> dict[str, str]:
        """Return the lists of a container, and those of two pools that all may use."""
        place = state.places.get(container)
        if place is None:
            return {}
        found = {"CMK_CPUS_ASSIGNED": place.text}
        for name in (INFRA, SHARED):
            if name in self.settings.pools:
                found[f"CMK_CPUS_{name.upper()}"] = self.settings.pools[name].text
        return found

    def cpu_room(self, state: StaticPoolsState, cpus: CpuSet) -> CpuRoom:
        """Return the CPUs of the lists of exclusive pools."""
        lists = [
            (one.cpus, not self._users(state, pool)[one.text])
            for pool in self.settings.pools.values()
            if pool.is_exclusive
            for one in pool.lists
        ]
        mine = CpuSet.union(found for found, _ in lists) & cpus
        free = CpuSet.union(found for found, is_free in lists if is_free) & cpus
        return CpuRoom.of(ONE_CPU * len(mine), ONE_CPU * len(free))

    def pools(self, state: StaticPoolsState) -> tuple[PoolUse, ...]:
        """Return the use of every pool."""
        return tuple(self._use(state, one) for one in self.settings.pools.values())

    def pool_of(self, state: StaticPoolsState, container: str) -> str:
        """Return the pool of a container; empty for one that keeps its CPUs."""
        if place := state.places.get(container):
            return place.pool
        preserves = state.ledger.spec_of(container).preferences.preserve_cpus
        return "" if preserves else SHARED

    def _kept(
        self,
        state: StaticPoolsState,
        spec: ContainerSpec,
        rule: Rule,
        detail: str = "",
    ) -> Decision[StaticPoolsState]:
        """Leave a known container where it is, whatever its new amounts."""
        sent = state.ledger.last_sent_to(spec.id)
        there = with_ledger(state, state.ledger.put(spec, sent))
        pin = self.pins(there)[spec.id]
        after = with_ledger(there, there.ledger.put(spec, pin.over(sent)))
        return Decision(after, (self._reason(after, spec, pin, rule, detail),), pin)

    def _asked_pool(self, spec: ContainerSpec) -> StaticPool:
        pools = self.settings.pools
        name = spec.pool_request.pool or SHARED
        if name not in pools:
            raise UnknownPool(spec.title, name, tuple(pools))
        return pools[name]

    def _lists(
        self,
        state: StaticPoolsState,
        spec: ContainerSpec,
        pool: StaticPool,
        held: _Held,
    ) -> tuple[CpuList, ...]:
        """Choose lists; those that it had come first.

        Raises:
            PolicyError: There are too few, or the request has no meaning.
        """
        socket = _ANY_SOCKET if pool.name == INFRA else _socket(spec)
        there = [
            one
            for one in pool.lists
            if one.cpus and socket in (_ANY_SOCKET, one.socket)
        ]
        users = self._users(state, pool)
        count = _count(spec, pool) if pool.is_exclusive else 1
        if pool.is_exclusive:
            free = [one for one in there if not users[one.text]]
        else:
            # The sort is stable: the first one of those with equally many containers.
            free = sorted(there, key=lambda one: users[one.text])
        free.sort(key=lambda one: not held.has(one))
        if len(free) < count:
            raise ListsShort(
                spec.title,
                pool.name,
                socket,
                count,
                tuple(one.text for one in free),
                len(there) - len(free),
            )
        chosen = free[:count]
        return tuple(one for one in pool.lists if one in chosen)

    def _users(self, state: StaticPoolsState, pool: StaticPool) -> dict[str, int]:
        """Return the number of containers by list."""
        users = {one.text: 0 for one in pool.lists}
        for place in state.places.values():
            for text in place.lists if place.pool == pool.name else ():
                users[text] += 1
        return users

    def _is_exclusive(self, pool: str) -> bool:
        # The state may be that of other settings.
        found = self.settings.pools.get(pool)
        return found is not None and found.is_exclusive

    def _use(self, state: StaticPoolsState, pool: StaticPool) -> PoolUse:
        entries = state.ledger.entries
        inside = tuple(key for key in entries if self.pool_of(state, key) == pool.name)
        cpus = pool.cpus
        if pool.is_exclusive:
            taken = CpuSet.union(
                one.cpus for one in state.places.values() if one.pool == pool.name
            )
            granted = ONE_CPU * len(taken)
        else:
            granted = sum(entries[key].spec.request for key in inside)
        use = PoolUse(
            kind="exclusive" if pool.is_exclusive else "shared",
            name=pool.name,
            cpus=cpus,
            shared=NO_CPUS if pool.is_exclusive else cpus,
            exclusive=cpus if pool.is_exclusive else NO_CPUS,
            mems=nodes_near(cpus, self.machine),
        )
        return with_use(use, granted, inside)


def _socket(spec: ContainerSpec) -> int:
    text = spec.pool_request.socket.strip()
    try:
        return max(int(text or _ANY_SOCKET), _ANY_SOCKET)
    except ValueError:
        what, expected = "its socket", "a number, or -1 for any"
        raise BadPoolRequest(spec.title, what, text, expected) from None


def _count(spec: ContainerSpec, pool: StaticPool) -> int:
    """Return the number of exclusive lists that a container asks for.

    Runtimes do not see extended resources. Where no annotation has them, the number
    that CMK's webhook wrote into the environment counts, and one without it.
    """
    if _has_resources(spec):
        if count := spec.extended.get(EXCLUSIVE_LISTS, 0):
            return count
        raise NoListsRequested(spec.title, pool.name)
    text = spec.pool_request.lists.strip()
    try:
        count = int(text or 1)
    except ValueError:
        count = 0
    if count < 1:
        expected = "a number above 0"
        raise BadPoolRequest(spec.title, "its number of lists", text, expected)
    return count


def _has_resources(spec: ContainerSpec) -> bool:
    """Return whether the extended resources of a container are known."""
    return spec.own_source is not RequestOrigin.OCI


def _detail(spec: ContainerSpec, pool: StaticPool, place: ListPlace) -> str:
    """Say what of a request has no effect, or not the usual one."""
    request = spec.pool_request
    found = []
    if pool.is_exclusive and _has_resources(spec):
        count = len(place.lists)
        if request.lists.strip() not in ("", str(count)):
            found.append(
                f"it requests {count_text(count, 'list')}, not {request.lists}"
            )
    if not place.is_pinned:
        found.append(f"not pinned to CPU {place.cpus}, as it asks")
    return "; ".join(found)


def _parsed(assigned: str) -> CpuSet:
    """Parse what is in a container's environment, which it may have changed."""
    try:
        return CpuSet.parse(assigned)
    except InputError:
        return NO_CPUS
