"""Extended resources of the node: what it could grant, and what it can grant now.

The policy itself is asked, by containers that are tried out and dropped: whatever keeps
it from granting CPUs, such as the requests of containers that share them, counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec

from nri_resmgr.app.classes.placed import rdt_choice
from nri_resmgr.app.observers.policy_in_force import PolicyInForce
from nri_resmgr.classes.choice import ClassRequest
from nri_resmgr.config import PolicyConfig
from nri_resmgr.policy.events import (
    ContainerSpec,
    Created,
    RequestOrigin,
)
from nri_resmgr.policy.ledger import KnowsContainers
from nri_resmgr.policy.pool_request import NO_POOL_REQUEST, PoolRequest
from nri_resmgr.policy.preferences import NO_PREFERENCES, Preferences
from nri_resmgr.policy.views import ViewedPolicy
from nri_resmgr.topology import Machine
from nri_resmgr.values import MilliCpus, PolicyError, QosClass

DEVICE_PLUGIN: Final = "device-plugin"
NODE_STATUS: Final = "node-status"

EXCLUSIVE_CPUS: Final = "resource-policy.nri.io/exclusive-cpus"
EXCLUSIVE_LISTS: Final = "cmk.intel.com/exclusive-cores"
"""Of CMK and CRI Resource Manager: lists of exclusive pools."""

LISTS_VARIABLE: Final = "CMK_NUM_CORES"
"""Of CMK's webhook; `nri_resmgr.app.requests.static_pools` reads it."""

_RDT: Final = "rdtclass.resource-policy.nri.io"
# Those of nri-plugins.
_CPU_CLASS: Final = "cpuclass.resource-policy.nri.io"
_BALLOON_CLASS: Final = "cpuclass.balloons.nri.io"

_STATIC_POOLS: Final = "StaticPoolsPolicy"
_BALLOONS: Final = "BalloonsPolicy"
_TOPOLOGY_AWARE: Final = "TopologyAwarePolicy"

_TRIED: Final = "container-that-is-tried-out"

_Policy = ViewedPolicy[KnowsContainers]


class Amount(msgspec.Struct, frozen=True):
    """An extended resource of the node.

    Attributes:
        name: As in requests of containers.
        by: The way to the cluster: `DEVICE_PLUGIN` or `NODE_STATUS`.
        capacity: What the node grants if it is empty.
        value: What it can grant now, with what it has granted to containers that
            requested this resource.
    """

    name: str
    by: str
    capacity: int
    value: int


class PolicyNow(msgspec.Struct, frozen=True):
    """The policy in force at one moment: nothing in it changes any more."""

    config: PolicyConfig
    machine: Machine
    policy: _Policy
    state: KnowsContainers


class _Trial(msgspec.Struct, frozen=True):
    """What is tried out: containers that differ in their number of CPUs or lists.

    Attributes:
        preferences: Of the container.
        pool: A pool of CPU lists; empty to try CPUs.
        is_own: Whether the CPUs have to be its own.
    """

    preferences: Preferences = NO_PREFERENCES
    pool: str = ""
    is_own: bool = True

    def spec(self, count: int) -> ContainerSpec:
        cpus = MilliCpus(1000 * (1 if self.pool else count))
        asked = NO_POOL_REQUEST
        if self.pool:
            asked = PoolRequest(pool=self.pool, lists=str(count))
        return ContainerSpec(
            id=_TRIED,
            pod=_TRIED,
            title=_TRIED,
            name=_TRIED,
            slot=_TRIED,
            namespace=_TRIED,
            qos=QosClass.GUARANTEED,
            request=cpus,
            limit=cpus,
            preferences=self.preferences,
            pool_request=asked,
        )


def now_of(subject: PolicyInForce) -> PolicyNow:
    """Return the policy in force at this moment."""
    return PolicyNow(subject.config, subject.machine, subject.policy, subject.state)


def amounts_of(now: PolicyNow) -> tuple[Amount, ...]:
    """Return the extended resources of the node, in the order of the document."""
    return tuple(_amounts(now))


def count_variable(name: str) -> str:
    """Return a variable that takes the number of a container's units, if any."""
    return LISTS_VARIABLE if name == EXCLUSIVE_LISTS else ""


def _amounts(now: PolicyNow) -> Iterator[Amount]:
    config = now.config
    if config.publish.exclusive_cpus:
        if config.kind == _STATIC_POOLS:
            # The node's number is that of all exclusive pools.
            trials = [[_Trial(pool=name)] for name in _exclusive_pools(now)]
            yield _amount(now, EXCLUSIVE_LISTS, trials, _lists_of(now))
        else:
            yield _amount(now, EXCLUSIVE_CPUS, [[_Trial()]], _own_cpus(now))
    domain = _BALLOON_CLASS if config.kind == _BALLOONS else _CPU_CLASS
    for name in _published_classes(config):
        yield _amount(
            now,
            f"{domain}/{name}",
            [_trials_of_class(config, name)],
            _in_class(now, name),
        )
    for name, most in config.publish.rdt_classes.items():
        yield _rdt_amount(now, f"{_RDT}/{name}", name, most)


