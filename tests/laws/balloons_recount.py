"""What must hold of a state of the balloons policy, counted from scratch."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, TypeAlias

import msgspec

from nri_resmgr.policy.balloons.policy import BalloonsPolicy
from nri_resmgr.policy.balloons.settings import BalloonType, ShareLevel
from nri_resmgr.policy.balloons.state import Balloon, BalloonsState
from nri_resmgr.policy.events import NO_PIN, ContainerSpec, Pin
from nri_resmgr.topology import Machine
from nri_resmgr.values import CpuSet, NodeSet
from nri_resmgr.values.scheduling import SchedulingClass

Policy: TypeAlias = BalloonsPolicy
State: TypeAlias = BalloonsState


def pins_by_recount(policy: Policy, state: State) -> dict[str, Pin]:
    """Return every container's pin, computed from the balloons' CPUs alone."""
    found = {}
    for key, entry in state.ledger.entries.items():
        name, spec, settings = (
            state.memberships[key].balloon,
            entry.spec,
            policy.settings,
        )
        found[key] = NO_PIN
        if name:
            kind = settings.by_name[state.balloons[name].type]
            has_mems = kind.pin_memory and not spec.preferences.preserve_memory
            cpus = runs_on(spec, state.balloons[name], policy, state)
            found[key] = Pin(
                cpus if settings.pin_cpus else CpuSet(),
                state.memory.grants[key].zone if has_mems else NodeSet(),
                max(2, spec.request * 1024 // 1000) if settings.pin_cpus else 0,
            )
    return found


def runs_on(
    spec: ContainerSpec, balloon: Balloon, policy: Policy, state: State
) -> CpuSet:
    """Return a balloon's CPUs and the idle CPUs that a container may use, too."""
    # The requested type hides threads, even if the container fell back to another.
    kind = policy.settings.by_name[type_of(spec, policy) or "default"]
    cpus = cpus_of(balloon, state) | shared_by(balloon, policy, state)
    asked = spec.preferences.hide_hyperthreads
    if not (kind.hide_hyperthreads if asked is None else asked):
        return cpus
    cores = (core.cpus & cpus for core in policy.machine.cores)
    return CpuSet.from_iterable(min(threads) for threads in cores if threads)


def cpus_of(balloon: Balloon, state: State) -> CpuSet:
    return CpuSet.union(leaf.cpus for leaf, _ in leaves(balloon, state))


def leaves(
    balloon: Balloon, state: State, part: Fraction = Fraction(1)
) -> Iterator[tuple[Balloon, Fraction]]:
    """Yield the balloons without components, with their parts of the load."""
    if not balloon.parts:
        yield balloon, part
    for name in balloon.parts:
        yield from leaves(state.balloons[name], state, part / len(balloon.parts))


def idle(policy: Policy, state: State) -> CpuSet:
    taken = (one.cpus for one in state.balloons.values() if not one.parts)
    return policy.settings.available - CpuSet.union(taken)


def shared_by(balloon: Balloon, policy: Policy, state: State) -> CpuSet:
    """Return the idle CPUs that a balloon uses, with those of its components."""
    level = policy.settings.by_name[balloon.type].share_idle
    mine = cpus_of(balloon, state)
    free = idle(policy, state) - policy.machine.isolated
    shared = [shared_by(state.balloons[one], policy, state) for one in balloon.parts]
    if level is not None:
        parts = elements(level, policy.machine)
        shared += [part & free for part in parts if not part.isdisjoint(mine)]
    return CpuSet.union(shared)


def elements(level: ShareLevel, machine: Machine) -> list[CpuSet]:
    """Divide a machine by caches, or by cores where the caches are not known."""
    match level:
        case ShareLevel.SYSTEM:
            found = [machine.online]
        case ShareLevel.PACKAGE:
            found = [one.cpus for one in machine.packages]
        case ShareLevel.DIE:
            found = [one.cpus for one in machine.dies]
        case ShareLevel.NUMA:
            found = [one.cpus for one in machine.nodes]
        case ShareLevel.L2CACHE:
            found = [one.cpus for one in machine.caches_at(2)]
        case ShareLevel.CORE:
            found = []
        case ShareLevel.THREAD:
            found = [CpuSet.of(cpu) for cpu in machine.online]
    return found or [core.cpus for core in machine.cores]


