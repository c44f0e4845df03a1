"""`nri-resmgr run`: read the input, build the policy, register, serve."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
from typing import Final

from google.protobuf.internal import api_implementation

from nri_resmgr.app.plugin.status_codes import status_of
from nri_resmgr.daemon.build import build
from nri_resmgr.daemon.configuration import DaemonConfiguration
from nri_resmgr.daemon.defaults import DEFAULT_INDEX, DEFAULT_NAME
from nri_resmgr.daemon.log_setup import follow_debug_signal, prepare_log
from nri_resmgr.daemon.memory_kinds import read_memory_kinds
from nri_resmgr.daemon.observers import DaemonObservers
from nri_resmgr.daemon.parts import Daemon, Startup
from nri_resmgr.daemon.services import serve_beside
from nri_resmgr.daemon.state import open_state, reset
from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.tree import HostTree
from nri_resmgr.log import Logger
from nri_resmgr.stub import (
    Stub,
    StubOptions,
    UnsolicitedUpdates,
    run_until_signal,
)
from nri_resmgr.stub.errors import SessionError
from nri_resmgr.stub.identity import INDEX_VARIABLE, NAME_VARIABLE

log = Logger(__name__)

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
    if api_implementation.Type() != "upb":
        log.warning("protobuf.slow", kind=api_implementation.Type(), instead="upb")
    if options.reset_config or options.reset_policy:
        reset(options)
        return 0
    # By default the signal ends the process; there is nothing to reload yet.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    state = open_state(options.state_dir, dry_run=options.dry_run)
    tree = HostTree(options.host_root)
    kinds = read_memory_kinds(options.memory_kinds)
    observers = DaemonObservers(
        counts=bool(options.http_endpoint), traces=_check_insight_flags(options)
    )
    machine = read_machine(tree, kinds)
    startup = Startup(options, tree, kinds, machine, state, observers)
    if options.record:
        # Few starts record.
        from nri_resmgr.recordings.recorder import open_recording

        startup.recorder = open_recording(options, startup.machine)
    configuration = build(startup)
    asyncio.run(_serve(startup, configuration))
    return 0


def _check_insight_flags(options: argparse.Namespace) -> bool:
    """Check the flags; return whether to trace.

    Imports nothing without metrics and traces.

    Raises:
        BadEndpoint: ``--http-endpoint`` is not an address and port.
        InputError: See `nri_resmgr.daemon.tracing_flags.check_tracing_flags`.
    """
    if options.http_endpoint:
        # Only with metrics.
        from nri_resmgr.daemon.endpoint import read_endpoint

        read_endpoint(options.http_endpoint)
    has_variables = any(os.environ.get(name) for name in _COLLECTOR_VARIABLES)
    if not (has_variables or options.otel_endpoint or options.otel_sampling):
        return False
    # Only with traces.
    from nri_resmgr.daemon.tracing_flags import check_tracing_flags

    return check_tracing_flags(
        options.otel_endpoint, options.otel_sampling, has_variables=has_variables
    )


async def _serve(startup: Startup, configuration: DaemonConfiguration) -> None:
    try:
        stub = _stub_of(startup, configuration)
        configuration.policy.use_update_sender(stub.updates)
        follow_debug_signal()
        beside = asyncio.create_task(_serve_beside(startup, configuration, stub))
        try:
            await run_until_signal(stub)
        finally:
            beside.cancel()
    finally:
        startup.close()


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
        ),
    )


async def _serve_beside(
    startup: Startup, configuration: DaemonConfiguration, stub: Stub
) -> None:
    try:
        await stub.started()
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
            checkpoint_writer=startup.checkpoint_writer,
            state=startup.state,
            reconcilers=startup.reconcilers,
        )
    )
