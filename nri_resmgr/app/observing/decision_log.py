"""One log line per decision, with its reasons as fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

from nri_resmgr.app.observers.observer import DecisionObserver, PolicyDecision
from nri_resmgr.log import Logger
from nri_resmgr.policy.decision import Reason, Rule
from nri_resmgr.policy.events import (
    ColdStartEnded,
    Created,
    Event,
    PodCreated,
    PodStopped,
    Removed,
    Started,
    Stopped,
    Synchronized,
    Updated,
)
from nri_resmgr.values import ResmgrError

log = Logger(__name__)

EVENT_NAMES: Final[dict[type, str]] = {
    PodCreated: "pod.placed",
    Created: "container.placed",
    Started: "container.started",
    ColdStartEnded: "cold-start.ended",
    Updated: "container.updated",
    Stopped: "container.released",
    Removed: "container.removed",
    PodStopped: "pod.removed",
    Synchronized: "node.synchronized",
}


class DecisionLog(DecisionObserver):
    """Logs a line per decision; decisions on unknown containers at debug.

    Args:
        dry_run: Whether to mark all lines as those of a dry run.
    """

    def __init__(self, *, dry_run: bool) -> None:
        self._fields = {"dry_run": True} if dry_run else {}

    def decided(self, event: Event, decision: PolicyDecision) -> None:
        """Log a decision with its reasons."""
        name = EVENT_NAMES[type(event)]
        fields = {"updates": len(decision.updates), **self._fields}
        if isinstance(event, Synchronized):
            rules = Counter(reason.rule.value for reason in decision.reasons)
            log.info(name, containers=rules.total(), rules=dict(rules), **fields)
            _log_each(decision.reasons)
        elif decision.reasons:
            _log_decision(name, decision, fields)

    def refused(self, title: str, error: ResmgrError) -> None:
        """Log a refusal of a dry run; the stub logs real ones with their reply."""
        if self._fields:
            log.warning("request.refused", title=title, why=str(error), **self._fields)


def _log_decision(
    name: str, decision: PolicyDecision, fields: Mapping[str, object]
) -> None:
    if len(decision.reasons) == 1:
        (reason,) = decision.reasons
        if reason.rule is Rule.UNKNOWN_CONTAINER and not log.is_debugged:
            return  # every removal follows a stop: half of all decisions
        _level_of(reason)(name, **_fields_of(reason), **fields)
    else:
        ids = [reason.container for reason in decision.reasons]
        log.info(name, containers=ids, **fields)


def _log_each(reasons: tuple[Reason, ...]) -> None:
    for reason in reasons:
        if reason.rule is Rule.FELL_BACK:
            log.warning("container.fell-back", **_fields_of(reason))
        elif log.is_debugged:
            log.debug("container.adopted", **_fields_of(reason))


def _level_of(reason: Reason) -> Callable[..., None]:
    match reason.rule:
        case Rule.UNKNOWN_CONTAINER:
            return log.debug
        case Rule.FELL_BACK:
            return log.warning
        case _:
            return log.info


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
