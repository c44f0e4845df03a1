"""One line per refused request; equal ones are counted."""

from __future__ import annotations

from typing import Final

from nri_resmgr.app.observers.observer import DecisionObserver, PolicyDecision, Subject
from nri_resmgr.app.observing.refusal_counts import RefusalCounts
from nri_resmgr.log import Logger
from nri_resmgr.policy.events import Event
from nri_resmgr.values import ResmgrError

log = Logger(__name__)

REFUSED: Final = "container.refused"

# A day of retries each second then has five lines.
_LOGGED_REPEATS: Final = frozenset((10, 100, 1_000, 10_000, 100_000, 1_000_000))


class RefusalLog(DecisionObserver):
    """Logs refusals, those of a dry run as such.

    A component of its own, so that commands which show refusals can switch it off.
    """

    def __init__(self, *, dry_run: bool) -> None:
        self._fields = {"dry_run": True} if dry_run else {}
        self._refusals = RefusalCounts()

    def decided(self, event: Event, _decision: PolicyDecision) -> None:
        """Forget the refusals of a container whose request was granted."""
        self._refusals.decided(event)

    def refused(self, subject: Subject, error: ResmgrError) -> None:
        """Log a refusal as a warning, and an equal one when it has come often."""
        why = str(error)
        times = self._refusals.add(subject.title, why)
        if times > 1 and times not in _LOGGED_REPEATS:
            return
        fields = {"namespace": subject.namespace, "pod": subject.pod, **self._fields}
        if subject.container:
            fields["container"] = subject.container
        if times == 1:
            log.warning("container.refused", **fields, why=why)
        else:
            log.info("container.still-refused", **fields, times=times, why=why)
