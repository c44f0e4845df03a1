"""The agent as a process: what it watches, hands over, and reports."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from random import random

from nri_resmgr.agent.api import ApiClient
from nri_resmgr.agent.claims import ClaimHandOver
from nri_resmgr.agent.daemon_link import DaemonLink
from nri_resmgr.agent.event_writer import EventWriter
from nri_resmgr.agent.hand_over import (
    AdjustmentsHandOver,
    ConfigurationHandOver,
    DocumentSpool,
)
from nri_resmgr.agent.insight import AgentInsight
from nri_resmgr.agent.metrics import AgentCounters
from nri_resmgr.agent.options import AgentOptions
from nri_resmgr.agent.own_report import OwnReport
from nri_resmgr.agent.reports import Reports
from nri_resmgr.agent.spool_folder import SpoolFolder
from nri_resmgr.app.background.supervisor import Part, Supervisor
from nri_resmgr.log import Logger
from nri_resmgr.process.insight import ProcessInsight
from nri_resmgr.process.systemd import notify_systemd

log = Logger(__name__)


class Agent:
    """Hands the cluster's configuration to the daemon, and reports what became of it.

    Args:
        api: The client of the API server.
        options: Settings.
        chance: Returns random numbers from 0 to 1, by which nodes spread reports.
    """

    def __init__(
        self,
        api: ApiClient,
        options: AgentOptions,
        chance: Callable[[], float] = random,
    ) -> None:
        self._options = options
        self._spool = SpoolFolder(options.spool)
        self._counters = AgentCounters()
        self._events = EventWriter(api, options.node, lambda: self._daemon.state)
        self._daemon = DaemonLink(
            options.control_socket,
            OwnReport(api, options.node, self._problems).body,
            changed=self._daemon_changed,
            receive=self._events.take,
        )
        documents = DocumentSpool(self._spool, self._counters, self._daemon)
        self._configuration = ConfigurationHandOver(
            api,
            options.scope,
            documents,
            chance,
            self._note_choice,
        )
        self._adjustments = AdjustmentsHandOver(
            api,
            options.scope,
            documents,
            chance,
            self._note_adjustments,
        )
        self._claims_changed = asyncio.Event()
        self._claims = ClaimHandOver(
            api,
            self._spool,
            options.node,
            lambda: self._daemon.claims,
            self._claims_changed,
        )
        self._reports = Reports(
            api, options, self._daemon, self._configuration, self._adjustments
        )
        self._supervisor = Supervisor()
        insight = AgentInsight(
            api=api,
            counters=self._counters,
            watch=self._configuration.watch,
            daemon=self._daemon,
            events=self._events,
            topology=self._reports.topology,
        )
        self._insight = ProcessInsight(
            self._supervisor, insight.series, insight.why_not_ready
        )

    async def run(self) -> None:
        """Run until SIGTERM or SIGINT.

        Raises:
            SpoolUnusable: The spool folder cannot be used.
            PartLost: A part cannot be started again.
        """
        loop = asyncio.get_running_loop()
        with self._spool.locked():
            task = asyncio.create_task(self._supervisor.run(self._parts()))
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, task.cancel)
            log.info("agent.started", node=self._options.node)
            try:
                await task
            except asyncio.CancelledError:
                log.info("agent.ended")

    def _parts(self) -> tuple[Part, ...]:
        configuration, adjustments = self._configuration, self._adjustments
        return (
            Part("configuration", configuration.watch.run, "changes are not noticed"),
            Part("adjustments", adjustments.watch.run, "changes are not noticed"),
            Part("hand-over", configuration.run, "the daemon keeps its documents"),
            Part(
                "hand-over-adjustments",
                adjustments.run,
                "the daemon keeps its adjustments",
            ),
            Part("claims", self._claims.run, "pods with new claims wait"),
            Part("daemon", self._daemon.run, "what the daemon does is not reported"),
            *self._reports.parts(),
            Part("events", self._events.run, "events on pods are not written"),
            Part(
                "insight",
                self._serve_metrics,
                "metrics are not served",
                is_essential=False,
            ),
            Part(
                "probes",
                self._serve_health,
                "liveness and readiness are not served",
                is_essential=False,
            ),
            Part("systemd", self._notify, "systemd gets no signal", is_essential=False),
        )

    async def _serve_metrics(self) -> None:
        if endpoint := self._options.http_endpoint:
            await self._insight.serve_metrics(endpoint)

    async def _serve_health(self) -> None:
        if endpoint := self._options.health_endpoint:
            await self._insight.serve_health(endpoint)

    async def _notify(self) -> None:
        if "NOTIFY_SOCKET" in os.environ:
            await notify_systemd(
                os.environ, lambda: not self._supervisor.problems(), self._begun
            )

    async def _begun(self) -> str:
        # It waits for neither the API server nor the daemon: it works without either.
        return f"connects node {self._options.node} with its cluster"

    def _note_choice(self) -> None:
        self._reports.note_choice()

    def _note_adjustments(self) -> None:
        self._reports.note_adjustments()

    def _daemon_changed(self) -> None:
        """Note that the state, claims or verdicts of the daemon have changed."""
        self._adjustments.note_verdicts()
        if self._configuration.is_judged and self._adjustments.is_judged:
            self._daemon.verdicts_came()
        if (verdicts := self._daemon.verdicts) is not None:
            self._counters.note(verdicts)
        self._claims_changed.set()
        self._reports.note_daemon()

    def _problems(self) -> Iterator[str]:
        """Yield what cannot be watched now."""
        yield str(self._configuration.watch.problems)
        yield str(self._adjustments.watch.problems)
        yield str(self._reports.slice.problems)
