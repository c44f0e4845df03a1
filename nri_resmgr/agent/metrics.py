"""Metrics of the agent: the table of all, and their series."""

from __future__ import annotations

import enum
import platform
from collections import Counter
from collections.abc import Iterable, Iterator
from time import monotonic
from typing import Final

from nri_resmgr.agent.api import ApiClient
from nri_resmgr.agent.api.errors import KindMissing
from nri_resmgr.agent.api.watcher import Watcher
from nri_resmgr.agent.daemon_state import Verdicts
from nri_resmgr.agent.verdict import Outcome
from nri_resmgr.app.metrics.text import Kind, Metric, Series, single
from nri_resmgr.version import our_version

BUILD: Final = Metric(
    "nri_resmgr_agent_build_info",
    Kind.GAUGE,
    "1, with versions as labels.",
    ("version", "python"),
)
REQUESTS: Final = Metric(
    "nri_resmgr_agent_api_requests_total",
    Kind.COUNTER,
    "Requests to the API server, by verb as in RBAC rules and by HTTP status; none is "
    "one without an answer.",
    ("verb", "code"),
)
WRITES: Final = Metric(
    "nri_resmgr_agent_writes_total",
    Kind.COUNTER,
    "Writes of status and events, by resource and result: written or failed.",
    ("resource", "result"),
)
CONTACT: Final = Metric(
    "nri_resmgr_agent_api_contact_age_seconds",
    Kind.GAUGE,
    "Time since the API server sent anything; absent before it did.",
)
WATCHES: Final = Metric(
    "nri_resmgr_agent_watches",
    Kind.GAUGE,
    "Watches by resource and state: current, opening (for the first time), failing, or "
    "no-kind (its CRD is not installed).",
    ("resource", "state"),
)
WATCH_AGE: Final = Metric(
    "nri_resmgr_agent_watch_age_seconds",
    Kind.GAUGE,
    "Age of what is known of a resource: time since its watch brought a list, a change "
    "or a bookmark, of which API servers send one each minute.",
    ("resource",),
)
REJECTED: Final = Metric(
    "nri_resmgr_agent_objects_rejected_total",
    Kind.COUNTER,
    "Versions of objects that are not in force for a mistake in them, by what they are "
    "(configuration or adjustments) and which process found it (agent or daemon).",
    ("what", "by"),
)
HANDED_OVER: Final = Metric(
    "nri_resmgr_agent_handed_over_total",
    Kind.COUNTER,
    "Files handed over to the daemon, by what they have.",
    ("what",),
)
EVENTS_DROPPED: Final = Metric(
    "nri_resmgr_agent_events_dropped_total",
    Kind.COUNTER,
    "Events on pods that were dropped, because too many others waited.",
)
TOPOLOGY: Final = Metric(
    "nri_resmgr_agent_topology_published",
    Kind.GAUGE,
    "1 if schedulers can read what the node can grant, 0 if that failed; absent where "
    "the configuration does not ask for it.",
)
DAEMON: Final = Metric(
    "nri_resmgr_agent_daemon_answers",
    Kind.GAUGE,
    "1 if the daemon answers on its control socket, else 0.",
)
READY: Final = Metric(
    "nri_resmgr_agent_ready",
    Kind.GAUGE,
    "1 once it is known which object configures the node, else 0.",
)

METRICS: Final = tuple(one for one in globals().values() if isinstance(one, Metric))
"""All of them, in this order."""


_REJECTED: Final = Outcome.REJECTED.value


class What(enum.StrEnum):
    """What the agent hands over."""

    CONFIGURATION = "configuration"
    ADJUSTMENTS = "adjustments"


class By(enum.StrEnum):
    """The process that finds a mistake."""

    AGENT = "agent"
    DAEMON = "daemon"


class AgentCounters:
    """Counts what is handed over, and what has mistakes.

    Attributes:
        handed_over: Number of files.
        rejected: Number of objects, by the process that found the mistake.
    """

    def __init__(self) -> None:
        self.handed_over = Counter(dict.fromkeys(What, 0))
        both = ((what, by) for what in What for by in By)
        self.rejected = Counter(dict.fromkeys(both, 0))
        self._configuration = ("", "")  # the last verdict, and on which digest
        self._adjustments = ""

    def note(self, verdicts: Verdicts) -> None:
        """Count what the daemon rejects: each version once."""
        if (config := verdicts.configuration) is not None:
            found = config.digest, config.verdict
            if found != self._configuration:
                self._configuration = found
                count = int(config.verdict == _REJECTED)
                self.rejected[What.CONFIGURATION, By.DAEMON] += count
        adjustments = verdicts.adjustments
        if adjustments is not None and adjustments.digest != self._adjustments:
            self._adjustments = adjustments.digest
            judged = (one.verdict for one in adjustments.objects)
            count = sum(verdict == _REJECTED for verdict in judged)
            self.rejected[What.ADJUSTMENTS, By.DAEMON] += count

    def series(self) -> Iterator[Series]:
        """Yield all counters."""
        found = {(what,): count for what, count in self.handed_over.items()}
        yield Series(HANDED_OVER, found)
        yield Series(REJECTED, self.rejected)


def series_of_build() -> Series:
    """Return the agent's version."""
    return Series(BUILD, {(our_version(), platform.python_version()): 1})


def series_of_api(api: ApiClient) -> Iterator[Series]:
    """Yield requests, writes and watches of a client."""
    yield Series(REQUESTS, api.requests)
    writes = {
        (what, "written" if is_written else "failed"): count
        for (what, is_written), count in api.writes.items()
    }
    yield Series(WRITES, writes)
    if (silent := api.silent_seconds) is not None:
        yield single(CONTACT, round(silent, 3))
    yield from series_of_watches(api.watches, monotonic())


def series_of_watches(watches: Iterable[Watcher], now: float) -> Iterator[Series]:
    """Yield the states of watches, and the age of what they know.

    Args:
        watches: The watches.
        now: Monotonic seconds.
    """
    states: Counter[tuple[str, str]] = Counter()
    ages: dict[tuple[str], float] = {}
    for one in watches:
        resource = one.target.resource.plural
        states[resource, _state_of(one)] += 1
        if one.heard is not None:
            age = round(now - one.heard, 3)
            ages[resource,] = max(age, ages.get((resource,), 0.0))
    yield Series(WATCHES, states)
    yield Series(WATCH_AGE, ages)


def _state_of(watcher: Watcher) -> str:
    match watcher.error:
        case KindMissing():
            return "no-kind"
        case None:
            return "opening" if watcher.heard is None else "current"
        case _:
            return "failing"