def _amount(
    now: PolicyNow,
    name: str,
    trials: Sequence[Sequence[_Trial]],
    granted_to: Callable[[ContainerSpec], int],
) -> Amount:
    """Return a resource that the policy grants.

    Args:
        now: The policy.
        name: Of the resource.
        trials: For each part of the resource, of which the largest one counts.
        granted_to: Returns what a container has of it.
    """
    empty, present = now.policy.start(), now.state
    capacity = sum(_most_of(now, empty, one) for one in trials)
    free = sum(_most_of(now, present, one) for one in trials)
    requested = sum(
        min(_requested(now, name, spec, granted_to), granted_to(spec))
        for spec in _specs(now)
    )
    value = min(capacity, requested + free)
    return Amount(name, now.config.publish.by, capacity, value)


def _most_of(now: PolicyNow, state: KnowsContainers, trials: Sequence[_Trial]) -> int:
    return max((_grantable(now, state, one) for one in trials), default=0)


def _requested(
    now: PolicyNow,
    name: str,
    spec: ContainerSpec,
    granted_to: Callable[[ContainerSpec], int],
) -> int:
    """Return how much of a resource a container has requested."""
    if count := spec.extended.get(name, 0):
        return count
    # A device plugin writes the number into the environment, but without one only a
    # source of requests knows it: a container that got some is taken to have requested
    # it, which the scheduler counts, too.
    is_unknown = spec.own_source is RequestOrigin.OCI
    if is_unknown and now.config.publish.by == NODE_STATUS:
        return granted_to(spec)
    return 0


def _grantable(now: PolicyNow, state: KnowsContainers, trial: _Trial) -> int:
    """Return the most that one more container would get in a state."""
    low, high = 0, len(now.machine.online)
    while low < high:
        middle = (low + high + 1) // 2
        if _fits(now.policy, state, trial, middle):
            low = middle
        else:
            high = middle - 1
    return low


def _fits(policy: _Policy, state: KnowsContainers, trial: _Trial, count: int) -> bool:
    try:
        after = policy.decide(state, Created(trial.spec(count))).state
    except PolicyError:
        return False
    if trial.pool:
        return True
    own = policy.exclusive_parts(after).get(_TRIED)
    return not trial.is_own or (own is not None and len(own) >= count)


def _trials_of_class(config: PolicyConfig, name: str) -> list[_Trial]:
    if config.kind == _BALLOONS:
        # CPUs of a balloon are of its class, whoever shares them.
        return [
            _Trial(Preferences(balloon=one), is_own=False)
            for one in config.types_of_cpu_class(name)
        ]
    return [_Trial(Preferences(cpu_class=ClassRequest(name)))]


def _published_classes(config: PolicyConfig) -> tuple[str, ...]:
    is_counted = config.kind in (_BALLOONS, _TOPOLOGY_AWARE)
    return config.published_classes if is_counted else ()


def exclusive_cpus_of(now: PolicyNow) -> int:
    """Return how many CPUs one container of the empty node could have for itself."""
    return _grantable(now, now.policy.start(), _Trial())


def _exclusive_pools(now: PolicyNow) -> list[str]:
    pools = now.policy.pools(now.policy.start())
    return [pool.name for pool in pools if pool.kind == "exclusive"]


def _lists_of(now: PolicyNow) -> Callable[[ContainerSpec], int]:
    pools = now.policy.pools(now.state)
    inside = frozenset(
        key for pool in pools if pool.kind == "exclusive" for key in pool.containers
    )

    def granted(spec: ContainerSpec) -> int:
        if spec.id not in inside:
            return 0
        text = spec.pool_request.lists.strip()
        return spec.extended.get(EXCLUSIVE_LISTS, int(text) if text.isdecimal() else 1)

    return granted


def _own_cpus(now: PolicyNow) -> Callable[[ContainerSpec], int]:
    own = now.policy.exclusive_parts(now.state)
    return lambda spec: len(own.get(spec.id, ()))


def _in_class(now: PolicyNow, name: str) -> Callable[[ContainerSpec], int]:
    """Return a reader of the number of CPUs of a class that a container requests."""
    cpus = now.policy.host_use(now.state).cpu_classes.get(name)
    pins = now.policy.pins(now.state)

    def granted(spec: ContainerSpec) -> int:
        pin = pins.get(spec.id)
        if not cpus or pin is None or not pin.cpus or not pin.cpus <= cpus:
            return 0
        return -(-spec.request // 1000)

    return granted


def _rdt_amount(now: PolicyNow, name: str, group: str, most: int) -> Amount:
    use, by = now.config.rdt, now.config.publish.by
    if use is None:
        return Amount(name, by, most, 0)
    members = [
        spec
        for spec in _specs(now)
        if (choice := rdt_choice(spec, use, now.policy, now.state))
        and choice.name == group
    ]
    others = sum(not _requested(now, name, spec, lambda _: 1) for spec in members)
    return Amount(name, by, most, max(0, most - others))


def _specs(now: PolicyNow) -> Iterator[ContainerSpec]:
    return (entry.spec for entry in now.state.ledger.entries.values())
