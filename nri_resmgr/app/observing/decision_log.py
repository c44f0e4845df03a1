"""One log line per decision, with its reasons as fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from nri_resmgr.app.observers.after_reply import Steps
from nri_resmgr.app.observers.event_kinds import EventKind
from nri_resmgr.app.observers.observer import DecisionObserver, PolicyDecision
from nri_resmgr.log import Logger
from nri_resmgr.policy.decision import Reason
from nri_resmgr.policy.events import (
    ClaimPrepared,
    ClaimReturned,
    ColdStartEnded,
    Created,
    Event,
    PodCreated,
    PodOverhead,
    PodStopped,
    Rebalance,
    Removed,
    Started,
    Stopped,
    Synchronized,
    Updated,
)
from nri_resmgr.policy.rules import Rule

log = Logger(__name__)

EVENT_NAMES: Final[dict[type, EventKind]] = {
    PodCreated: "pod.placed",
    PodOverhead: "pod.overhead",
    Created: "container.placed",
    Started: "container.started",
    ColdStartEnded: "cold-start.ended",
    Updated: "container.updated",
    Stopped: "container.released",
    Removed: "container.removed",
    PodStopped: "pod.removed",
    ClaimPrepared: "claim.prepared",
    ClaimReturned: "claim.returned",
    Rebalance: "node.rebalanced",
    Synchronized: "node.synchronized",
}


# Reasons of others than the container or pod that the event is about.
_OTHERS: Final = (
    *(Rule.NOW_FITS, Rule.PLACE_RESERVED, Rule.PLACE_RETURNED),
    Rule.POD_OVERHEAD,
)
_WRITERS: Final = {Rule.UNKNOWN_CONTAINER: log.debug, Rule.FELL_BACK: log.warning}


class DecisionLog(DecisionObserver):
    """Logs a line per decision; decisions on unknown containers at debug.

    Args:
        dry_run: Whether to mark all lines as those of a dry run.
    """

    def __init__(self, *, dry_run: bool) -> None:
        self._fields = {"dry_run": True} if dry_run else {}

    def decided(self, event: Event, decision: PolicyDecision) -> Steps | None:
        """Log a decision with its reasons."""
        name = EVENT_NAMES[type(event)]
        fields = {"updates": len(decision.updates), **self._fields}
        if isinstance(event, Synchronized):
            rules = Counter(reason.rule.value for reason in decision.reasons)
            log.info(name, containers=rules.total(), rules=dict(rules), **fields)
            return _log_each(decision.reasons)
        if decision.reasons:
            _log_decision(name, decision, fields)
        return None


def _log_decision(
    name: str, decision: PolicyDecision, fields: Mapping[str, object]
) -> None:
    reasons = decision.reasons
    others = [
        reason
        for place, reason in enumerate(reasons)
        if reason.rule in _OTHERS or (place and reason.rule is Rule.FELL_BACK)
    ]
    own = [reason for reason in reasons if reason not in others]
    if len(own) == 1:
        _log_reason(name, own[0], fields)
    elif own:
        log.info(name, containers=[reason.container for reason in own], **fields)
    for reason in others:
        about = _fields_of(reason)
        match reason.rule:
            # They had fallen back, and this decision left room for their requests.
            case Rule.NOW_FITS:
                log.info("container.now-fits", **about)
            case Rule.PLACE_RESERVED:
                log.info("place.reserved", **about)
            case Rule.PLACE_RETURNED:
                log.info("place.returned", **about)
            case Rule.POD_OVERHEAD:
                log.info("pod.overhead", **about)
            case _:
                log.warning("container.fell-back", **about)


def _log_reason(name: str, reason: Reason, fields: Mapping[str, object]) -> None:
    if reason.rule is Rule.UNKNOWN_CONTAINER and not log.is_debugged:
        return  # every removal follows a stop: half of all decisions
    write = _WRITERS.get(reason.rule, log.info)
    write(name, **_fields_of(reason), **fields)


def _log_each(reasons: tuple[Reason, ...]) -> Iterator[None]:
    for reason in reasons:
        if reason.rule is Rule.FELL_BACK:
            log.warning("container.fell-back", **_fields_of(reason))
        elif log.is_debugged:
            log.debug("container.adopted", **_fields_of(reason))
        else:
            continue
        yield


def _fields_of(reason: Reason) -> dict[str, object]:
    fields: dict[str, object] = {
        "container": reason.container,
        "title": reason.title,
        "rule": reason.rule.value,
        "cpus": str(reason.cpus),
        "mems": str(reason.mems),
        "pool": reason.pool,
        "decided": reason.decided,
        "detail": str(reason.detail),
        "tried": "; ".join(f"{pool}: {why}" for pool, why in reason.tried),
        "source": reason.source,
    }
    return {key: value for key, value in fields.items() if value}
