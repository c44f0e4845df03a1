"""The agent as a process: what it watches, hands over, and reports."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from random import random
from time import monotonic
from typing import Final

import msgspec

from nri_resmgr.agent.adjustment_pace import AdjustmentPace
from nri_resmgr.agent.adjustment_status import AdjustmentReporter
from nri_resmgr.agent.adjustments import AdjustmentsWatch, text_of
from nri_resmgr.agent.api import EVENTS, ApiClient, ApiError, Ref
from nri_resmgr.agent.api.errors import Conflict, ObjectMissing
from nri_resmgr.agent.choice import Chosen, ConfigObject, Waiting
from nri_resmgr.agent.claims import ClaimHandOver, SliceReporter
from nri_resmgr.agent.configuration import ConfigScope, ConfigurationWatch
from nri_resmgr.agent.daemon_link import DaemonLink
from nri_resmgr.agent.daemon_state import JudgedAdjustments
from nri_resmgr.agent.metrics import (
    DAEMON,
    EVENTS_DROPPED,
    READY,
    TOPOLOGY,
    AgentCounters,
    By,
    What,
    series_of_api,
    series_of_build,
)
from nri_resmgr.agent.node_capacity import CapacityReporter
from nri_resmgr.agent.node_report import Facts
from nri_resmgr.agent.pod_events import PodEvents, occurrences_of
from nri_resmgr.agent.report_pace import ReportPace
from nri_resmgr.agent.reporter import (
    NodeReporter,
    ObjectReporter,
    WriteFailures,
    keep_written,
)
from nri_resmgr.agent.spool_folder import SpoolFolder
from nri_resmgr.agent.startup_taint import StartupTaint
from nri_resmgr.agent.topology_publisher import TopologyPublisher
from nri_resmgr.agent.verdict import PENDING, Outcome, Verdict, verdict_of
from nri_resmgr.agent.zones import Zones
from nri_resmgr.app.background.supervisor import Part, Supervisor
from nri_resmgr.app.metrics.text import Series, single
from nri_resmgr.log import Logger
from nri_resmgr.process.insight import ProcessInsight
from nri_resmgr.process.systemd import notify_systemd
from nri_resmgr.spool import ADJUSTMENTS, CONFIGURATION, SpoolFile, SpoolHeader
from nri_resmgr.values import InputError
from nri_resmgr.values.documents import JsonObject
from nri_resmgr.values.sha256 import sha256_of
from nri_resmgr.values.shorten import shortened
from nri_resmgr.version import our_version

log = Logger(__name__)

HAND_OVER_PAUSE: Final = 1.0
"""Seconds between two documents for the daemon: a storm of changes is one a second."""

_LONGEST_PROBLEM: Final = 1000  # characters; the daemon takes 1,024

_EVENTS_PAUSE: Final = 1.0  # seconds between two looks for events to write


class AgentOptions(msgspec.Struct, frozen=True):
    """Settings of an agent.

    Attributes:
        scope: The objects that may configure the node.
        spool: The folder that the daemon follows.
        control_socket: The daemon's control socket.
        http_endpoint: Address of metrics and health; empty for none.
        health_endpoint: Address of health alone; likewise.
        startup_taint: Key of the taint that is removed from the Node once its daemon
            serves the runtime; empty for none.
    """

    scope: ConfigScope
    spool: Path
    control_socket: str
    http_endpoint: str = ""
    health_endpoint: str = ""
    startup_taint: str = ""

    @property
    def node(self) -> str:
        """Name of the node."""
        return self.scope.node


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
        self._api = api
        self._chance = chance
        self._options = options
        self._spool = SpoolFolder(options.spool)
        self._choice_changed = asyncio.Event()
        self._node_changed = asyncio.Event()
        self._object_changed = asyncio.Event()
        self._adjustments_changed = asyncio.Event()
        self._capacity_changed = asyncio.Event()
        self._serving_changed = asyncio.Event()
        self._adjustments_judged = asyncio.Event()
        self._daemon = DaemonLink(
            options.control_socket,
            self._report_of_agent,
            changed=self._state_changed,
            receive=self._take_event,
        )
        self._adjustments = AdjustmentsWatch(
            api,
            options.scope.namespace,
            self._adjustments_changed.set,
            lambda: self._note_unusable(What.ADJUSTMENTS),
        )
        self._watch = ConfigurationWatch(
            api,
            options.scope,
            self._choice_changed.set,
            lambda: self._note_unusable(What.CONFIGURATION),
        )
        self._claims_changed = asyncio.Event()
        self._slice_changed = asyncio.Event()
        self._claims = ClaimHandOver(
            api,
            self._spool,
            options.node,
            lambda: self._daemon.claims,
            self._claims_changed,
        )
        self._slice = SliceReporter(
            api,
            options.node,
            lambda: self._daemon.claims,
            self._node_uid,
            self._slice_changed,
        )
        self._pace = ReportPace(self._watch.own_name, monotonic())
        self._adjustment_pace = AdjustmentPace(options.node)
        self._judged: JudgedAdjustments | None = None  # also while no daemon answers
        self._topology = TopologyPublisher(
            api,
            options.node,
            self._zones,
            owner=self._node_uid,
            changed=self._node_changed.set,
        )
        self._events = PodEvents(options.node, f"nri-resmgr-{options.node}")
        file = self._spool.read(CONFIGURATION)
        self._config, self._digest = _config_of(file), file.digest if file else ""
        self._left_out = ""  # as it was logged
        self._counters = AgentCounters()
        self._is_ready = False
        self._supervisor = Supervisor()
        self._insight = ProcessInsight(
            self._supervisor, self._series, self._why_not_ready
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
        return (
            Part("configuration", self._watch.run, "changes are not noticed"),
            Part("adjustments", self._adjustments.run, "changes are not noticed"),
            Part("hand-over", self._hand_over, "the daemon keeps its documents"),
            Part(
                "hand-over-adjustments",
                self._hand_over_adjustments,
                "the daemon keeps its adjustments",
            ),
            Part("daemon", self._daemon.run, "what the daemon does is not reported"),
            Part("node-status", self._report_node, "the node's status is not written"),
            Part("object-status", self._report_object, "nor that of its configuration"),
            Part(
                "adjustment-status",
                self._report_adjustments,
                "the status of adjustments is not written",
            ),
            Part("claims", self._claims.run, "pods with new claims wait"),
            Part("slices", self._report_slice, "the scheduler has old capacities"),
            Part("topology", self._topology.run, "schedulers have old numbers"),
            Part(
                "extended-resources",
                self._report_capacity,
                "extended resources in the status of the Node are old",
            ),
            Part(
                "startup-taint",
                self._remove_taint,
                "the startup taint keeps pods off the node",
            ),
            Part("events", self._write_events, "events on pods are not written"),
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

    def _why_not_ready(self) -> str:
        """Return why it is not known what configures the node; empty once it was.

        What is known stays in use, so that later an outage changes nothing.
        """
        choice = self._watch.choice
        if self._is_ready or not isinstance(choice, Waiting):
            self._is_ready = True
            return ""
        return choice.why or str(self._watch.problems) or "no answer of the cluster yet"

    def _series(self) -> Iterator[Series]:
        yield series_of_build()
        yield from series_of_api(self._api)
        yield from self._counters.series()
        yield single(EVENTS_DROPPED, self._events.dropped)
        if (publication := self._topology.publication) is not None:
            yield single(TOPOLOGY, int(publication.is_published))
        yield single(DAEMON, int(self._daemon.state is not None))
        yield single(READY, int(not self._why_not_ready()))

    async def _hand_over(self) -> None:
        """Write the chosen document to the spool, at most once in a pause."""
        self._choice_changed.set()  # after a failure it is not written yet
        while True:
            await self._choice_changed.wait()
            self._choice_changed.clear()
            choice, pause = self._watch.choice, 0.0
            self._pace.chosen(choice, monotonic(), self._chance())
            match choice:
                case Chosen(config):
                    self._hand(config)
                    pause = HAND_OVER_PAUSE
            self._changed()
            await asyncio.sleep(pause)

    def _hand(self, config: ConfigObject) -> None:
        header = SpoolHeader(
            kind=config.kind,
            name=config.name,
            namespace=config.namespace,
            uid=config.uid,
            generation=config.generation,
            resource_version=config.resource_version,
            node=self._options.node,
        )
        try:
            is_new = self._spool.write(CONFIGURATION, header, config.text)
        except InputError as error:
            log.error("agent.not-handed-over", object=str(config), why=str(error))
            self._counters.rejected[What.CONFIGURATION, By.AGENT] += 1
            return
        self._config, self._digest = config, sha256_of(config.text.encode())
        if is_new:
            self._counters.handed_over[What.CONFIGURATION] += 1
            generation = config.generation
            log.info("agent.handed-over", object=str(config), generation=generation)
            self._pace.handed_over(monotonic())
            self._daemon.expect_verdict()

    async def _hand_over_adjustments(self) -> None:
        """Write all adjustments to the spool, at most once in a pause."""
        if self._adjustments.found is not None:
            self._adjustments_changed.set()  # after a failure they are not written yet
        while True:
            await self._adjustments_changed.wait()
            self._adjustments_changed.clear()
            found = self._adjustments.found or {}
            # Before the daemon can judge them.
            self._adjustment_pace.seen(found.values(), monotonic(), self._chance())
            header = SpoolHeader(kind="AdjustmentList", node=self._options.node)
            try:
                is_new = self._spool.write(ADJUSTMENTS, header, text_of(found))
            except InputError as error:
                log.error("agent.not-handed-over", object="adjustments", why=str(error))
                self._counters.rejected[What.ADJUSTMENTS, By.AGENT] += 1
            else:
                if is_new:
                    self._counters.handed_over[What.ADJUSTMENTS] += 1
                    log.info("agent.adjustments-handed-over", count=len(found))
                    self._daemon.expect_verdict()
            self._adjustments_judged.set()
            await asyncio.sleep(HAND_OVER_PAUSE)

    async def _report_adjustments(self) -> None:
        reporter = AdjustmentReporter(self._api, self._options.node)

        async def write(facts: Facts) -> float:
            judged, found = facts.adjustments, self._adjustments.found
            if self._watch.is_node_gone:
                await reporter.leave(found or {})
                return 0.0
            if judged is None or found is None or self._daemon.verdicts is None:
                return 0.0
            return await reporter.write(found, judged.objects)

        what = "the status of adjustments"
        in_time = self._in_time(write, with_adjustments=True)
        await keep_written(self._api, what, in_time, self._adjustments_judged)

    def _state_changed(self) -> None:
        if self._verdict().outcome is not Outcome.PENDING:
            self._daemon.verdict_came()
        if self._daemon.verdicts is not None:
            self._counters.note(self._daemon.verdicts)
            self._judged = self._daemon.verdicts.adjustments or self._judged
        self._claims_changed.set()
        self._slice_changed.set()
        self._capacity_changed.set()
        self._changed()

    def _note_unusable(self, what: What) -> None:
        self._counters.rejected[what, By.AGENT] += 1

    def _verdict(self) -> Verdict:
        if self._config is None or self._daemon.verdicts is None:
            return PENDING
        judged = self._daemon.verdicts.configuration
        return verdict_of(judged, self._config.uid, self._digest)

    def _report_of_agent(self) -> JsonObject:
        problems = (
            str(self._watch.problems),
            str(self._adjustments.problems),
            str(self._slice.problems),
            self._lacking_in_definitions(),
        )
        problem = "; ".join(one for one in problems if one)
        return {
            "version": our_version(),
            "node": self._options.node,
            "contactSeconds": self._api.silent_seconds,
            "problem": shortened(problem, _LONGEST_PROBLEM),
        }

    def _lacking_in_definitions(self) -> str:
        found = self._api.left_out
        if found and found != self._left_out:
            log.warning("agent.fields-left-out", fields=found)
        self._left_out = found
        return found and f"definitions of the cluster lack {found}: update the CRDs"

    def _facts(self) -> Facts:
        return Facts(
            choice=self._watch.choice,
            config=self._config,
            verdict=self._verdict(),
            state=self._daemon.state,
            why_no_state=self._daemon.why,
            publication=self._topology.publication,
            adjustments=self._judged,
        )

    async def _report_slice(self) -> None:
        """Publish devices once the daemon has any; other nodes need no rights to."""
        self._slice_changed.set()
        while not (found := self._daemon.claims) or not found.driver:
            await self._slice_changed.wait()
            self._slice_changed.clear()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._slice.watch(found.driver))
            what = "the devices of the node"
            await keep_written(self._api, what, self._slice.write, self._slice_changed)

    async def _report_node(self) -> None:
        options = self._options
        reporter = NodeReporter(self._api, options.node)

        async def write(facts: Facts) -> float:
            if self._watch.is_node_gone:
                return 0.0  # the object goes with the Node
            return await reporter.write(facts, self._node_uid())

        what = "the status of the node"
        in_time = self._in_time(write, with_adjustments=True)
        await keep_written(self._api, what, in_time, self._node_changed)

    async def _report_object(self) -> None:
        source = self._options.scope.source
        if not source.has_status:
            return
        own_name = self._watch.own_name
        node = self._options.node
        reporter = ObjectReporter(self._api, node, own_name, source.resources)

        async def write(facts: Facts) -> float:
            if self._watch.is_node_gone:
                await reporter.leave(facts.config)
                return 0.0
            return await reporter.write(facts)

        await keep_written(
            self._api,
            "the status of the configuration",
            self._in_time(write),
            self._object_changed,
        )

    async def _report_capacity(self) -> None:
        reporter = CapacityReporter(self._api, self._options.node)

        async def write() -> float:
            return await reporter.write(self._daemon.state)

        what = "the extended resources of the node"
        await keep_written(self._api, what, write, self._capacity_changed)

    async def _remove_taint(self) -> None:
        options = self._options
        if not options.startup_taint:
            return
        taint = StartupTaint(self._api, options.node, options.startup_taint)

        async def write() -> float:
            return await taint.write(self._facts(), self._node_uid())

        self._serving_changed.set()  # after a failure
        what = "the startup taint of the node"
        await keep_written(self._api, what, write, self._serving_changed)

    def _in_time(
        self,
        write: Callable[[Facts], Awaitable[float]],
        *,
        with_adjustments: bool = False,
    ) -> Callable[[], Awaitable[float]]:
        """Return a call of *write* that waits until a report is due."""

        async def write_if_due() -> float:
            facts, now = self._facts(), monotonic()
            rest = self._pace.rest(facts, now)
            if with_adjustments:
                rest = max(rest, self._adjustment_pace.rest(now))
            return rest or await write(facts)

        return write_if_due

    async def _zones(self) -> Zones | None:
        """Return what the node can grant; None where nothing is to be published."""
        # Without the Node the object would lose its owner, and stay for ever.
        return None if self._watch.is_node_gone else await self._daemon.zones()

    def _changed(self) -> None:
        self._topology.note_change()
        self._serving_changed.set()
        self._node_changed.set()
        self._object_changed.set()
        self._adjustments_judged.set()

    def _take_event(self, event: JsonObject) -> None:
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        for one in occurrences_of(event, self._uids()):
            self._events.note(one, now.replace("+00:00", "Z"))

    def _node_uid(self) -> str:
        found = self._watch.node_object
        return found.uid if found else ""

    def _uids(self) -> dict[str, str]:
        state = self._daemon.state
        found = state.containers if state else ()
        return {f"{one.namespace}/{one.pod}": one.pod_uid for one in found}

    async def _write_events(self) -> None:
        failures = WriteFailures()
        while True:
            await asyncio.sleep(_EVENTS_PAUSE)
            for write in self._events.due(monotonic()):
                ref = Ref(EVENTS, write.name, write.namespace)
                try:
                    if write.is_new:
                        await self._api.create(ref, write.body)
                    else:
                        await self._api.merge_patch(ref, write.body)
                except Conflict:
                    continue  # written before this agent started
                except ObjectMissing:
                    # Removed, or the namespace is; a later occurrence is new again.
                    self._events.failed(write)
                except ApiError as error:
                    self._events.failed(write)
                    await asyncio.sleep(failures.failed("an event", error))
                else:
                    failures.succeeded()


def _config_of(file: SpoolFile | None) -> ConfigObject | None:
    """Return the object that was handed over before this process started."""
    if file is None:
        return None
    header = file.header
    return ConfigObject(
        kind=header.kind,
        namespace=header.namespace,
        name=header.name,
        uid=header.uid,
        generation=header.generation,
        resource_version=header.resource_version,
        text=file.body,
    )
