"""Who is on a node: those who run, oldest first, and those who are gone."""

from __future__ import annotations

from collections.abc import Iterable

from nri_resmgr.policy.decision import Reason, Rule
from nri_resmgr.policy.events import ContainerSpec, PodStopped, Removed
from nri_resmgr.policy.ledger import Ledger


def oldest_first(specs: Iterable[ContainerSpec]) -> list[ContainerSpec]:
    """Sort containers by age, then id, so that placing them has one result.

    Of several with the same id the last one counts.
    """
    return sorted({spec.id: spec for spec in specs}.values(), key=_age)


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
