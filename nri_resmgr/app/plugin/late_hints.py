"""Hints of devices that become known while their container already runs."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Final, TypeVar

from msgspec.structs import replace

from nri_resmgr.policy.decision import Decision, PinUpdate, Reason, Timer
from nri_resmgr.policy.events import ContainerSpec, Created, Event, Stopped, Updated
from nri_resmgr.policy.ledger import KnowsContainers
from nri_resmgr.policy.rules import Rule
from nri_resmgr.policy.views import ViewedPolicy
from nri_resmgr.topology.hints import Hint
from nri_resmgr.values import CpuSet, PolicyError

StateT = TypeVar("StateT", bound=KnowsContainers)

_HINTS: Final = "hints"  # in `Policy.obeys`


def follow_hints(
    policy: ViewedPolicy[StateT], state: StateT, spec: ContainerSpec
) -> Decision[StateT]:
    """Decide on a running container whose hints have become known.

    It moves only if it is nearer to its devices then: it is placed as a new container
    would be, in a trial, and stays where it is if that is no nearer or fails.

    Args:
        policy: The policy in force.
        state: With the container, still without the hints.
        spec: The container with them.

    Raises:
        PolicyError: The policy refuses the container as it is.
    """
    kept = policy.decide(state, Updated(spec))
    devices = [one for one in spec.hints if one.is_pod_resource]
    if _HINTS not in policy.obeys or spec.preferences.cold_start:
        return kept
    before = _nearness(policy.pins(kept.state)[spec.id].cpus, devices)
    if before is None or before == 1:
        return _with_detail(kept, spec, f"it is near {_names(devices)} already")
    try:
        moved = _placed_anew(policy, kept.state, spec)
    except PolicyError as error:
        return _with_detail(kept, spec, f"not nearer to its devices: {error}")
    if moved is None:
        return _with_detail(kept, spec, "elsewhere it would have to share CPUs")
    after = _nearness(policy.pins(moved.state)[spec.id].cpus, devices)
    if after is None or after <= before:
        return _with_detail(kept, spec, f"no place is nearer to {_names(devices)}")
    return moved


def _placed_anew(
    policy: ViewedPolicy[StateT], state: StateT, spec: ContainerSpec
) -> Decision[StateT] | None:
    sent = state.ledger.last_sent_to(spec.id)
    # Without a slot, as its former place would be offered to it first.
    bare = replace(spec, slot="")
    events: tuple[Event, ...] = (
        Updated(bare),
        Stopped(spec.id),
        Created(replace(bare, present=sent)),
        Updated(spec),
    )
    updates: dict[str, None] = {}
    reasons: dict[str, Reason] = {}
    timers: list[Timer] = []
    for event in events:
        decision = policy.decide(state, event)
        state = decision.state
        timers += decision.timers
        updates |= dict.fromkeys(one.container for one in decision.updates)
        for reason in decision.reasons:
            # The last one of its own is that of a resize that changes nothing.
            if reason.container != spec.id or isinstance(event, Created):
                reasons[reason.container] = reason
    pins = policy.pins(state)
    own = reasons.pop(spec.id)
    if own.rule is Rule.FELL_BACK:
        return None
    devices = [one for one in spec.hints if one.is_pod_resource]
    own = replace(own, rule=Rule.HINTED, detail=f"it is near {_names(devices)}")
    updates.pop(spec.id, None)
    return Decision(
        state,
        (own, *reasons.values()),
        pins[spec.id],
        tuple(PinUpdate(key, pins[key]) for key in updates if key in pins),
        timers=tuple(timers),
    )


def _nearness(cpus: CpuSet, devices: list[Hint]) -> Fraction | None:
    """Return the part of CPUs that is near any device; None for no CPUs or devices."""
    near = CpuSet.union(one.cpus for one in devices)
    if not cpus or not near:
        return None
    return Fraction(len(cpus & near), len(cpus))


def _with_detail(
    decision: Decision[StateT], spec: ContainerSpec, why: str
) -> Decision[StateT]:
    reasons = tuple(
        replace(one, detail=why) if one.container == spec.id else one
        for one in decision.reasons
    )
    return replace(decision, reasons=reasons)


def _names(devices: list[Hint]) -> str:
    found: Mapping[str, None] = {
        f"{one.provider.partition(':')[2]} (node {one.nodes})": None for one in devices
    }
    return ", ".join(found)
