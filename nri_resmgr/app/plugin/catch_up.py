"""Synchronization: containers that run, and resizes while there was no session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from nri_resmgr.app.observers.observer import PolicyDecision
from nri_resmgr.log import Logger
from nri_resmgr.policy.decision import PinUpdate
from nri_resmgr.policy.events import ContainerSpec, Event, Pin, Synchronized, Updated
from nri_resmgr.policy.ledger import Entry
from nri_resmgr.values import PolicyError

log = Logger(__name__)

_AMOUNTS: Final = ("request", "limit", "memory_request", "memory_limit", "hugepages")


def catch_up(
    specs: Sequence[ContainerSpec],
    pods: frozenset[str],
    known: Callable[[str], Entry | None],
    handle: Callable[[Event], PolicyDecision],
) -> tuple[PinUpdate, ...]:
    """Place all running containers, then decide resizes that were missed.

    First all containers get their previous grants. The grant of a resized one is too
    small, or too large: placed in one step, it would lose its place.

    Args:
        specs: All running containers.
        pods: The ids of all pods.
        known: Finds a container as it was at its last event.
        handle: Decides an event.

    Returns:
        The updates of all decisions, one for each container.
    """
    before = [_as_known(spec, known) for spec in specs]
    first = handle(Synchronized(tuple(before), pods))
    pins = {one.container: one.pin for one in first.updates}
    for spec, old in zip(specs, before, strict=True):
        if old is not spec:
            _resize(spec, handle, pins)
    return tuple([PinUpdate(key, pin) for key, pin in pins.items()])


def _as_known(
    spec: ContainerSpec, known: Callable[[str], Entry | None]
) -> ContainerSpec:
    if (entry := known(spec.id)) is None:
        return spec
    old = entry.spec
    if all(getattr(spec, name) == getattr(old, name) for name in _AMOUNTS):
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
    for one in (*resized, *decision.updates):
        earlier = pins.get(one.container)
        pins[one.container] = one.pin.over(earlier) if earlier else one.pin
