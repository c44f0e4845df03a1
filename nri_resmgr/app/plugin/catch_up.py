"""Synchronization: containers that run, and resizes while there was no session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Final

import msgspec

from nri_resmgr.app.observers.observer import PolicyDecision
from nri_resmgr.app.plugin.pod_overhead import PodOverheads
from nri_resmgr.log import Logger
from nri_resmgr.policy.decision import PinUpdate
from nri_resmgr.policy.events import ContainerSpec, Event, Pin, Synchronized, Updated
from nri_resmgr.policy.ledger import Entry
from nri_resmgr.values import PolicyError

log = Logger(__name__)

_AMOUNTS: Final = ("request", "limit", "memory_request", "memory_limit", "hugepages")
_amounts_of: Final = attrgetter(*_AMOUNTS)


def catch_up(
    specs: Sequence[ContainerSpec],
    pods: frozenset[str],
    known: Callable[[str], Entry | None],
    handle: Callable[[Event], PolicyDecision],
    overheads: PodOverheads,
) -> tuple[PinUpdate, ...]:
    """Place all running containers, then decide resizes that were missed.

    First all containers get their previous grants. The grant of a resized one is too
    small, or too large: placed in one step, it would lose its place. The overheads of
    pods come last; those that a checkpoint has are accounted by then.

    Returns:
        The updates of all decisions, one for each container.
    """
    before = [_as_known(spec, known) for spec in specs]
    first = handle(Synchronized(tuple(before), pods))
    pins = {one.container: one.pin for one in first.updates}
    for spec, old in zip(specs, before, strict=True):
        if old is not spec:
            _resize(spec, handle, pins)
    for event in overheads.events():
        _add(handle(event).updates, pins)
    return tuple([PinUpdate(key, pin) for key, pin in pins.items()])


def _as_known(
    spec: ContainerSpec, known: Callable[[str], Entry | None]
) -> ContainerSpec:
    if (entry := known(spec.id)) is None:
        return spec
    old = entry.spec
    if _amounts_of(spec) == _amounts_of(old):
        return spec
    return msgspec.structs.replace(
        spec, **{name: getattr(old, name) for name in _AMOUNTS}
    )


def _resize(
    spec: ContainerSpec,
    handle: Callable[[Event], PolicyDecision],
    pins: dict[str, Pin],
) -> None:
    try:
        decision = handle(Updated(spec))
    except PolicyError as error:
        # The runtime has resized it already: it keeps its previous grant.
        log.warning(
            "resize.refused", container=spec.id, title=spec.title, why=str(error)
        )
        return
    resized = (PinUpdate(spec.id, decision.pin),) if decision.pin else ()
    _add((*resized, *decision.updates), pins)


def _add(updates: Sequence[PinUpdate], pins: dict[str, Pin]) -> None:
    for one in updates:
        earlier = pins.get(one.container)
        pins[one.container] = one.pin.over(earlier) if earlier else one.pin