def check_disjoint(policy: Policy, state: State) -> None:
    """No CPU is in two balloons, and none of them is out of bounds."""
    own = [one for one in state.balloons.values() if not one.parts]
    taken = CpuSet.union(one.cpus for one in own)
    assert sum(len(one.cpus) for one in own) == len(taken)
    assert taken <= policy.settings.available
    assert state.free == policy.settings.available - taken


def check_balloons(policy: Policy, state: State) -> None:
    """The record of each balloon equals the sum of its parts and containers."""
    for name, one in state.balloons.items():
        kind = policy.settings.by_name[one.type]
        assert name == f"{one.type}[{one.index}]"
        members = [
            key
            for key, membership in state.memberships.items()
            if membership.balloon == name
        ]
        assert sorted(one.members) == sorted(members)
        rooms = [r.spec for r in state.reserved_rooms.values() if r.balloon == name]
        assert sorted(one.rooms) == sorted(spec.id for spec in rooms)
        requests = [state.ledger.spec_of(key).request for key in members]
        requests += [spec.request for spec in rooms]
        assert one.load == sum(requests)
        assert one.cpus == cpus_of(one, state)
        assert one.reach & state.free == shared_by(one, policy, state)
        parts = tuple(state.balloons[part].type for part in one.parts)
        assert all(state.balloons[part].within == name for part in one.parts)
        assert not one.within or name in state.balloons[one.within].parts
        assert not (one.within and (one.members or one.rooms))
        if kind.balance_components:
            assert set(parts) < {*kind.components, ""}
            assert len(parts) == 1
        else:
            assert parts == kind.components


def check_numbers(policy: Policy, state: State) -> None:
    """The number of balloons of each type is within its limits."""
    for kind in policy.settings.types:
        mine = [one for one in state.balloons.values() if one.type == kind.name]
        own = [one for one in mine if not one.within]
        most = math.inf if kind.max_balloons is None else kind.max_balloons
        assert kind.min_balloons <= len(own) <= most, kind.name
        empty = sum(not (one.members or one.rooms) for one in own)
        assert empty <= kind.min_balloons, kind.name


def short_leaves(policy: Policy, state: State) -> set[str]:
    """Check sizes; return the balloons that have fewer CPUs than they need."""
    short = set()
    for one in state.balloons.values():
        if not one.within:
            kind = policy.settings.by_name[one.type]
            load = _limited(one.load, kind) if one.parts else one.load
            used = bool(one.members or one.rooms)
            for leaf, part in leaves(one, state):
                wanted = _size(load * part, leaf, policy, used=used)
                assert len(leaf.cpus) <= wanted, leaf.name
                if len(leaf.cpus) < wanted:
                    short.add(leaf.name)
    return short


def _size(load: Fraction, leaf: Balloon, policy: Policy, *, used: bool) -> int:
    kind = policy.settings.by_name[leaf.type]
    if kind.cpus:
        assert leaf.cpus == kind.cpus[leaf.index]
        return len(leaf.cpus)
    wanted = max(math.ceil(load / 1000), int(used))
    if kind.max_cpus is not None:
        wanted = min(wanted, kind.max_cpus)
    return max(wanted, kind.min_cpus)


def _limited(load: int, kind: BalloonType) -> int:
    if kind.max_cpus is not None:
        load = min(load, 1000 * kind.max_cpus)
    return max(load, 1000 * kind.min_cpus)


def overloaded(policy: Policy, state: State) -> set[str]:
    """Return the balloons whose containers request more CPUs than they have."""
    return {
        name
        for name, one in state.balloons.items()
        if one.members
        and any(
            not leaf.cpus or one.load * part > 1000 * len(leaf.cpus)
            for leaf, part in leaves(one, state)
        )
    }


def type_of(spec: ContainerSpec, policy: Policy) -> str | None:
    """Return the type of a container; None if its annotation names none."""
    names = [kind.name for kind in policy.settings.types]
    if asked := spec.preferences.balloon:
        return asked if asked in names else None
    for kind in policy.settings.types:
        # The documents of these laws ask for names only.
        if any(spec.name in one.values for one in kind.expressions):
            return kind.name
        if any(fnmatch.fnmatchcase(spec.namespace, one) for one in kind.namespaces):
            return kind.name
    return "default"


def is_preserved(spec: ContainerSpec, policy: Policy) -> bool:
    # And for namespaces only.
    named = [one for one in policy.settings.preserve if spec.namespace in one.values]
    return spec.preferences.preserve_cpus or bool(named)


