"""Services of the daemon beside the requests; they begin once it is registered."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Final, TypeAlias

from nri_resmgr.app.background.hotplug import follow_hotplug
from nri_resmgr.app.background.periodic import until_tick
from nri_resmgr.daemon.parts import Daemon
from nri_resmgr.daemon.systemd import notify_systemd
from nri_resmgr.daemon.targets import BlockIoTarget, HostTarget, RdtTarget
from nri_resmgr.host.kubelet import static_managers
from nri_resmgr.host.machine.hotplug import HotplugWatch
from nri_resmgr.log import Logger
from nri_resmgr.values import HostError, ResmgrError

log = Logger(__name__)

_KUBELET_INTERVAL: Final = 60.0  # seconds

Service: TypeAlias = Callable[[Daemon], Awaitable[None]]


async def serve_beside(daemon: Daemon) -> None:
    """Run all services until cancelled.

    One that fails is logged, and the others go on: containers are still placed.
    """
    async with asyncio.TaskGroup() as group:
        for service in SERVICES:
            group.create_task(_guarded(service, daemon))


async def _guarded(service: Service, daemon: Daemon) -> None:
    try:
        await service(daemon)
    except ResmgrError as error:
        log.error("service.ended", service=service.__name__, why=str(error))
    except Exception as error:
        log.error("service.failed", service=service.__name__, exc_info=error)


async def hotplug(daemon: Daemon) -> None:
    """Follow the hotplug of CPUs and memory."""
    try:
        watch = HotplugWatch(daemon.tree, daemon.kinds)
    except HostError as error:
        log.warning("topology.not-watched", why=str(error))
    else:
        await follow_hotplug(watch.poll, daemon.policy.change_machine)


async def configuration(daemon: Daemon) -> None:
    """Follow the configuration file, and reload it on SIGHUP."""
    await daemon.configuration.follow()


async def control(daemon: Daemon) -> None:
    """Serve the control socket."""
    if path := daemon.options.control_socket:
        # Requests do not need it; imported in a thread, because they go first.
        served = await asyncio.to_thread(import_module, "nri_resmgr.daemon.control")
        await served.serve_control(daemon, path)


async def insight(daemon: Daemon) -> None:
    """Serve metrics and health."""
    if daemon.options.http_endpoint:
        # Off by default, and half a megabyte.
        from nri_resmgr.daemon.insight import serve_insight

        await serve_insight(daemon)


async def systemd(daemon: Daemon) -> None:
    """Send state and watchdog signals to systemd, if it started this process."""
    if "NOTIFY_SOCKET" in os.environ:
        await notify_systemd(daemon.stub, os.environ)


async def kubelet(daemon: Daemon) -> None:
    """Log managers of the kubelet that write the same settings, once per change."""
    while True:
        found = static_managers(daemon.tree)
        if found != daemon.kubelet:
            for manager in found:
                log.warning(
                    "kubelet.manager-conflict",
                    manager=manager.kind,
                    policy=manager.policy,
                    why=str(manager),
                )
            if not found:
                log.info("kubelet.manager-conflict-resolved")
            daemon.kubelet = found
        await asyncio.sleep(until_tick(_KUBELET_INTERVAL))


async def verification(daemon: Daemon) -> None:
    """Compare cgroups with decisions."""
    # The decisions of a dry run are not applied.
    if daemon.options.verify_interval and not daemon.options.dry_run:
        # As for `control`.
        module = "nri_resmgr.daemon.verification"
        served = await asyncio.to_thread(import_module, module)
        await served.verify(daemon)


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


async def traces(daemon: Daemon) -> None:
    """Send traces to a collector."""
    if (tracing := daemon.observers.tracing) is not None:
        # An optional dependency, whose import takes 0.1 s: in a thread.
        await asyncio.to_thread(import_module, "nri_resmgr.daemon.tracing")
        from nri_resmgr.daemon.tracing import send_traces

        options = daemon.options
        await send_traces(tracing, options.otel_endpoint, options.otel_sampling)


SERVICES: Final[tuple[Service, ...]] = (
    hotplug,
    configuration,
    control,
    insight,
    systemd,
    kubelet,
    verification,
    host,
    rdt,
    blockio,
    traces,
)
