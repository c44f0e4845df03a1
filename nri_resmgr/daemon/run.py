"""`nri-resmgr run`: read the input, build the policy, register, serve."""

from __future__ import annotations

import argparse
import asyncio
import os
from time import monotonic
from typing import Any, Final

from google.protobuf.internal import api_implementation

from nri_resmgr.app.background.supervisor import Supervisor
from nri_resmgr.app.plugin.reduced import reduced_container, reduced_pod
from nri_resmgr.app.plugin.status_codes import status_of
from nri_resmgr.daemon.build import build
from nri_resmgr.daemon.configuration import DaemonConfiguration
from nri_resmgr.daemon.defaults import DEFAULT_INDEX, DEFAULT_NAME
from nri_resmgr.daemon.kubelet import KubeletServices
from nri_resmgr.daemon.log_setup import (
    finish_log,
    follow_debug_signal,
    prepare_log,
)
from nri_resmgr.daemon.memory_kinds import read_memory_kinds
from nri_resmgr.daemon.observers import DaemonObservers
from nri_resmgr.daemon.parts import Daemon, Startup
from nri_resmgr.daemon.services import serve_beside
from nri_resmgr.daemon.state import open_state, reset
from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.tree import HostTree
from nri_resmgr.kubelet.sockets import kubelet_dir
from nri_resmgr.log import Logger
from nri_resmgr.process.endpoint import read_endpoint
from nri_resmgr.stub import (
    Stub,
    StubOptions,
    UnsolicitedUpdates,
    run_until_signal,
)
from nri_resmgr.stub.errors import SessionError
from nri_resmgr.stub.identity import INDEX_VARIABLE, NAME_VARIABLE

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
    prepare_log(options)
    try:
        return _run(options)
    finally:
        finish_log()


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
    startup = Startup(options, tree, kinds, machine, state, observers)
    if options.record:
        # Late: on the start path, and few starts record.
        from nri_resmgr.recordings.recorder import open_recording

        startup.recorder = open_recording(options, startup.machine)
    configuration = build(startup)
    with asyncio.Runner() as runner:
        runner.get_loop()  # fails without a descriptor: before there is a coroutine
        runner.run(_serve(startup, configuration))
    return 0


def _check_insight_flags(options: argparse.Namespace) -> bool:
    """Check the flags; return whether to trace.

    Raises:
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
    has_variables = any(os.environ.get(name) for name in _COLLECTOR_VARIABLES)
    if not (has_variables or options.otel_endpoint or options.otel_sampling):
        return False
    # Late: on the start path, and few nodes send traces.
    from nri_resmgr.daemon.tracing_flags import check_tracing_flags

    return check_tracing_flags(
        options.otel_endpoint, options.otel_sampling, has_variables=has_variables
    )


async def _serve(startup: Startup, configuration: DaemonConfiguration) -> None:
    try:
        stub = _stub_of(startup, configuration)
        configuration.policy.use_update_sender(stub.updates)
        follow_debug_signal()
        asyncio.get_running_loop().set_exception_handler(LoopFaults())
        beside = asyncio.create_task(_serve_beside(startup, configuration, stub))
        beside.add_done_callback(lambda _: _stop_if_lost(beside, stub))
        try:
            await run_until_signal(stub)
        finally:
            beside.cancel()
        if _is_lost(beside):
            beside.result()
    finally:
        try:
            configuration.policy.observers.finish()
            startup.close()
        finally:
            configuration.close()


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


def _stub_of(startup: Startup, configuration: DaemonConfiguration) -> Stub:
    options = startup.options
    name, index = options.nri_plugin_name, options.nri_plugin_index
    if not os.environ.keys() & {NAME_VARIABLE, INDEX_VARIABLE}:
        # A runtime that launches a plugin sets its name.
        name = DEFAULT_NAME if name is None else name
        index = DEFAULT_INDEX if index is None else index
    return Stub.from_environment(
        configuration.policy,
        name=name,
        index=index,
        socket=options.nri_socket,
        options=StubOptions(
            status_of=status_of,
            unsolicited_updates=UnsolicitedUpdates(options.unsolicited_updates),
            observer=startup.observers,
            on_message=startup.recorder.tap if startup.recorder else None,
            reduce_pod=reduced_pod,
            reduce_container=reduced_container,
            waits_for_runtime=options.wait_for_runtime,
        ),
    )


async def _serve_beside(
    startup: Startup, configuration: DaemonConfiguration, stub: Stub
) -> None:
    try:
        await stub.begun()
    except SessionError:
        return  # `run_until_signal` raises the reason
    await serve_beside(
        Daemon(
            options=startup.options,
            tree=startup.tree,
            kinds=startup.kinds,
            policy=configuration.policy,
            configuration=configuration,
            stub=stub,
            observers=startup.observers,
            observability=startup.observability,
            rebalancer=startup.rebalancer,
            offers=startup.offers,
            sandboxes=startup.sandboxes,
            checkpoint_writer=startup.checkpoint_writer,
            state=startup.state,
            reconcilers=startup.reconcilers,
            kubelet_services=KubeletServices(kubelet_dir(startup.options.kubelet_dir)),
            pod_resources=startup.pod_resources,
            claims_file=startup.claims_file,
            # The runtime would not launch it again.
            supervisor=Supervisor(may_end=not startup.launched),
        )
    )