def scheduling_of(spec: ContainerSpec, policy: Policy) -> SchedulingClass | None:
    """Return the scheduling that a container, or its type, names."""
    name = spec.preferences.scheduling_class
    if not name and not is_preserved(spec, policy):
        kind = policy.settings.by_name[type_of(spec, policy) or "default"]
        name = kind.scheduling_class
    return policy.settings.scheduling_classes.get(name)


def could_take(spec: ContainerSpec, policy: Policy, state: State) -> bool:
    """Return whether a balloon of a container's type, or a new one, has room for it.

    Beside a request, CPUs of containers without one are free if these can go to
    reserved ones; and one without may be there itself.
    """
    kind = policy.settings.by_name.get(type_of(spec, policy) or "")
    if kind is None or kind.components:
        return False
    reserved = [one for one in state.balloons.values() if one.type == "reserved"]
    may_leave = any(cpus_of(one, state) for one in reserved if not one.within)
    if may_leave and makes_way(spec) and kind.max_cpus != 0:
        return True
    mine = [one for one in state.balloons.values() if one.type == kind.name]
    rooms = [(one, one.load) for one in mine if not one.within]
    free = len(idle(policy, state))
    if may_leave and spec.request:
        free += lent_cpus(kind.name, policy, state)
    sizes: list[tuple[int, int]] = [
        (load, _most(one, kind, free)) for one, load in rooms
    ]
    may_make = kind.max_balloons is None or len(rooms) < kind.max_balloons
    if may_make and free >= max(1, kind.min_cpus):
        sizes.append((0, _most(None, kind, free)))
    return any(size and load + spec.request <= 1000 * size for load, size in sizes)


def makes_way(spec: ContainerSpec) -> bool:
    return spec.request == 0 and spec.preferences.balloon == ""


def lent_cpus(but: str, policy: Policy, state: State) -> int:
    """Count the CPUs that balloons of other types have for containers that make way.

    Each keeps its minimum, as all balloons may be among those that always exist.
    """
    count = 0
    for one in state.balloons.values():
        kind = policy.settings.by_name[one.type]
        specs = [state.ledger.spec_of(key) for key in one.members]
        if one.within or one.parts or one.rooms or kind.cpus or not specs:
            continue
        if one.type not in (but, "reserved") and all(map(makes_way, specs)):
            count += len(one.cpus) - kind.min_cpus
    return count


def _most(balloon: Balloon | None, kind: BalloonType, free: int) -> int:
    """Return the largest size of a balloon, or of a new one."""
    if balloon and kind.cpus:
        return len(balloon.cpus)
    size = free + (len(balloon.cpus) if balloon else 0)
    return size if kind.max_cpus is None else min(size, kind.max_cpus)


def mates_with_room(spec: ContainerSpec, policy: Policy, state: State) -> set[str]:
    """Return the balloons with room that have a container of the same pod.

    None if its type prefers other CPUs, or has components.
    """
    kind = policy.settings.by_name.get(type_of(spec, policy) or "")
    if kind is None or kind.components or kind.group_by or kind.spread_pods:
        return set()
    ledger, free = state.ledger, len(idle(policy, state))
    return {
        name
        for name, one in state.balloons.items()
        if one.type == kind.name
        and any(ledger.spec_of(key).pod == spec.pod for key in one.members)
        and one.load + spec.request <= 1000 * _most(one, kind, free)
    }


def is_as_before(spec: ContainerSpec, old: Policy, new: Policy) -> bool:
    """Return whether two policies agree in all that affects a container."""
    if type_of(spec, old) != type_of(spec, new) or old.machine is not new.machine:
        return False
    if old.settings.available != new.settings.available:
        return False
    if is_preserved(spec, old) or is_preserved(spec, new):
        return False
    name = type_of(spec, old)
    return name is not None and _family(name, old) == _family(name, new)


def _family(name: str, policy: Policy) -> list[BalloonType]:
    """Return a type and those of its components, without their classes."""
    kind = policy.settings.by_name[name]
    below = (_family(one, policy) for one in kind.components)
    bare = msgspec.structs.replace(kind, scheduling_class="", cpu_class="")
    return [bare, *(one for family in below for one in family)]


def snapshot(state: State) -> Mapping[str, Any]:
    """Copy a state into values that cannot change later."""
    return {
        "ledger": dict(state.ledger.entries),
        "balloons": dict(state.balloons),
        "memberships": dict(state.memberships),
        "free": state.free,
        "memory": dict(state.memory.grants),
        "former_places": dict(state.former_places),
        "reserved_rooms": dict(state.reserved_rooms),
        "announced": dict(state.announced),
        "unsettled": state.unsettled,
    }
