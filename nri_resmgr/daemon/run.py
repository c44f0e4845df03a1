"""`nri-resmgr run`: read the input, build the policy, register, serve."""

from __future__ import annotations

import argparse
import asyncio
import os
from time import monotonic
from typing import Any, Final

from google.protobuf.internal import api_implementation

from nri_resmgr.daemon.build import build
from nri_resmgr.daemon.log_setup import follow_debug_signal, log_in_use
from nri_resmgr.daemon.memory_kinds import read_memory_kinds
from nri_resmgr.daemon.observers import DaemonObservers
from nri_resmgr.daemon.parts import Daemon
from nri_resmgr.daemon.services import serve_beside
from nri_resmgr.daemon.state import open_state, reset
from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.tree import HostTree
from nri_resmgr.log import Logger
from nri_resmgr.process.endpoint import read_endpoint
from nri_resmgr.stub import Stub, run_until_signal
from nri_resmgr.stub.errors import SessionError
from nri_resmgr.values import InputError

log = Logger(__name__)

# Without a descriptor for a client, a listener fails each second.
_REPEATED: Final = 60.0  # seconds

# The standard variables of OpenTelemetry for the collector's address.
_COLLECTOR_VARIABLES: Final = (
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
)


def run(options: argparse.Namespace) -> int:
    """Serve until a signal arrives; see `nri_resmgr.cli.main` for the flags.

    All slow or fallible work is done before the stub connects: a runtime waits five
    seconds for a launched plugin to register, and two for each answer.

    Raises:
        ResmgrError: Bad input, or the node cannot be served.
    """
    with log_in_use(options):
        return _run(options)


def _run(options: argparse.Namespace) -> int:
    if api_implementation.Type() != "upb":
        log.warning("protobuf.slow", kind=api_implementation.Type(), instead="upb")
    if options.reset_config or options.reset_policy:
        reset(options)
        return 0
    state = open_state(options.state_dir, dry_run=options.dry_run)
    tree = HostTree(options.host_root)
    kinds = read_memory_kinds(options.memory_kinds)
    observers = DaemonObservers(
        counts=bool(options.http_endpoint or options.health_endpoint),
        traces=_check_insight_flags(options),
    )
    machine = read_machine(tree, kinds)
    daemon = Daemon(options, tree, kinds, machine, state, observers)
    if options.record:
        # Late: on the start path, and few starts record.
        from nri_resmgr.recordings.recorder import open_recording

        daemon.recorder = open_recording(options, machine)
    build(daemon)
    with asyncio.Runner() as runner:
        runner.get_loop()  # fails without a descriptor: before there is a coroutine
        runner.run(_serve(daemon))
    return 0


class PageWithoutEndpoint(InputError):
    """The page of the node has no address."""

    def __str__(self) -> str:
        return "--http-page needs --http-endpoint, where it is served"


def _check_insight_flags(options: argparse.Namespace) -> bool:
    """Check the flags; return whether to trace.

    Raises:
        PageWithoutEndpoint: ``--http-page`` is given without ``--http-endpoint``.
        BadEndpoint: An endpoint is not an address and port.
        InputError: See `nri_resmgr.daemon.tracing_flags.check_tracing_flags`.
    """
    endpoints = (
        ("--http-endpoint", options.http_endpoint),
        ("--health-endpoint", options.health_endpoint),
    )
    for flag, text in endpoints:
        if text:
            read_endpoint(flag, text)
    if options.http_page and not options.http_endpoint:
        raise PageWithoutEndpoint
    has_variables = any(os.environ.get(name) for name in _COLLECTOR_VARIABLES)
    if not (has_variables or options.otel_endpoint or options.otel_sampling):
        return False
    # Late: on the start path, and few nodes send traces.
    from nri_resmgr.daemon.tracing_flags import check_tracing_flags

    return check_tracing_flags(
        options.otel_endpoint, options.otel_sampling, has_variables=has_variables
    )


async def _serve(daemon: Daemon) -> None:
    try:
        follow_debug_signal()
        asyncio.get_running_loop().set_exception_handler(LoopFaults())
        beside = asyncio.create_task(_serve_beside(daemon))
        beside.add_done_callback(lambda _: _stop_if_lost(beside, daemon.stub))
        try:
            await run_until_signal(daemon.stub)
        finally:
            beside.cancel()
        if _is_lost(beside):
            beside.result()
    finally:
        try:
            daemon.policy.observers.finish()
            daemon.close()
        finally:
            daemon.configuration.close()


def _is_lost(beside: asyncio.Task[None]) -> bool:
    return beside.done() and not beside.cancelled() and beside.exception() is not None


def _stop_if_lost(beside: asyncio.Task[None], stub: Stub) -> None:
    if _is_lost(beside):
        stub.stop()


class LoopFaults:
    """Logs what nothing waits for, such as a failed callback; the loop goes on."""

    def __init__(self) -> None:
        self._last = ""
        self._again = 0.0

    def __call__(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log a fault; one that repeats, as of a listener, once a minute."""
        why, now = str(context["message"]), monotonic()
        if why == self._last and now < self._again:
            return
        self._last, self._again = why, now + _REPEATED
        log.error("loop.failed", why=why, exc_info=context.get("exception"))


async def _serve_beside(daemon: Daemon) -> None:
    try:
        await daemon.stub.begun()
    except SessionError:
        return  # `run_until_signal` raises the reason
    await serve_beside(daemon)
