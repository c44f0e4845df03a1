"""Services of the daemon beside the requests; they begin once it is registered.

All are parts of one `Supervisor`, which starts those that fail again.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from functools import partial
from types import ModuleType
from typing import Final, TypeAlias

import msgspec

from nri_resmgr.app.background.hotplug import HotplugFollower
from nri_resmgr.app.background.periodic import until_tick
from nri_resmgr.app.background.supervisor import Part
from nri_resmgr.app.background.threads import imported, in_thread
from nri_resmgr.app.plugin.changes.reconfiguration import change_machine
from nri_resmgr.app.running.by_cgroup import ByCgroup
from nri_resmgr.daemon.kubelet import NOT_INSTALLED
from nri_resmgr.daemon.late_imports import import_late
from nri_resmgr.daemon.observability import ExportUse, HttpUse, TraceUse
from nri_resmgr.daemon.parts import Daemon
from nri_resmgr.daemon.targets import (
    BlockIoTarget,
    HostTarget,
    LimitTarget,
    RdtTarget,
    TopTierTarget,
)
from nri_resmgr.host.knobs.files import WritableHostTree
from nri_resmgr.host.kubelet import static_managers
from nri_resmgr.host.machine.hotplug import HotplugWatch
from nri_resmgr.host.node_features import write_features
from nri_resmgr.kubelet.sockets import kubelet_dir
from nri_resmgr.log import Logger
from nri_resmgr.log.copies import line_copies
from nri_resmgr.process.systemd import notify_systemd
from nri_resmgr.process.tls import import_with_tls
from nri_resmgr.stub import Stub
from nri_resmgr.stub.errors import SessionError
from nri_resmgr.values import HostError

log = Logger(__name__)

_KUBELET_INTERVAL: Final = 60.0  # seconds

Run: TypeAlias = Callable[[Daemon], Awaitable[None]]


class Service(msgspec.Struct, frozen=True):
    """A service, before there is a daemon.

    Attributes:
        run: Does all of its work as soon as it is called, and again after a failure.
        meanwhile: What holds while it fails.
        is_essential: Whether the process ends if it cannot be started again.
    """

    run: Run
    meanwhile: str
    is_essential: bool = True

    @property
    def name(self) -> str:
        """The name of its part."""
        return self.run.__name__.replace("_", "-")


async def serve_beside(daemon: Daemon) -> None:
    """Run all services until cancelled.

    Raises:
        PartLost: An essential one cannot be started again.
    """
    await daemon.supervisor.run(parts_of(daemon))


def parts_of(daemon: Daemon) -> Iterator[Part]:
    """Yield the services of a daemon as parts."""
    for one in SERVICES:
        run = partial(one.run, daemon)
        yield Part(one.name, run, one.meanwhile, is_essential=one.is_essential)


async def checkpoint(daemon: Daemon) -> None:
    """Write the state."""
    if daemon.checkpoint_writer is not None:
        await daemon.checkpoint_writer.run()


async def recording(daemon: Daemon) -> None:
    """Write the recording."""
    if daemon.recorder is not None:
        await daemon.recorder.run()


async def late_imports(daemon: Daemon) -> None:
    """Import what annotations of new pods may need, once no start waits for it."""
    history, sessions = daemon.observers.history, daemon.observers.sessions
    while not sessions.is_synchronized:
        await history.more(history.last)
    await import_late()


async def hotplug(daemon: Daemon) -> None:
    """Follow the hotplug of CPUs and memory."""
    if daemon.hotplug is None:
        # Kept after a fault: what has changed meanwhile is found by comparison.
        watch = await in_thread(lambda: HotplugWatch(daemon.tree, daemon.kinds))
        change = partial(change_machine, daemon.policy)
        daemon.hotplug = HotplugFollower(watch.poll_often, change)
    await daemon.hotplug.follow()


async def configuration(daemon: Daemon) -> None:
    """Follow the configuration file, and reload it on SIGHUP."""
    await daemon.configuration.follow()


async def cluster(daemon: Daemon) -> None:
    """Follow the documents of the cluster in the spool folder."""
    sessions = daemon.observers.sessions
    await daemon.configuration.follow_cluster(lambda: sessions.is_synchronized)


async def configuration_cache(daemon: Daemon) -> None:
    """Keep documents of the cluster and the runtime for the next start."""
    await daemon.configuration.follow_cache()


async def control(daemon: Daemon) -> None:
    """Serve the control socket."""
    try:
        if path := daemon.options.control_socket:
            # Late: no request needs it.
            served = await imported("nri_resmgr.daemon.control")
            await served.serve_control(daemon, path)
    finally:
        daemon.control_tried.set()


async def probes(daemon: Daemon) -> None:
    """Serve liveness and readiness, apart from the metrics."""
    if daemon.options.health_endpoint:
        # As for `insight`.
        served = await imported("nri_resmgr.daemon.probes")
        await served.serve_daemon_probes(daemon)


async def insight(daemon: Daemon) -> None:
    """Serve metrics."""

    async def serve(use: HttpUse) -> None:
        # Off by default, and half a megabyte.
        served = await imported("nri_resmgr.daemon.insight")
        await served.serve_insight(daemon, use)

    await daemon.observability.follow(lambda present: present.http, serve)


async def systemd(daemon: Daemon) -> None:
    """Send state and watchdog signals to systemd, if it started this process."""
    if "NOTIFY_SOCKET" in os.environ:
        await notify_systemd(
            os.environ,
            lambda: not daemon.supervisor.problems(),
            lambda: until_in_sync(daemon.stub, daemon.control_tried),
        )


async def until_in_sync(stub: Stub, control_tried: asyncio.Event) -> str:
    """Wait until the service counts as started; return its status.

    Args:
        stub: The sessions with the runtime, of which one has to be synchronized.
        control_tried: Set once the control socket listens, or cannot: after a start,
            ``nri-resmgr status`` is to work.
    """
    while True:
        await stub.started()
        with suppress(SessionError):  # it ended; wait for the next session
            await stub.synchronized()
            break
    await control_tried.wait()
    return f"in sync with {stub.runtime}"


async def kubelet(daemon: Daemon) -> None:
    """Log managers of the kubelet that write the same settings, once per change."""
    changed = daemon.policy.foreign_pins.changed
    while True:
        changed.clear()
        found = await in_thread(lambda: static_managers(daemon.tree))
        # Files name the policy; a pod does not see them.
        known = {one.kind for one in found}
        shown = daemon.policy.foreign_pins.managers
        found += tuple(one for one in shown if one.kind not in known)
        # A later request is no other manager.
        if {(one.kind, one.policy) for one in found} != {
            (one.kind, one.policy) for one in daemon.kubelet
        }:
            for manager in found:
                log.warning(
                    "kubelet.manager-conflict",
                    manager=manager.kind,
                    policy=manager.policy or "unknown",
                    why=str(manager),
                )
            if not found:
                log.info("kubelet.manager-conflict-resolved")
        daemon.kubelet = found
        with suppress(TimeoutError):
            async with asyncio.timeout(until_tick(_KUBELET_INTERVAL)):
                await changed.wait()


async def pods_api(daemon: Daemon) -> None:
    """Follow the kubelet's pods, whose requests are exact."""
    if (connection := await daemon.kubelet_services.pods_api.connect()) is not None:
        # As for `insight`: grpclib, where the kubelet has the socket.
        served = await imported("nri_resmgr.daemon.pods_api")
        await served.follow_pods(daemon, connection)


