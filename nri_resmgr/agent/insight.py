"""Metrics, liveness and readiness of an agent."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from nri_resmgr.agent.api import ApiClient
from nri_resmgr.agent.choice import Waiting
from nri_resmgr.agent.configuration import ConfigurationWatch
from nri_resmgr.agent.daemon_link import DaemonLink
from nri_resmgr.agent.event_writer import EventWriter
from nri_resmgr.agent.metrics import (
    DAEMON,
    EVENTS_DROPPED,
    READY,
    TOPOLOGY,
    AgentCounters,
    series_of_api,
    series_of_build,
)
from nri_resmgr.agent.topology_publisher import TopologyPublisher
from nri_resmgr.app.metrics.text import Series, single


@attrs.define(eq=False)
class AgentInsight:
    """Reads metrics and readiness from the parts of an agent.

    Attributes:
        api: The client of the API server.
        counters: Of documents.
        watch: The objects that may configure the node.
        daemon: The daemon.
        events: Events on pods.
        topology: What schedulers read.
    """

    api: ApiClient
    counters: AgentCounters
    watch: ConfigurationWatch
    daemon: DaemonLink
    events: EventWriter
    topology: TopologyPublisher
    _was_ready: bool = attrs.field(default=False, init=False)

    def why_not_ready(self) -> str:
        """Return why it is not known what configures the node; empty once it was.

        What is known stays in use, so that later an outage changes nothing.
        """
        choice = self.watch.choice
        if self._was_ready or not isinstance(choice, Waiting):
            self._was_ready = True
            return ""
        return choice.why or str(self.watch.problems) or "no answer of the cluster yet"

    def series(self) -> Iterator[Series]:
        """Yield all metrics but those that any process has."""
        yield series_of_build()
        yield from series_of_api(self.api)
        yield from self.counters.series()
        yield single(EVENTS_DROPPED, self.events.dropped)
        if (publication := self.topology.publication) is not None:
            yield single(TOPOLOGY, int(publication.is_published))
        yield single(DAEMON, int(self.daemon.state is not None))
        yield single(READY, int(not self.why_not_ready()))
