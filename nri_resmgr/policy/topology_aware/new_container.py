"""Placement of new containers: reserved and former places first, then any pool."""

from __future__ import annotations

from functools import partial

import msgspec
from msgspec.structs import replace

from nri_resmgr.policy.advice import Change
from nri_resmgr.policy.errors import OnFailure
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.rules import Rule
from nri_resmgr.policy.topology_aware.advice import advise, node_for
from nri_resmgr.policy.topology_aware.claims import claim_titles
from nri_resmgr.policy.topology_aware.demand import AT_ROOT, CpuKind, demand_of
from nri_resmgr.policy.topology_aware.exclusive_settings import check_class_requests
from nri_resmgr.policy.topology_aware.place import FormerGrant, PoolPlacement, place
from nri_resmgr.policy.topology_aware.settings import TopologyAwareSettings
from nri_resmgr.policy.topology_aware.state import TopologyAwareState
from nri_resmgr.policy.whole_pods import (
    DeviatingContainer,
    PodPlacement,
    check_announced,
    deviation,
)
from nri_resmgr.values import PolicyError


class NewPlacement(msgspec.Struct, frozen=True):
    """A place of a new container, and the state to put it in.

    Attributes:
        left: Without the place that was reserved for it.
    """

    left: TopologyAwareState
    found: PoolPlacement


def place_new(
    spec: ContainerSpec, state: TopologyAwareState, settings: TopologyAwareSettings
) -> NewPlacement:
    """Find a place for a new container.

    Raises:
        PolicyError: There is none, with advice, or its annotations cannot be obeyed.
    """
    return _place_new(spec, state, settings, is_trial=False)


def _place_new(
    spec: ContainerSpec,
    state: TopologyAwareState,
    settings: TopologyAwareSettings,
    *,
    is_trial: bool,
) -> NewPlacement:
    left, slot = state, (spec.pod, spec.name)
    demand = demand_of(spec, settings)
    is_strict = settings.place_pods is PodPlacement.STRICT
    has_claim = demand.kind is CpuKind.CLAIMED
    if is_strict and not has_claim and demand.kind not in AT_ROOT:
        check_announced(spec, left.announced)
    offers = []
    if reserved := left.reserved_places.get(slot):
        zone = left.memory.zone_of(reserved.id)
        offers.append(FormerGrant(left.grants[reserved.id], zone))
        left = left.release_places(slot)
    if former := left.former_places.get((spec.pod, spec.slot)):
        # The predecessor may have been resized; a restart undoes that.
        grant = replace(former, fraction=demand.fraction)
        offers.append(FormerGrant(grant))
    advice = None if is_trial else partial(_advise, spec, state, settings)
    found = place(demand, left.view(settings), offers, advice)
    if has_claim and not found.detail:
        found = replace(found, detail=claim_titles(spec.claims, state))
    if spec.preferences.cpu_class or spec.preferences.irq:
        check_class_requests(spec, found.grant, settings.cpu_classes)
    if reserved and found.rule is not Rule.OLD_PLACE and not has_claim:
        if is_strict:
            raise DeviatingContainer(spec.title)
        found = replace(found, detail=deviation(spec.title))
    return NewPlacement(left, found)


def _advise(
    spec: ContainerSpec,
    state: TopologyAwareState,
    settings: TopologyAwareSettings,
    error: PolicyError,
) -> None:
    def place_changed(change: Change) -> NewPlacement:
        if change.settings and settings.on_failure is OnFailure.SHARED:
            raise error
        # A place on shared CPUs for lack of another one is no help.
        how = OnFailure.SHARED if change.settings else OnFailure.REFUSE
        changed = replace(settings, on_failure=how)
        node = node_for(change, state, spec.pod)
        return _place_new(change.edit(spec), node, changed, is_trial=True)

    advise(error, spec, place_changed)
