"""Reports to the API server: each is written when it has changed and is due.

A report has a reporter of its own, which writes only what differs, and a part of the
process that runs it. What is known of the node is read when a report is written
(`Facts`), so that several changes are one write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic

from nri_resmgr.agent.adjustment_status import AdjustmentReporter
from nri_resmgr.agent.api import ApiClient
from nri_resmgr.agent.claims import SliceReporter
from nri_resmgr.agent.daemon_link import DaemonLink
from nri_resmgr.agent.hand_over import AdjustmentsHandOver, ConfigurationHandOver
from nri_resmgr.agent.node_capacity import CapacityReporter
from nri_resmgr.agent.node_report import Facts
from nri_resmgr.agent.options import AgentOptions
from nri_resmgr.agent.reporter import NodeReporter, ObjectReporter, keep_written
from nri_resmgr.agent.startup_taint import StartupTaint
from nri_resmgr.agent.topology_publisher import TopologyPublisher
from nri_resmgr.agent.zones import Zones
from nri_resmgr.app.background.supervisor import Part


class Reports:
    """Writes what is known of the node.

    Args:
        api: The client of the API server.
        options: Settings.
        daemon: The daemon.
        configuration: The document of the node, and the daemon's verdict on it.
        adjustments: The same of adjustments.

    Attributes:
        slice: The node's devices, for the scheduler.
        topology: What the node can grant, for schedulers.
    """

    def __init__(
        self,
        api: ApiClient,
        options: AgentOptions,
        daemon: DaemonLink,
        configuration: ConfigurationHandOver,
        adjustments: AdjustmentsHandOver,
    ) -> None:
        self._api = api
        self._options = options
        self._daemon = daemon
        self._configuration = configuration
        self._adjustments = adjustments
        self._watch = configuration.watch
        self._node_changed = asyncio.Event()
        self._object_changed = asyncio.Event()
        self._adjustments_judged = asyncio.Event()
        self._slice_changed = asyncio.Event()
        self._capacity_changed = asyncio.Event()
        self._serving_changed = asyncio.Event()
        self.slice = SliceReporter(
            api,
            options.node,
            lambda: daemon.claims,
            lambda: self._watch.node_uid,
            self._slice_changed,
        )
        self.topology = TopologyPublisher(
            api,
            options.node,
            self._zones,
            owner=lambda: self._watch.node_uid,
            changed=self._node_changed.set,
        )

    def parts(self) -> tuple[Part, ...]:
        """Return the parts of the process that write reports."""
        return (
            Part("node-status", self._report_node, "the node's status is not written"),
            Part("object-status", self._report_object, "nor that of its configuration"),
            Part(
                "adjustment-status",
                self._report_adjustments,
                "the status of adjustments is not written",
            ),
            Part("slices", self._report_slice, "the scheduler has old capacities"),
            Part("topology", self.topology.run, "schedulers have old numbers"),
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
        )

    def note_choice(self) -> None:
        """Note that another object may count, or was handed over."""
        self.topology.note_change()
        self._serving_changed.set()
        self._node_changed.set()
        self._object_changed.set()
        self._adjustments_judged.set()

    def note_adjustments(self) -> None:
        """Note that adjustments were handed over."""
        self._adjustments_judged.set()

    def note_daemon(self) -> None:
        """Note that the state, claims or verdicts of the daemon have changed."""
        self._slice_changed.set()
        self._capacity_changed.set()
        self.note_choice()

    def _facts(self) -> Facts:
        return Facts(
            choice=self._watch.choice,
            config=self._configuration.config,
            verdict=self._configuration.verdict,
            state=self._daemon.state,
            why_no_state=self._daemon.why,
            publication=self.topology.publication,
            adjustments=self._adjustments.judged,
        )

    def _in_time(
        self,
        write: Callable[[Facts], Awaitable[float]],
        *,
        with_adjustments: bool = False,
    ) -> Callable[[], Awaitable[float]]:
        """Return a call of *write* that waits until a report is due."""

        async def write_if_due() -> float:
            facts, now = self._facts(), monotonic()
            rest = self._configuration.pace.rest(facts, now)
            if with_adjustments:
                rest = max(rest, self._adjustments.pace.rest(now))
            return rest or await write(facts)

        return write_if_due

    async def _report_node(self) -> None:
        reporter = NodeReporter(self._api, self._options.node)

        async def write(facts: Facts) -> float:
            if self._watch.is_node_gone:
                return 0.0  # the object goes with the Node
            return await reporter.write(facts, self._watch.node_uid)

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

    async def _report_adjustments(self) -> None:
        reporter = AdjustmentReporter(self._api, self._options.node)

        async def write(facts: Facts) -> float:
            judged, found = facts.adjustments, self._adjustments.watch.found
            if self._watch.is_node_gone:
                await reporter.leave(found or {})
                return 0.0
            if judged is None or found is None or self._daemon.verdicts is None:
                return 0.0
            return await reporter.write(found, judged.objects)

        what = "the status of adjustments"
        in_time = self._in_time(write, with_adjustments=True)
        await keep_written(self._api, what, in_time, self._adjustments_judged)

    async def _report_slice(self) -> None:
        """Publish devices once the daemon has any; other nodes need no rights to."""
        self._slice_changed.set()
        while not (found := self._daemon.claims) or not found.driver:
            await self._slice_changed.wait()
            self._slice_changed.clear()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.slice.watch(found.driver))
            what = "the devices of the node"
            await keep_written(self._api, what, self.slice.write, self._slice_changed)

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
            return await taint.write(self._facts(), self._watch.node_uid)

        self._serving_changed.set()  # after a failure
        what = "the startup taint of the node"
        await keep_written(self._api, what, write, self._serving_changed)

    async def _zones(self) -> Zones | None:
        """Return what the node can grant; None where nothing is to be published."""
        # Without the Node the object would lose its owner, and stay for ever.
        return None if self._watch.is_node_gone else await self._daemon.zones()