async def dra(daemon: Daemon) -> None:
    """Serve the DRA driver, where the configuration enables it."""
    history, sessions = daemon.observers.history, daemon.observers.sessions
    kubelet = kubelet_dir(daemon.options.kubelet_dir)
    if kubelet is None or daemon.options.dry_run:
        return

    def is_used() -> bool:
        # Claims that are there have to be given back, whatever the configuration says.
        policy = daemon.policy
        return policy.config.dra or bool(policy.policy.claims(policy.state))

    # The claims of an earlier process are known from the first Synchronize on.
    while not (is_used() and sessions.is_synchronized):
        await history.more(history.last)
    try:
        # Off by default, and needs the extra "kubelet".
        served = await imported("nri_resmgr.daemon.dra")
    except ImportError:
        log.error("dra.unavailable", why=NOT_INSTALLED)
        return
    while True:
        await served.serve_dra(daemon, kubelet, until=lambda: not is_used())
        while not is_used():
            await history.more(history.last)


async def pod_resources(daemon: Daemon) -> None:
    """Ask the kubelet for devices and claims of containers."""
    if (book := daemon.pod_resources) is None:
        return
    use = daemon.kubelet_services.pod_resources
    if use.folder is not None and not book.asks_all:
        use.why_not = "off, by agent.podResourceAPI, until a container has claims"
    await book.needed()
    if (connection := await use.connect()) is not None:
        use.details = book.summary
        # An optional dependency, imported by now for the connection.
        module = await imported("nri_resmgr.kubelet.pod_resources_client")
        await module.PodResourcesClient(connection, book).run()


