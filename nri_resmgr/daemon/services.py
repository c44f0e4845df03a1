"""What the daemon does beside answering the runtime; begins once it is registered."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Final, TypeAlias

from nri_resmgr.app.background.hotplug import follow_hotplug
from nri_resmgr.daemon.kubelet import look_at_kubelet
from nri_resmgr.daemon.parts import Daemon
from nri_resmgr.daemon.systemd import keep_informed
from nri_resmgr.daemon.targets import BlockIoTarget, HostTarget, RdtTarget
from nri_resmgr.host.machine.hotplug import HotplugWatch
from nri_resmgr.log import Logger
from nri_resmgr.values import HostError, ResmgrError

log = Logger(__name__)

Service: TypeAlias = Callable[[Daemon], Awaitable[None]]


async def serve_beside(daemon: Daemon) -> None:
    """Run all services until cancelled.

    One that fails is reported, and the others go on: containers are placed all the
    same.
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
    """Follow CPUs and memory that come and go."""
    try:
        watch = HotplugWatch(daemon.tree, daemon.kinds)
    except HostError as error:
        log.warning("topology.not-watched", why=str(error))
    else:
        await follow_hotplug(watch.poll, daemon.policy.change_machine)


async def configuration(daemon: Daemon) -> None:
    """Follow the configuration's file, and read it again on SIGHUP."""
    await daemon.configuration.follow()


async def control(daemon: Daemon) -> None:
    """Answer who asks at the control socket."""
    if path := daemon.options.control_socket:
        # No request of the runtime needs it. In a thread: such requests go first.
        served = await asyncio.to_thread(import_module, "nri_resmgr.daemon.control")
        await served.serve_control(daemon, path)


async def insight(daemon: Daemon) -> None:
    """Serve metrics and health."""
    if daemon.options.http_endpoint:
        # Off by default, and half a megabyte.
        from nri_resmgr.daemon.insight import serve_insight

        await serve_insight(daemon)


async def systemd(daemon: Daemon) -> None:
    """Tell systemd how we are, where it started us and wants to know."""
    if "NOTIFY_SOCKET" in os.environ:
        await keep_informed(daemon.stub, os.environ)


async def kubelet(daemon: Daemon) -> None:
    """Say so if the kubelet writes what we write."""
    await look_at_kubelet(daemon)


async def verification(daemon: Daemon) -> None:
    """Compare what the kernel has in force with what was decided."""
    # In a dry run nobody was told what was decided.
    if daemon.options.verify_interval and not daemon.options.dry_run:
        # As for `control`.
        module = "nri_resmgr.daemon.verification"
        served = await asyncio.to_thread(import_module, module)
        await served.verify(daemon)


async def host(daemon: Daemon) -> None:
    """Apply CPU classes and interrupts of the host as the policy wants them."""
    await daemon.reconcilers.host.run(HostTarget(daemon))


async def rdt(daemon: Daemon) -> None:
    """Make RDT groups, and keep containers in them."""
    if not daemon.options.dry_run:
        await daemon.reconcilers.rdt.run(RdtTarget(daemon))


async def blockio(daemon: Daemon) -> None:
    """Apply block I/O classes to running containers as configured."""
    if not daemon.options.dry_run:
        await daemon.reconcilers.blockio.run(BlockIoTarget(daemon))


async def traces(daemon: Daemon) -> None:
    """Send traces to a collector."""
    if (tracing := daemon.watch.tracing) is not None:
        # OpenTelemetry is an optional dependency.
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
