"""Advice in refusals: changes that would help, each tried before it is named."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Protocol, TypeAlias, TypeVar

import msgspec
from msgspec.structs import replace

from nri_resmgr.policy.decision import Decision
from nri_resmgr.policy.errors import OnFailure
from nri_resmgr.policy.events import (
    ContainerSpec,
    Created,
    Event,
    PodCreated,
    Updated,
)
from nri_resmgr.policy.ledger import KnowsContainers
from nri_resmgr.policy.views import Reservation
from nri_resmgr.policy.whole_pods import PodPlacement
from nri_resmgr.values import ONE_CPU, MilliCpus, PolicyError, QosClass
from nri_resmgr.values.counts import count_text

NOTHING_HELPS: Final = "no single change of it helps on this node"

StateT = TypeVar("StateT", bound=KnowsContainers)
Edit: TypeAlias = Callable[[ContainerSpec], ContainerSpec]


class TriedPolicy(Protocol[StateT]):
    """What is needed of a policy to try changes."""

    settings: Any

    def answer(self, state: StateT, event: Event) -> Decision[StateT]:
        """Decide without advice in a refusal."""

    def lose(self, state: StateT, containers: tuple[str, ...]) -> StateT:
        """Drop containers."""

    def close(self, state: StateT, pod: str) -> StateT:
        """Drop what is reserved for a pod."""

    def reservations(self, state: StateT) -> tuple[Reservation, ...]:
        """Return the places that are reserved for containers."""

    def with_settings(self, settings: Any) -> TriedPolicy[StateT]:
        """Return the policy of the same machine with other settings."""


def unchanged(spec: ContainerSpec) -> ContainerSpec:
    """Return the container: the change is one of the node or of its settings."""
    return spec


class Change(msgspec.Struct, frozen=True):
    """A change after which a refused request may be accepted.

    Attributes:
        text: What to do, as an imperative.
        edit: Changes the container, or each of a pod.
        stops: Whether all other containers are stopped.
        settings: Fields of the settings that it replaces.
    """

    text: str
    edit: Edit = unchanged
    stops: bool = False
    settings: Mapping[str, Any] = {}


ONE_BY_ONE: Final = Change(
    'set "placePods: soft" to place its containers one by one',
    settings={"place_pods": PodPlacement.SOFT},
)


def accepts(
    policy: TriedPolicy[StateT], state: StateT, event: Event, change: Change
) -> bool:
    """Return whether a policy accepts a request after a change of it or of the node.

    A place on shared CPUs for lack of another one is no help, unless it is the change.
    """
    settings = dict(change.settings)
    if hasattr(policy.settings, "on_failure"):
        settings = {"on_failure": OnFailure.REFUSE, **settings}
    changed = replace(policy.settings, **settings)
    if changed != policy.settings:
        policy = policy.with_settings(changed)
    if change.stops:
        state = _alone(policy, state, event)
    try:
        policy.answer(state, _edited(event, change.edit))
    except PolicyError:
        return False
    return True


def _edited(event: Event, edit: Edit) -> Event:
    match event:
        case PodCreated():
            return replace(event, expected=tuple(map(edit, event.expected)))
        case Created() | Updated():
            return replace(event, spec=edit(event.spec))
        case _:
            return event


def _alone(policy: TriedPolicy[StateT], state: StateT, event: Event) -> StateT:
    """Return the state as if all had stopped but the container of an event.

    Of what is reserved only the places of its pod are left.
    """
    pod = own = ""
    match event:
        case PodCreated():
            pod = event.pod
        case Created():
            pod = event.spec.pod
        case Updated():
            pod, own = event.spec.pod, event.spec.id
    reserved = policy.reservations(state)
    left = policy.lose(state, tuple(key for key in state.ledger.entries if key != own))
    for other in dict.fromkeys(one.spec.pod for one in reserved):
        if other != pod:
            left = policy.close(left, other)
    return left


def stop_or_fewer(
    stop: Change, event: Event, accepts: Callable[[Change], bool]
) -> Iterator[str]:
    """Yield that others have to stop, or where that does not help, to ask for less."""
    if accepts(stop):
        yield stop.text
    elif isinstance(event, Created | Updated) and (
        most := most_cpus(event.spec, accepts)
    ):
        yield at_most(most).text


def most_cpus(spec: ContainerSpec, accepts: Callable[[Change], bool]) -> int:
    """Return the most whole CPUs, fewer than now, that it gets; 0 if it gets none."""
    fewer = range(1, -(-spec.request // ONE_CPU))
    return most_accepted(fewer, lambda count: accepts(at_most(count)))


def most_accepted(counts: range, accepts: Callable[[int], bool]) -> int:
    """Return the largest of some counts, from 1, that is accepted; 0 for none."""
    found = bisect_left(counts, 1, key=lambda count: not accepts(count))
    # A pod can have announced one amount, which is then the only one.
    return found if found and accepts(found) else 0


def at_most(count: int) -> Change:
    """Return the change to fewer CPUs."""
    return Change(f"ask for at most {count_text(count, 'CPU')}", with_cpus(count))


def with_cpus(count: int) -> Edit:
    """Return the change of a container to a number of whole CPUs."""
    request = MilliCpus(ONE_CPU * count)

    def edit(spec: ContainerSpec) -> ContainerSpec:
        limit = request if spec.qos is QosClass.GUARANTEED else spec.limit
        return replace(spec, request=request, limit=limit)

    return edit


def sentence(helps: Iterable[str]) -> str:
    """Return the part of a refusal that says what would help; each suffices.

    >>> sentence(["stop containers", "ask for less"])
    'to help, stop containers, or ask for less'
    """
    texts = ", or ".join(helps)
    return f"to help, {texts}" if texts else NOTHING_HELPS