async def claims(daemon: Daemon) -> None:
    """Write the claims of other CPU drivers."""
    if daemon.claims_file is not None:
        await daemon.claims_file.run()


async def verification(daemon: Daemon) -> None:
    """Compare cgroups with decisions."""
    # The decisions of a dry run are not applied.
    if daemon.options.verify_interval and not daemon.options.dry_run:
        # As for `control`.
        served = await imported("nri_resmgr.daemon.verification")
        await served.verify(daemon)


async def running(daemon: Daemon) -> None:
    """Write changed pins to the cgroups of running containers."""
    if isinstance(delivery := daemon.policy.delivery, ByCgroup):
        await delivery.run()


async def running_memory(daemon: Daemon) -> None:
    """Write changed memory nodes to the cgroups of running containers."""
    if isinstance(delivery := daemon.policy.delivery, ByCgroup):
        await delivery.memory_nodes.run()


async def units(daemon: Daemon) -> None:
    """Set changed pins in the systemd units of running containers as well."""
    delivery = daemon.policy.delivery
    if isinstance(delivery, ByCgroup) and delivery.units is not None:
        await delivery.units.run(delivery)


async def sandboxes(daemon: Daemon) -> None:
    """Pin the sandboxes of virtual machines to where their containers are."""
    if not daemon.options.dry_run:
        tree = WritableHostTree(daemon.tree.root)
        await daemon.sandboxes.run(daemon.policy, tree)


async def rebalancing(daemon: Daemon) -> None:
    """Move containers to better places as often as the configuration says."""
    sessions = daemon.observers.sessions
    await daemon.rebalancer.run(
        daemon.policy, daemon.tree, lambda: sessions.is_synchronized
    )


async def publishing(daemon: Daemon) -> None:
    """Publish extended resources and features of the node."""
    if not daemon.options.dry_run and not daemon.policy.config.publishes:
        # Of an earlier process; why it stays is of no use where none is wanted.
        with suppress(HostError):
            await in_thread(lambda: write_features(daemon.tree.root, ""))
    while not daemon.policy.config.publishes:
        # Not by each decision, of which most nodes publish nothing.
        daemon.offers.reconfigured.clear()
        await daemon.offers.reconfigured.wait()
    # As for `control`; few nodes publish anything.
    published = await imported("nri_resmgr.daemon.publishing")
    await published.publish(daemon)


async def host(daemon: Daemon) -> None:
    """Apply CPU classes and interrupts of the host as the policy wants them."""
    await daemon.reconcilers.host.run(HostTarget(daemon))


async def rdt(daemon: Daemon) -> None:
    """Create RDT groups, and keep containers in them."""
    if not daemon.options.dry_run:
        await daemon.reconcilers.rdt.run(RdtTarget(daemon))


async def blockio(daemon: Daemon) -> None:
    """Apply block I/O classes to running containers as configured."""
    if not daemon.options.dry_run:
        await daemon.reconcilers.blockio.run(BlockIoTarget(daemon))


async def top_tier(daemon: Daemon) -> None:
    """Apply limits of fast memory to running containers."""
    if not daemon.options.dry_run:
        await daemon.reconcilers.top_tier.run(TopTierTarget(daemon))


async def limits(daemon: Daemon) -> None:
    """Apply CPU and memory limits of adjusted containers while they run."""
    if not daemon.options.dry_run:
        await daemon.reconcilers.limits.run(LimitTarget(daemon))


async def traces(daemon: Daemon) -> None:
    """Send traces to a collector."""

    async def serve(use: TraceUse) -> None:
        # Flags were checked at the start; a document need not fit what is installed.
        if extra := await _missing_extra(by_grpc=use.by_grpc):
            log.warning("tracing.not-installed", extra=extra)
            return
        sent = await _imported_exporter("nri_resmgr.daemon.tracing")
        await sent.send_traces(daemon.observers.tracing, use)

    await daemon.observability.follow(lambda present: present.traces, serve)


