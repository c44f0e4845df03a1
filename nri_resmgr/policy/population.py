"""Who is on a node: those who run, oldest first, and those who are gone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

import msgspec

from nri_resmgr.policy.decision import Reason, Rule
from nri_resmgr.policy.events import ContainerSpec, PodStopped, Removed, Synchronized
from nri_resmgr.policy.ledger import Ledger

Value = TypeVar("Value")


def oldest_first(specs: Iterable[ContainerSpec]) -> list[ContainerSpec]:
    """Sort containers by age, then id, so that placing them has one result.

    Of several with the same id the last one counts. Of several with the same slot,
    which a runtime can have after a crash, the youngest has it; the others come last
    and have none: they go on where there is room, and nobody succeeds them.
    """
    ordered = sorted({spec.id: spec for spec in specs}.values(), key=_age)
    slots = {(spec.pod, spec.slot): spec.id for spec in ordered if spec.slot}
    if len(slots) == sum(bool(spec.slot) for spec in ordered):
        return ordered
    left = [one for one in ordered if one.slot and slots[one.pod, one.slot] != one.id]
    ids = {one.id for one in left}
    rest = [spec for spec in ordered if spec.id not in ids]
    return rest + [msgspec.structs.replace(one, slot="") for one in left]


def of_pods_there(
    slots: Mapping[tuple[str, str], Value], event: Synchronized
) -> dict[tuple[str, str], Value]:
    """Keep what belongs to the slots of pods that are there, as far as anybody told."""
    if event.pods is None:
        return dict(slots)
    pods = event.pods | {spec.pod for spec in event.specs}
    return {slot: value for slot, value in slots.items() if slot[0] in pods}


def gone_since(ledger: Ledger, event: Synchronized) -> Iterator[ContainerSpec]:
    """Go through the containers with a slot that have gone without our hearing."""
    there = {spec.id for spec in event.specs}
    for key, entry in ledger.entries.items():
        if entry.spec.slot and key not in there:
            yield entry.spec


def gone_with(event: Removed | PodStopped, ledger: Ledger) -> tuple[str, ...]:
    """Return the ids of those who are gone, without having stopped, by an event."""
    if isinstance(event, PodStopped):
        return ledger.in_pod(event.pod)
    return (event.id,) if event.id in ledger else ()


def reasons_of_loss(event: Removed | PodStopped, ledger: Ledger) -> tuple[Reason, ...]:
    """Say of each who is gone by an event that it is, or that nobody knew it."""
    gone = gone_with(event, ledger)
    if isinstance(event, Removed) and not gone:
        return (Reason(Rule.UNKNOWN_CONTAINER, event.id),)
    return tuple(Reason(Rule.RELEASED, one, ledger.spec_of(one).title) for one in gone)


def _age(spec: ContainerSpec) -> tuple[int, str]:
    return spec.created, spec.id