async def metrics_export(daemon: Daemon) -> None:
    """Send metrics to a collector."""

    async def serve(use: ExportUse) -> None:
        if extra := await _missing_extra(by_grpc=use.by_grpc):
            log.warning("metrics.not-installed", extra=extra)
            return
        sent = await _imported_exporter("nri_resmgr.daemon.metrics_export")
        await sent.send_metrics(daemon, use)

    await daemon.observability.follow(lambda present: present.metrics, serve)


async def log_export(daemon: Daemon) -> None:
    """Send the log to a collector."""

    async def serve(use: ExportUse) -> None:
        if extra := await _missing_extra(by_grpc=use.by_grpc):
            log.warning("log.not-installed", extra=extra)
            line_copies.stop()
            return
        sent = await _imported_exporter("nri_resmgr.daemon.log_export")
        await sent.send_log(use)

    await daemon.observability.follow(lambda present: present.log, serve)


async def _missing_extra(*, by_grpc: bool) -> str:
    # As for `control`: few nodes export anything.
    installed = await imported("nri_resmgr.daemon.otel_installed")
    found: str = await in_thread(partial(installed.missing_extra, by_grpc=by_grpc))
    return found


async def _imported_exporter(name: str) -> ModuleType:
    """Import a module that imports OpenTelemetry: in a thread, as it takes 0.1 s."""
    return await in_thread(lambda: import_with_tls(name))


SERVICES: Final[tuple[Service, ...]] = (
    Service(checkpoint, "containers are served; a restart finds them where they run"),
    Service(
        running, "running containers are updated by the runtime", is_essential=False
    ),
    Service(
        running_memory, "the runtime updates their memory nodes", is_essential=False
    ),
    Service(
        units,
        "a daemon-reload of systemd brings old CPUs of running containers back",
        is_essential=False,
    ),
    Service(
        recording,
        "messages and decisions wait in memory to be recorded",
        is_essential=False,
    ),
    Service(
        late_imports,
        "the first request with annotations imports what reads them",
        is_essential=False,
    ),
    Service(hotplug, "the CPUs and memory of the last poll are used"),
    Service(configuration, "the configuration in force stays"),
    Service(cluster, "the documents of the cluster that were read last stay in force"),
    Service(
        configuration_cache,
        "a restart begins with an earlier configuration, until there is another one",
        is_essential=False,
    ),
    Service(control, "nri-resmgr status and the like do not work", is_essential=False),
    Service(probes, "liveness and readiness are not served", is_essential=False),
    Service(insight, "metrics are not served", is_essential=False),
    Service(systemd, "systemd gets no signal", is_essential=False),
    Service(
        kubelet, "conflicting managers of the kubelet are not found", is_essential=False
    ),
    Service(
        pods_api,
        "requests are of annotations and cgroup values, or what the kubelet said last",
        is_essential=False,
    ),
    Service(
        dra,
        "pods with claims wait; those that run keep their CPUs",
        is_essential=False,
    ),
    Service(
        pod_resources,
        "devices and claims of new containers are not known",
        is_essential=False,
    ),
    Service(
        claims,
        "after a restart, CPUs of claims are free until the kubelet has answered",
        is_essential=False,
    ),
    Service(verification, "drift of containers is not found"),
    Service(
        sandboxes,
        "sandboxes of virtual machines stay where they are",
        is_essential=False,
    ),
    Service(rebalancing, "containers stay where they were placed", is_essential=False),
    Service(
        publishing,
        "the cluster keeps the extended resources of before, or has none",
        is_essential=False,
    ),
    Service(host, "containers are served; CPU classes and interrupts stay as they are"),
    Service(rdt, "containers are served; RDT groups stay as they are"),
    Service(blockio, "containers are served; files of block I/O stay as they are"),
    Service(top_tier, "limits of fast memory stay as they are", is_essential=False),
    Service(limits, "adjusted limits of containers stay as they are"),
    Service(traces, "no traces are sent", is_essential=False),
    Service(metrics_export, "no metrics are sent", is_essential=False),
    Service(log_export, "lines of the log are not sent", is_essential=False),
)
